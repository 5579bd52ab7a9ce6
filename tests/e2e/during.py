"""Acts in the middle of a trial, and finds the processes that a test may kill there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import psutil

from streamgauge.records.driver import DriverFigures


def our_processes(name: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE and name in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


class DuringATrial:
    """Does something once, in a thread of its own, so long after the trial's start; given to run_trial as progress."""

    def __init__(self, action: Callable[[], object], after_s: float = 1.0) -> None:
        self._timer = threading.Timer(after_s, action)

    def __call__(self, seen: Sequence[DriverFigures]) -> None:
        if seen[0]["state"] == "started" and not self._timer.is_alive() and not self._timer.finished.is_set():
            self._timer.start()

    def done(self) -> None:
        assert self._timer.ident is not None, "the trial never started"
        self._timer.join()
