"""Starts a child process with its task, binds it to CPUs, and ends it with its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress

from streamgauge.base.errors import UserError


def spawn(module: str, task: str) -> subprocess.Popen[str]:
    """Starts a module of ours with its task as the first line of standard input; standard output and error are pipes.

    If it died at once, its exit code tells.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(f"{task}\n")
        process.stdin.flush()
    return process


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
