"""Receives attempted values: a small TCP server in the Spark driver, to which workers report what they counted.

A connection begins with the token on a line; each further line is one report as JSON, acknowledged by one byte.
Spark's own accumulators cannot do this: Spark discards those of a failed task.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable

from streamgauge.metrics.values import Report

log = logging.getLogger("streamgauge")
LONGEST_LINE = 16 << 20


class Collector:
    """Listens until it is closed, and calls `heard` with each report, from several threads."""

    def __init__(self, heard: Callable[[Report], None], bind: str) -> None:
        self.token = secrets.token_hex(16)
        self._server = _Server((bind, 0), self.token, heard)
        self.port = int(self._server.server_address[1])
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="metrics-collector", daemon=True
        ).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        for wire in tuple(self._server.wires):
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], token: str, heard: Callable[[Report], None]) -> None:
        self.token, self.heard = token.encode(), heard
        self.wires: set[socket.socket] = set()
        super().__init__(address, _Handler)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        self.server.wires.add(self.connection)
        try:
            self._listen()
        finally:
            self.server.wires.discard(self.connection)

    def _listen(self) -> None:
        if not hmac.compare_digest(self.rfile.readline(100).rstrip(b"\n"), self.server.token):
            return
        try:
            while (line := self.rfile.readline(LONGEST_LINE)).endswith(b"\n"):
                self.server.heard(json.loads(line))
                self.wfile.write(b"+")
        except OSError:
            return  # the worker is gone
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            log.warning("metrics: a malformed report from a worker was ignored: %r", problem)
