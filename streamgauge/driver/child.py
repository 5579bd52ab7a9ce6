"""Binds a child process to CPUs, and ends it with its parent."""

from __future__ import annotations

import os
import threading

from streamgauge.base.errors import UserError


def pin(cpus: str | None) -> None:
    """Binds this process to CPUs such as '0,2'. Raises UserError where that is impossible."""
    if not cpus:
        return
    try:
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    except (AttributeError, ValueError, OSError) as problem:
        allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "none on this system"
        raise UserError(f"--cpus: found {cpus!r} ({problem}), allowed: some of {allowed}") from None


def end_with_parent(done: threading.Event) -> None:
    """Sets `done` when standard input closes, which happens in whatever way the parent process dies."""
    while os.read(0, 4096):
        pass
    done.set()
