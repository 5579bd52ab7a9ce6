"""Measures contestants that do the same work in turns: CPU seconds, wall seconds and memory."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import psutil

#: of a table that has the rows of rows()
COLUMNS = ("work", "who", "CPU s", "min–max", "wall s", "min–max", "peak MiB", "CPU, ours ÷ theirs", "wall")
#: for each contestant, CPU seconds, wall seconds and MiB of each round
Figures = dict[str, list[tuple[float, float, float]]]


def make_source(path: Path, rows: int, late: float = 0.0) -> None:
    """Writes lines of about 100 bytes: an id, an event time in ms about a millisecond apart, six more fields.

    late: fraction of the events that are up to 50 ms late already.
    """
    if path.exists():
        return
    rng = np.random.default_rng(1)
    begin = 1_700_000_000_000
    with open(path.with_suffix(".tmp"), "wb") as out:
        for start in range(0, rows, 250_000):
            n = min(250_000, rows - start)
            times = begin + np.arange(start, start + n)
            times -= np.where(rng.random(n) < late, rng.integers(1, 51, n), 0) if late else 0
            a, b, c = (rng.integers(10**k, 10 ** (k + 1), n) for k in (5, 8, 6))
            pad = b"some-channel-name,https://example.org/item/"
            lines = [
                b"%d,%d,%d,%d,%s%d,%d,x\n" % (start + i, t, p, q, pad, r, q)
                for i, (t, p, q, r) in enumerate(zip(times.tolist(), a.tolist(), b.tolist(), c.tolist(), strict=True))
            ]
            out.write(b"".join(lines))
    path.with_suffix(".tmp").rename(path)


@dataclass(frozen=True)
class Side:
    """A contestant's work.

    prepare: done before, and not measured. reaps: it leaves no process, and the system's account of ended children has
    all of it.
    """

    work: Callable[[], object]
    prepare: Callable[[], object] = bool
    reaps: bool = False

    def __call__(self) -> None:
        self.work()


class Meter:
    """CPU seconds of this process and all its descendants, including those that have ended, and the peak memory."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._distant: dict[tuple[int, float], float] = {}

    def cpu(self) -> float:
        """CPU seconds. A worker that Spark ended is in no account of children, so its last reading counts on."""
        total, near = sum(os.times()[:4]), 0.0
        for child in psutil.Process().children(recursive=True):
            try:
                t = child.cpu_times()
                if child.ppid() == os.getpid():
                    near += t.user + t.system
                else:
                    self._distant[child.pid, child.create_time()] = t.user + t.system
            except psutil.Error:
                continue
        return total + near + sum(self._distant.values())

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.cpu()
            for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    if "java" not in process.name():
                        self.peak = max(self.peak, process.memory_info().rss)
                except psutil.Error:
                    continue

    def run(self, work: Callable[[], object], *, reaps: bool = False) -> tuple[float, float, float]:
        """(CPU seconds, wall seconds, peak MiB of the largest process that is no JVM). reaps: see `Side`."""
        gc.collect()
        self.peak = 0
        self._stop.clear()
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        cpu, wall, reaped = self.cpu(), time.perf_counter(), sum(os.times()[2:4])
        work()
        wall, cpu = time.perf_counter() - wall, self.cpu() - cpu
        if reaps:
            cpu = sum(os.times()[2:4]) - reaped
        self._stop.set()
        watcher.join()
        return cpu, wall, self.peak / 2**20


def polars(script: str, **values: object) -> Side:
    """Returns a side that runs a script with Polars in a process of its own; its imports are not counted.

    values: variables of the script.
    """
    code = "import polars as pl, numpy as np, sys\n"
    code += "".join(f"{k} = {v!r}\n" for k, v in values.items())
    code += "print('ready', flush=True); sys.stdin.readline()\n" + script

    def work() -> None:
        process = prepared.pop()
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        if process.wait():
            raise RuntimeError(f"polars failed: {script}")

    prepared: list[subprocess.Popen[str]] = []

    def prepare() -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("polars did not start")
        prepared.append(process)

    return Side(work, prepare)


def command(*arguments: str) -> Side:
    """Returns a side that runs a whole command."""
    return Side(partial(subprocess.run, arguments, check=True, capture_output=True), reaps=True)


def to_disk_after(work: Callable[[], object], folder: Path) -> None:
    """Does the work and waits until the disk has all files in the folder."""
    work()
    for file in (file for file in folder.rglob("*") if file.is_file()):
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())


def take_turns(
    meter: Meter,
    sides: Mapping[str, Callable[[], object]],
    before: Callable[[], None],
    warmups: int,
    repeats: int,
    written: Path | None = None,
) -> Figures:
    """Runs all contestants in each round, so that a drift of the machine meets all of them.

    before: called before each. written: a folder whose files must be on the disk when the clock stops.
    """
    figures: Figures = {who: [] for who in sides}
    for number in range(warmups + repeats):
        for who, given in sides.items():
            side = given if isinstance(given, Side) else Side(given)
            before()
            side.prepare()
            work = side.work if written is None else partial(to_disk_after, side.work, written)
            figure = meter.run(work, reaps=side.reaps)
            if number >= warmups:
                figures[who].append(figure)
    return figures


def rows(title: str, figures: Figures) -> Iterator[list[str]]:
    """Yields a row for each contestant: medians, spread, and the first one's medians divided by those of the others."""
    medians = {who: [statistics.median(run[i] for run in runs) for i in range(3)] for who, runs in figures.items()}
    first = next(iter(medians))
    for who, runs in figures.items():
        cells = []
        for i in (0, 1):
            one = [run[i] for run in runs]
            cells += [f"{medians[who][i]:.2f}", f"{min(one):.2f}–{max(one):.2f}"]
        ratios = ["", ""] if who == first else [f"{medians[first][i] / medians[who][i]:.2f}" for i in (0, 1)]
        yield [title if who == first else "", who, *cells, f"{medians[who][2]:.0f}", *ratios]
