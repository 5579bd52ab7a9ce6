"""Starts the processes that run beside this one: commands in process sessions, which can be ended, and modules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import psutil

from streamgauge.base import guard
from streamgauge.base.errors import Stopped

#: how exactly the kernel tells when a process started, seconds
_CLOCK_S = 0.1


class _Guard:
    """The one process that ends guarded sessions, and removes guarded groups, if this one dies without doing so."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._of = 0
        self._lock = threading.Lock()

    def tell(self, sign: str, what: int | Path) -> None:
        """Begins (+) or ends (-) the guarding of a session, or of the directory of a control group."""
        with self._lock, suppress(OSError):  # without a guard all works but this
            if self._process is None or self._of != os.getpid():  # a forked copy has a guard of its own
                self._process = detached([sys.executable, "-I", "-S", guard.__file__], subprocess.PIPE)
                self._of = os.getpid()
            assert self._process.stdin is not None
            self._process.stdin.write(f"{sign}{what}\n")
            self._process.stdin.flush()


def detached(command: Sequence[str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Starts a helper that says nothing, in a session of its own, so that Ctrl-C does not reach it.

    It gets no variable of ours, as processes with these are taken for a part of a measurement, and ended.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMGAUGE_")}
    none = subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=stdin, stdout=none, stderr=none, env=environment, start_new_session=True, text=True
    )


_GUARD = _Guard()


def guard_folder(folder: Path, *, begins: bool) -> None:
    """Begins or ends the guarding of a control group's directory: it is removed however this process ends."""
    _GUARD.tell("+" if begins else "-", folder)


class Leader(subprocess.Popen[bytes]):
    """A command that leads a process session of its own: its process id is also its session's id.

    Its session is ended also if this process is killed before `wait` has returned.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, directory: Path | None = None
    ) -> None:
        """Starts the command with its output appended to the log, in that directory or in ours."""
        self._guarded = False
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
        _GUARD.tell("+", self.pid)
        self._guarded = True
        self.since = psutil.Process(self.pid).create_time()

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        if self._guarded:
            self._guarded = False
            _GUARD.tell("-", self.pid)
        return code


class Child(subprocess.Popen[str]):
    """A module of ours in a process whose three standard streams are pipes: it ends when its input closes.

    The input closes in whatever way this process dies.
    """

    def __init__(
        self, module: str, *arguments: str, task: str | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts the module; a task becomes the first line of its input. If it dies at once, its exit code says so."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", module, *arguments]
        super().__init__(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        if task is not None:
            assert self.stdin is not None
            with suppress(OSError):
                self.stdin.write(f"{task}\n")
                self.stdin.flush()

    def end(self, patience_s: float = 0.0) -> str:
        """Closes its input; kills it unless it ends in time. Returns what else it printed, "" if it was killed."""
        try:
            return self.communicate(timeout=patience_s)[0]
        except subprocess.TimeoutExpired:
            return ""
        finally:
            self.kill()
            self.communicate()

    def last_error(self, nothing: str = "no error output") -> str:
        """Returns the last line of standard error of a child that has ended."""
        assert self.stderr is not None
        lines = self.stderr.read().strip().splitlines()
        return lines[-1] if lines else nothing


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
    running = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            since = sessions.get(os.getsid(process.pid))
            ours = since is not None and process.create_time() >= since - _CLOCK_S
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running


#: signals by which a person or a service asks a command to end
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the first thread gets signals
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
    received: list[int] = []
    with _handled(lambda number, _: received.append(number)):
        yield received


@contextmanager
def stoppable() -> Iterator[None]:
    """Turns SIGINT, SIGTERM and SIGHUP into a KeyboardInterrupt, so that `finally` blocks run.

    SIGINT needs it too: a shell starts background jobs with SIGINT ignored. A library that is interrupted may raise an
    error of its own, such as an import that failed; this becomes a KeyboardInterrupt, too.
    """
    interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    with _handled(interrupt):
        try:
            yield
        except Exception as problem:
            if interrupted and not isinstance(problem, Stopped):
                raise KeyboardInterrupt from problem
            raise
