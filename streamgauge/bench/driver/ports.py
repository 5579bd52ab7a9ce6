"""Finds ports on which nobody listens."""

from __future__ import annotations

import errno
import socket

from streamgauge.base.errors import UserError


def free_port(wanted: int = 0, host: str = "127.0.0.1") -> int:
    """The port, or a free one for 0. Raises UserError if nobody can listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as problem:
            why = "is taken" if problem.errno == errno.EADDRINUSE else f"cannot be listened on ({problem.strerror})"
            raise UserError(f"port {wanted} {why} on {host}; choose another with --port, 0 for a free one") from None
        return int(probe.getsockname()[1])
