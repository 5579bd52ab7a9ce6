"""Follows a process session: everything that a child has started, in whatever process groups."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from streamgauge.base.errors import UserError
from streamgauge.base.processes import Leader, detached, members
from streamgauge.bench.engines.account import Account, Reading, read
from streamgauge.bench.engines.cgroup import REMOVE_S, Group, Quota

#: between looks; less often with a control group, which counts CPU time by itself
GROUP_LOOK_SECONDS, LOOK_SECONDS = 0.5, 0.25
#: no process of the session reaps an orphan, so its end must be seen; used only while there is one
ORPHAN_LOOK_SECONDS = 0.02
#: names of a JVM's compiler threads begin so
_COMPILERS = ("C1 Compiler", "C2 Compiler")


class Session:
    """The session led by a child that was started with start_new_session.

    A thread samples it until it has ended, so that CPU and memory of short-lived processes are seen.
    """

    def __init__(self, leader: int) -> None:
        self._sid, self._since = leader, psutil.Process(leader).create_time()
        first = read(leader)
        self._since_ticks = first.started_ticks if first else 0
        self._account, self._lock = Account(), threading.Lock()
        self._orphans: set[int] = set()
        self._rss_bytes = self._peak_rss_bytes = self._empty_looks = 0
        self._cpu_s = self._before_group_s = 0.0
        self._ended = threading.Event()
        self._look()
        self._quota: Quota | None = None
        self._group: Group | None = Group.create(leader)
        if self._group is not None:
            self._before_group_s = self._account.seconds
            weakref.finalize(self, self._group.remove)
            if not self._gather(self._group):
                self._group.remove()
                self._group = None
        period_s = LOOK_SECONDS if self._group is None else GROUP_LOOK_SECONDS
        arguments = weakref.ref(self), self._ended, period_s
        threading.Thread(target=_watch, args=arguments, name=f"session-{leader}", daemon=True).start()

    def processes(self) -> list[psutil.Process]:
        """Processes that still run, without zombies."""
        return members({self._sid: self._since})

    def cpu_seconds(self) -> float:
        """User and system time of all processes that ever ran in it, seconds; never less than before."""
        self._look()
        with self._lock:
            used = self._group.cpu_seconds() if self._group is not None else None
            grouped = 0.0 if used is None else self._before_group_s + used
            self._cpu_s = max(self._cpu_s, self._account.seconds, grouped)
            return self._cpu_s

    def rss_bytes(self) -> int:
        """Resident memory of all processes that run now, bytes; shared memory counts for each."""
        self._look()
        return self._rss_bytes

    def peak_rss_bytes(self) -> int:
        """Largest resident memory in any sample since `forget_peak`, bytes."""
        self._look()
        return self._peak_rss_bytes

    def vitals(self) -> dict[str, float]:
        """Resident memory of all processes, in bytes, and open files of the one that has most, with its limit."""
        return {"resident_memory": self.rss_bytes(), **open_files(self.processes())}

    def forget_peak(self) -> None:
        with self._lock:
            self._peak_rss_bytes = 0

    def pin(self, cpus: Collection[int]) -> None:
        """Pins all threads, and so what they will start, to these CPUs; repeats until none was missed.

        The compiler threads of a JVM are kept off them where the machine has others: for minutes they would take a
        tenth of what is measured, and nothing of what the system sustains after that.
        """
        here = os.sched_getaffinity(0)
        allowed = set(cpus) & here
        missed = bool(allowed)
        while missed:
            missed = False
            for process in self.processes():
                for thread in _threads(process.pid):
                    with suppress(ProcessLookupError, FileNotFoundError):  # it has ended
                        compiles = (thread / "comm").read_text().startswith(_COMPILERS)
                        wanted = (here - allowed) or here if compiles else allowed
                        if os.sched_getaffinity(int(thread.name)) != wanted:
                            missed = True
                            os.sched_setaffinity(int(thread.name), wanted)

    def give(self, cpus: float | None) -> None:
        """Gives all processes together the time of so many CPUs from now on; None: all of it.

        Raises UserError, one line, where this machine offers no such quota.
        """
        if self._quota is None and cpus is not None:
            self._quota = Quota.made(self._sid)
            weakref.finalize(self, self._quota.remove)
            if not self._gather(self._quota):
                raise UserError(f"the processes cannot be moved to {self._quota.path}, which would limit them")
            if self._quota.cpu_seconds() is not None and self._group is not None:
                # in cgroup v2 a process has one group: this one counts from now on
                with self._lock:
                    self._before_group_s += self._group.cpu_seconds() or 0.0
                    self._group.remove()
                    self._group = self._quota
        try:
            if self._quota is not None:
                self._quota.give(cpus)
        except OSError as problem:
            raise UserError(f"the quota of {cpus} CPUs is refused by this machine: {problem.strerror}") from None

    @contextmanager
    def frozen(self, longest_s: float = 5.0) -> Iterator[None]:
        """Stops all processes while the block runs; a helper wakes them after longest_s should this process die."""
        pids = [process.pid for process in self.processes()]
        wake = f"sleep {longest_s:g}; kill -CONT {' '.join(map(str, pids))}"
        helper = detached(["/bin/sh", "-c", wake])
        try:
            _signal(pids, signal.SIGSTOP)
            yield
        finally:
            _signal(pids, signal.SIGCONT)
            os.killpg(helper.pid, signal.SIGKILL)
            helper.wait()

    def kill(self, part: str) -> None:
        """Kills the processes whose command line contains this text."""
        for process in self.processes():
            with suppress(psutil.Error):
                if part in " ".join(process.cmdline()):
                    process.kill()

    def end(self, patience_s: float = 5.0) -> None:
        """Sends SIGTERM, then SIGKILL to what is left; returns when nothing is left or after twice the patience."""
        self._look()
        if self._quota is not None:
            with suppress(OSError):
                self._quota.give(None)  # a throttled process would end as slowly as it works
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes():
                try:
                    process.send_signal(number)
                except psutil.Error:
                    continue
            deadline = time.monotonic() + patience_s
            while self.processes() and time.monotonic() < deadline:
                time.sleep(0.05)
        self.cpu_seconds()  # keeps the figure: the group is removed next
        self._ended.set()
        for group in filter(None, (self._group, self._quota)):
            group.remove(REMOVE_S)

    def _look(self) -> None:
        with self._lock:
            if self._empty_looks > 1:  # one listing may miss a daemon; after two, the session id may be reused
                return
            known = self._account.known
            readings = [
                reading for pid in _pids(self._sid, known) if (reading := read(pid)) and self._ours(reading, known)
            ]
            self._account.look(readings, {reading.pid for reading in readings if not _exists(reading.pid)})
            living = [reading for reading in readings if not reading.ended]
            self._empty_looks = 0 if living else self._empty_looks + 1
            ours = {reading.pid for reading in readings}
            self._orphans = {r.pid for r in living if r.parent not in ours and r.pid != self._sid}
            self._rss_bytes = sum(reading.rss_bytes for reading in living)
            self._peak_rss_bytes = max(self._peak_rss_bytes, self._rss_bytes)

    def _glance(self) -> None:
        """Reads the own time of orphans only."""
        with self._lock:
            self._account.glance(reading for pid in self._orphans if (reading := read(pid)))

    def _ours(self, reading: Reading, known: set[tuple[int, int]]) -> bool:
        """True for members, and for those that have moved to another session: one of ours may still reap them."""
        member = reading.session == self._sid and reading.started_ticks >= self._since_ticks
        return member or (reading.pid, reading.started_ticks) in known

    def _gather(self, group: Group) -> bool:
        """Moves all processes into the group; repeats until none was missed. False if the kernel does not allow it."""
        missing = {self._sid}
        for _ in range(10):
            if not sum(group.add(pid) for pid in missing):
                break
            missing = {process.pid for process in self.processes()} - group.pids()
            if not missing:
                return True
        return False


class Led(Session):
    """The session of a command that is started here."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, directory: Path | None = None
    ) -> None:
        """Starts the command as `Leader` does. Raises OSError."""
        self.leader = Leader(command, environment, log, directory)
        super().__init__(self.leader.pid)

    def exit_code(self) -> int | None:
        """Exit code of the command itself; None while it runs."""
        return self.leader.poll()

    def end(self, patience_s: float = 5.0) -> None:
        super().end(patience_s)
        self.leader.wait(10.0)


def open_files(processes: Iterable[psutil.Process]) -> dict[str, float]:
    """Number of files of the process that has most open, and how many it may have; nothing if all have ended."""
    told: list[tuple[int, int]] = []
    for process in processes:
        with suppress(psutil.Error):
            told.append((process.num_fds(), process.rlimit(psutil.RLIMIT_NOFILE)[0]))
    return dict(zip(("open_files", "open_files_limit"), max(told, default=()), strict=False))


def _threads(process: int) -> list[Path]:
    """Folders of a process's threads; none if it has ended."""
    with suppress(FileNotFoundError):
        return list(Path(f"/proc/{process}/task").iterdir())
    return []


def _signal(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _pids(session: int, known: Collection[tuple[int, int]]) -> list[int]:
    pids = {pid for pid, _ in known}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                if os.getsid(int(name)) == session:
                    pids.add(int(name))
    return sorted(pids)


def _exists(pid: int) -> bool:
    try:
        os.getsid(pid)
    except OSError:
        return False
    return True


def _watch(watched: weakref.ref[Session], ended: threading.Event, period_s: float) -> None:
    """Samples the session until it has ended or is no longer referenced."""
    next_look = time.monotonic()
    pause_s = 0.0
    while not ended.wait(pause_s):
        session = watched()
        if session is None:
            return
        if time.monotonic() >= next_look:
            session._look()
            next_look = time.monotonic() + period_s
        else:
            session._glance()
        if session._empty_looks > 1:
            return
        watch_closely = session._group is None and session._orphans
        pause_s = ORPHAN_LOOK_SECONDS if watch_closely else max(0.0, next_look - time.monotonic())
        del session
