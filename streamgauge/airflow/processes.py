"""Starts a command in a process session of its own, and ends every process of that session."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil


def start(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Starts the command with its output appended to the log; its process id is also its session's id."""
    with open(log, "ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(*leaders: subprocess.Popen[bytes], grace_seconds: float = 8.0) -> None:
    """Ends every process of the leaders' sessions: by SIGTERM, then after the grace time by SIGKILL.

    Airflow's and PySpark's children leave their process group, but none leaves its session.
    """
    sessions = {leader.pid for leader in leaders}
    for signal_number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 2.0), (signal.SIGKILL, 2.0)):
        living = members(sessions)
        for process in living:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal_number)
        psutil.wait_procs(living, timeout=seconds)
    for leader in leaders:
        leader.wait()


def members(sessions: set[int]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@contextmanager
def stoppable() -> Iterator[None]:
    """Turns SIGINT, SIGTERM and SIGHUP into a KeyboardInterrupt, so that `finally` blocks run.

    SIGINT needs it too: a shell starts background jobs with SIGINT ignored.
    """

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
