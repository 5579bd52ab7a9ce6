"""A process session: everything that a child has started, wherever it hides in process groups."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil


class Session:
    """The session led by a child that was started with start_new_session."""

    def __init__(self, leader: int) -> None:
        self._sid, self._since = leader, psutil.Process(leader).create_time()

    def processes(self) -> list[psutil.Process]:
        """Those that still run: where nobody reaps orphans, dead ones stay listed."""
        found = []
        for process in psutil.process_iter():
            try:
                # younger than the leader: a recycled number is another session
                ours = os.getsid(process.pid) == self._sid and process.create_time() >= self._since - 0.1
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def cpu_seconds(self) -> float:
        """User and system time of all, and of their children that have ended."""
        total = 0.0
        for process in self.processes():
            try:
                total += sum(process.cpu_times()[:4])
            except psutil.Error:
                continue
        return total

    def rss_bytes(self) -> int:
        total = 0
        for process in self.processes():
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        return total

    def pin(self, cpus: Collection[int]) -> None:
        """All threads, and so what they will start; again until none has slipped through."""
        missed, allowed = True, set(cpus) & os.sched_getaffinity(0)
        while missed and allowed:
            missed = False
            for process in self.processes():
                with suppress(ProcessLookupError, FileNotFoundError):
                    for thread in Path(f"/proc/{process.pid}/task").glob("*"):
                        if os.sched_getaffinity(int(thread.name)) != allowed:
                            missed = True
                            os.sched_setaffinity(int(thread.name), allowed)

    def end(self, patience_s: float = 5.0) -> None:
        """SIGTERM, and SIGKILL for what does not go; returns when nothing is left or after twice the patience."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes():
                try:
                    process.send_signal(number)
                except psutil.Error:
                    continue
            deadline = time.monotonic() + patience_s
            while time.monotonic() < deadline:
                if not self.processes():
                    return
                time.sleep(0.05)
