"""Process sessions: starts a command in one of its own, lists the processes of a session, and ends them all."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

#: times at which processes started are as exact as the kernel's tick, seconds
_CLOCK_S = 0.1


class Leader(subprocess.Popen[bytes]):
    """A command that leads a process session of its own: its process id is also its session's id."""

    def __init__(
        self, command: list[str], environment: dict[str, str], log: Path, directory: Path | None = None
    ) -> None:
        """Starts the command with its output appended to the log, in that directory or in ours."""
        with open(log, "ab") as output:
            super().__init__(
                command,
                env=environment,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.since = psutil.Process(self.pid).create_time()


def stop(*leaders: Leader, grace_seconds: float = 8.0) -> None:
    """Ends every process of the leaders' sessions: by SIGTERM, then after the grace time by SIGKILL.

    Airflow's and PySpark's children leave their process group, but none leaves its session.
    """
    sessions = {leader.pid: leader.since for leader in leaders}
    for signal_number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 2.0), (signal.SIGKILL, 2.0)):
        living = members(sessions)
        for process in living:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal_number)
        psutil.wait_procs(living, timeout=seconds)
    for leader in leaders:
        leader.wait()


def members(sessions: Mapping[int, float]) -> list[psutil.Process]:
    """Processes of these sessions (id -> start of its leader, s since the epoch) that still run.

    Zombies are left out: where nobody reaps orphans, dead ones stay listed. So are processes older than the leader:
    a reused session id is another session.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            since = sessions.get(os.getsid(process.pid))
            ours = since is not None and process.create_time() >= since - _CLOCK_S
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


#: signals by which a person or a service asks a command to end
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _handled(handler: Callable[[int, Any], object]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the first thread is told of signals
        return
    before = {number: signal.signal(number, handler) for number in STOPS}
    try:
        yield
    finally:
        for number, one in before.items():
            signal.signal(number, one)


@contextmanager
def postponed() -> Iterator[list[int]]:
    """Holds SIGINT, SIGTERM and SIGHUP back while processes are started; yields the list of those received."""
    told: list[int] = []
    with _handled(lambda number, _: told.append(number)):
        yield told


@contextmanager
def stoppable() -> Iterator[None]:
    """Turns SIGINT, SIGTERM and SIGHUP into a KeyboardInterrupt, so that `finally` blocks run.

    SIGINT needs it too: a shell starts background jobs with SIGINT ignored.
    """

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield
