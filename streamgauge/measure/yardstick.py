"""The machine's own noise: a fixed piece of work whose speed should never change, and what a hypervisor takes away."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from math import nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
    """Ticks since the machine began, summed over some CPUs; all 0 where nothing tells them."""

    busy: int = 0  # in user and system mode
    idle: int = 0  # waiting for a disk too
    stolen: int = 0  # ready to run, but the hypervisor ran somebody else

    @classmethod
    def of(cls, stat: str, cpus: Collection[int] | None = None) -> CpuTimes:
        """From the text of /proc/stat; None means all CPUs."""
        busy = idle = stolen = 0
        for line in stat.splitlines():
            name, *fields = line.split() or [""]
            if name[:3] != "cpu" or not name[3:].isdigit() or (cpus is not None and int(name[3:]) not in cpus):
                continue
            # user and nice hold guest times already; old kernels tell fewer fields
            user, nice, system, waiting, iowait, irq, softirq, steal = ([*map(int, fields), *[0] * 8])[:8]
            busy += user + nice + system + irq + softirq
            idle += waiting + iowait
            stolen += steal
        return cls(busy, idle, stolen)

    def since(self, earlier: CpuTimes) -> Shares:
        """What became of the time in between."""
        busy, idle, stolen = (
            max(0, now - before)  # iowait may fall
            for now, before in (
                (self.busy, earlier.busy),
                (self.idle, earlier.idle),
                (self.stolen, earlier.stolen),
            )
        )
        total = busy + idle + stolen
        return Shares(busy / total, stolen / total) if total else Shares(nan, nan)


@dataclass(frozen=True)
class Shares:
    """Fractions of the time of all CPUs; NaN where nothing tells them, or the time is shorter than a tick."""

    busy: float
    steal: float


def steal(cpus: Collection[int] | None = None, stat: Path = Path("/proc/stat")) -> CpuTimes:
    """The CPUs' times up to now; None means all CPUs."""
    try:
        return CpuTimes.of(stat.read_text(), cpus)
    except OSError:
        return CpuTimes()


@dataclass(frozen=True)
class Yard:
    """One run of the yardstick."""

    cpus: tuple[int, ...]
    units_per_s: float  # all units by the sum of all CPUs' wall seconds: what one of them does
    slowest_units_per_s: float  # of the CPU that took longest
    cpu_seconds: float
    cpu_wall_seconds: float  # wall seconds, summed over the CPUs
    wall_seconds: float  # of the whole run
    steal: float  # a fraction of these CPUs' time; a tick is 10 ms, so a single run tells it coarsely


class Yardstick:
    """Runs the same work on each of the given CPUs.

    All at once, as an engine does: so a run is short however many CPUs there are, and meets what they share. Each in a
    new thread that pins itself and ends: the caller's affinity is never touched, and numpy lets go of the interpreter.
    """

    def __init__(self, cpus: Collection[int] | None = None, units: int = UNITS) -> None:
        """None means all CPUs that the process may use; others than those are left out."""
        allowed = os.sched_getaffinity(0)
        self.cpus = tuple(sorted(allowed if cpus is None else set(cpus) & allowed))
        if not self.cpus or units < 1:
            raise ValueError(
                f"found CPUs {cpus} and {units} units, allowed: some of {sorted(allowed)}, at least 1 unit"
            )
        self._units, self._table = units, table()

    def run(self) -> Yard:
        runs = [_Run(cpu, self._table, self._units) for cpu in self.cpus]
        start = threading.Barrier(len(runs) + 1)
        threads = [threading.Thread(target=run, args=(start,), name=f"yardstick-{run.cpu}") for run in runs]
        for thread in threads:
            thread.start()
        start.wait()
        before, began = steal(self.cpus), time.perf_counter()
        for thread in threads:
            thread.join()
        wall_seconds, after = time.perf_counter() - began, steal(self.cpus)
        for run in runs:
            if run.failure is not None:
                raise run.failure
        cpu_wall_seconds = sum(run.wall_seconds for run in runs)
        return Yard(
            cpus=self.cpus,
            units_per_s=self._units * len(runs) / cpu_wall_seconds,
            slowest_units_per_s=self._units / max(run.wall_seconds for run in runs),
            cpu_seconds=sum(run.cpu_seconds for run in runs),
            cpu_wall_seconds=cpu_wall_seconds,
            wall_seconds=wall_seconds,
            steal=after.since(before).steal,
        )


def moved(before: Yard, after: Yard, tolerance: float = 0.1) -> bool:
    """Whether the faster of the two is faster by more than the tolerance; then what was measured in between is void."""
    slower, faster = sorted((before.units_per_s, after.units_per_s))
    return faster > slower * (1 + tolerance)


def table() -> Words:
    """The table that the work looks up in; the same on every machine."""
    words = np.arange(_TABLE_ROWS, dtype=np.uint64)
    _scramble(words, np.empty_like(words))
    return words


def work(units: int, looked_up: Words) -> int:
    """Does that many units; a check sum, the same on every machine.

    A unit is what an engine does to a batch of rows: it hashes keys, looks each up in a table larger than the caches,
    sorts, sums by group and copies a piece of the table. Integers only; no BLAS, which has threads of its own; and no
    memory asked for in between, since the kernel's pages would be shared with whatever else this process does.
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
    """Hashes them in place, with the two rounds of MurmurHash3's finaliser."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        np.right_shift(words, np.uint64(33), out=scratch)
        np.bitwise_xor(words, scratch, out=words)
        np.multiply(words, np.uint64(factor), out=words)


class _Run:
    """The work on one CPU, timed by its own thread."""

    def __init__(self, cpu: int, looked_up: Words, units: int) -> None:
        self.cpu, self._table, self._units = cpu, looked_up, units
        self.wall_seconds = self.cpu_seconds = 0.0
        self.failure: Exception | None = None

    def __call__(self, start: threading.Barrier) -> None:
        try:
            os.sched_setaffinity(0, {self.cpu})  # of this thread
            work(1, self._table)  # caches and pages are warm then
        except Exception as problem:  # the others wait for this one
            self.failure = problem
        start.wait()
        if self.failure is None:
            wall, cpu = time.perf_counter(), time.thread_time()
            work(self._units, self._table)
            self.wall_seconds, self.cpu_seconds = time.perf_counter() - wall, time.thread_time() - cpu
