"""Measures the machine's own noise: the speed of a fixed piece of work, and the time stolen by a hypervisor."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from math import nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamgauge.base.words import counted

#: about 0.15 s of a core of today
UNITS = 80
_ROWS = 1 << 16
_TABLE_ROWS = 1 << 22  # 32 MiB: more than a core's own caches hold
_PIECE_ROWS = 1 << 18
_GROUP_BITS = 10
_GROUPS = 1 << _GROUP_BITS
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class CpuTimes:
    """Clock ticks since the machine's start, summed over some CPUs; all 0 where they are unknown."""

    busy: int = 0  # in user and system mode
    idle: int = 0  # includes waiting for a disk
    stolen: int = 0  # ready to run, but the hypervisor ran somebody else

    @classmethod
    def of(cls, stat: str, cpus: Collection[int] | None = None) -> CpuTimes:
        """Reads the text of /proc/stat; cpus: None means all of them."""
        busy = idle = stolen = 0
        for line in stat.splitlines():
            name, *fields = line.split() or [""]
            if name[:3] != "cpu" or not name[3:].isdigit() or (cpus is not None and int(name[3:]) not in cpus):
                continue
            # user and nice include guest times; old kernels have fewer fields
            user, nice, system, waiting, iowait, irq, softirq, steal = ([*map(int, fields), *[0] * 8])[:8]
            busy += user + nice + system + irq + softirq
            idle += waiting + iowait
            stolen += steal
        return cls(busy, idle, stolen)

    def stolen_since(self, earlier: CpuTimes) -> float:
        """Share of the time since an earlier reading that was stolen; NaN where it is not known, or below a tick."""
        spans = [(self.busy, earlier.busy), (self.idle, earlier.idle), (self.stolen, earlier.stolen)]
        ticks = [max(0, now - before) for now, before in spans]  # iowait may fall
        return ticks[-1] / sum(ticks) if any(ticks) else nan


def steal(cpus: Collection[int] | None = None, stat: Path = Path("/proc/stat")) -> CpuTimes:
    """Reads the CPUs' times up to now; cpus: None means all of them."""
    try:
        return CpuTimes.of(stat.read_text(encoding="utf-8"), cpus)
    except OSError:
        return CpuTimes()


class Yardstick:
    """Runs the same work on each of the given CPUs, on all of them at once.

    So a run is short however many CPUs there are, and competes for what they share, as an engine does. Each CPU has a
    new thread that pins itself and ends, so the caller's affinity never changes. The threads run in parallel because
    numpy releases the interpreter's lock.
    """

    def __init__(self, cpus: Collection[int] | None = None, units: int = UNITS) -> None:
        """cpus: None means all that the process may use; others are left out. Raises ValueError if none is left."""
        allowed = os.sched_getaffinity(0)
        self.cpus = tuple(sorted(allowed if cpus is None else set(cpus) & allowed))
        if not self.cpus or units < 1:
            raise ValueError(
                f"found CPUs {cpus} and {counted(units, 'unit')}, allowed: some of {sorted(allowed)}, at least 1 unit"
            )
        self._units, self._table = units, table()

    def run(self) -> float:
        """Returns the mean speed of one of the CPUs, in units/s."""
        runs = [_Run(cpu, self._table, self._units) for cpu in self.cpus]
        start = threading.Barrier(len(runs) + 1)
        threads = [threading.Thread(target=run, args=(start,), name=f"yardstick-{run.cpu}") for run in runs]
        for thread in threads:
            thread.start()
        start.wait()
        for thread in threads:
            thread.join()
        for run in runs:
            if run.failure is not None:
                raise run.failure
        return self._units * len(runs) / sum(run.wall_seconds for run in runs)


def moved(before: float, after: float, tolerance: float = 0.1) -> bool:
    """True if the faster run is faster by more than the tolerance (a fraction): what was measured between is void."""
    slower, faster = sorted((before, after))
    return faster > slower * (1 + tolerance)


def table() -> Words:
    """The table in which the work looks up keys, made once in a process; it is the same on every machine."""
    return _table(_TABLE_ROWS)


@cache
def _table(rows: int) -> Words:
    words = np.arange(rows, dtype=np.uint64)
    _scramble(words, np.empty_like(words))
    words.setflags(write=False)
    return words


def work(units: int, looked_up: Words) -> int:
    """Does that many units of work; returns a checksum, which is the same on every machine.

    A unit is what an engine does to a batch of rows: it hashes keys, looks each up in a table larger than the caches,
    sorts, sums by group and copies a piece of the table. It uses integers only, and no BLAS, which has threads of its
    own. The large arrays are allocated before: the kernel's paging is shared with whatever else this process does.
    """
    rows, edges = np.arange(_ROWS, dtype=np.uint64), np.arange(_GROUPS, dtype=np.uint64) << np.uint64(64 - _GROUP_BITS)
    keys, other, piece = np.empty_like(rows), np.empty_like(rows), np.empty(_PIECE_ROWS, np.uint64)
    total = 0
    for unit in range(units):
        np.add(rows, np.uint64(unit * _ROWS), out=keys)
        _scramble(keys, other)
        np.bitwise_and(keys, np.uint64(_TABLE_ROWS - 1), out=other)
        looked_up.take(other.view(np.int64), out=keys, mode="clip")
        keys.sort()
        groups = np.minimum(np.searchsorted(keys, edges), _ROWS - 1)
        sums = np.add.reduceat(keys, groups)
        first = unit * _PIECE_ROWS % _TABLE_ROWS
        np.copyto(piece, looked_up[first : first + _PIECE_ROWS])
        total += int(np.bitwise_xor.reduce(sums)) + int(np.bitwise_xor.reduce(piece))
    return total % 2**64


def _scramble(words: Words, scratch: Words) -> None:
    """Hashes the words in place, with the two rounds of MurmurHash3's finaliser."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        np.right_shift(words, np.uint64(33), out=scratch)
        np.bitwise_xor(words, scratch, out=words)
        np.multiply(words, np.uint64(factor), out=words)


class _Run:
    """The work on one CPU, timed by its own thread."""

    def __init__(self, cpu: int, looked_up: Words, units: int) -> None:
        self.cpu, self._table, self._units = cpu, looked_up, units
        self.wall_seconds = 0.0
        self.failure: Exception | None = None

    def __call__(self, start: threading.Barrier) -> None:
        try:
            os.sched_setaffinity(0, {self.cpu})  # of this thread
            work(1, self._table)  # warms caches and pages
        except Exception as problem:  # go on to the barrier, where the others wait
            self.failure = problem
        start.wait()
        if self.failure is None:
            began = time.perf_counter()
            work(self._units, self._table)
            self.wall_seconds = time.perf_counter() - began
