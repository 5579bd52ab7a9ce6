"""Samples what a long run may use up: memory, state, open files, disk; and knows how much of each there is."""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from streamgauge.base.cgroups import memory_limit
from streamgauge.bench.driver.system import Adapter
from streamgauge.records.driver import DriverFigures

#: what our part of an engine writes for the oracle grows with the run, and is not the system's: its account of
#: watermarks, and the rows that a publisher keeps
_ACCOUNTS = re.compile(r"watermarks-\d+\.jsonl|(events-\d+|warm)\.arrow")
#: looks at a system during a trial; what the system writes is below the folder
Look = Callable[[Adapter, Path, Sequence[DriverFigures]], None]


class Vitals:
    """Looks at a system every few seconds of a trial.

    series: by name, pairs of seconds since the offering began and a value. limits: by name, what there is at most.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s, self._next = every_s, 0.0
        self.series: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        self.limits: dict[str, float] = {}

    def __call__(self, system: Adapter, work: Path, drivers: Sequence[DriverFigures]) -> None:
        """Takes a sample if it is time. work: what the system writes is below it."""
        states, now = {driver["state"] for driver in drivers}, time.monotonic()
        if states != {"started"} or now < self._next:
            return
        at_s = (time.time_ns() - min(driver["start_wall_ns"] for driver in drivers)) / 1e9
        if at_s < 0:  # the start is planned, and nothing is offered before it
            return
        self._next = now + self._every_s
        vitals = {**system.vitals(), "disk": disk_bytes(work)}
        if not self.limits:
            self.limits = {
                "resident_memory": _memory_bytes(vitals.get("resident_memory", 0.0)),
                "disk": vitals["disk"] + shutil.disk_usage(work).free,
            }
        if (heap := vitals.pop("heap", None)) is not None:
            vitals |= {"heap_after_collection": heap, "collections": vitals.get("collections", 0)}
        for name, limit in (("heap_after_collection", "heap_limit"), ("open_files", "open_files_limit")):
            if (most := vitals.pop(limit, None)) is not None:
                self.limits[name] = most
        for name, value in vitals.items():
            self.series[name].append((at_s, value))


def disk_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, but for our own accounts; those that are removed meanwhile count or not."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in (one for one in names if not _ACCOUNTS.fullmatch(one)):
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue
    return total


def _memory_bytes(held: float) -> float:
    """Most memory that a system may have: what it holds and what is available, up to this control group's limit."""
    return min(held + psutil.virtual_memory().available, memory_limit() or math.inf)
