"""Measures how much the windows of one warm process differ, which decides how many blocks a comparison needs.

    .venv/bin/streamgauge run configs/flights.yaml --only generate
    .venv/bin/python -m benchmarks.windows configs/flights.yaml --system spark --options "-Xms3g -Xmn1500m"
        [--workload hourly] [--rows 640000] [--seconds 5] [--blocks 6]

The first two streams take turns, A B B A. A line of the table has the relative standard deviations of a batch within
its window, of a window, and of a block's ratio; and how long a window takes with the change before it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from streamgauge.bench.measure.cell import ReadyCell, ready
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.search.shared import block_order
from streamgauge.bench.search.steps import Hold
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, load
from streamgauge.records.measurement import Purpose, Window

_WARM_UP = 8


def window(bench: ReadyCell, number: int, rows: int, seconds: float, token: int, *, pinned: bool = True) -> Window:
    """Measures a window of that cell."""
    bench.turn_to(bench.cells[number])
    purpose: Purpose = "pair" if pinned else "compile"
    return bench.window(Hold(1, purpose, rows, "", seconds, seconds, 1.0, 2), token=token)


def row(bench: ReadyCell, rows: int, seconds: float, blocks: int, token: int) -> tuple[str, ...]:
    """Measures so many blocks; returns a row of the table."""
    windows, ratios, wall_s = list[Window](), list[float](), list[float]()
    for block in range(blocks):
        logs: dict[int, list[float]] = {0: [], 1: []}
        for number in block_order(1, block, 2):
            begun = time.monotonic()
            measured = window(bench, number, rows, seconds, token)
            if measured.invalid is not None or not measured.batches:
                raise SystemExit(f"a window of {rows} rows is invalid: {measured.invalid}")
            wall_s.append(time.monotonic() - begun)
            windows.append(measured)
            logs[number].append(math.log(measured.rows / measured.seconds))
        ratios.append(statistics.mean(logs[1]) - statistics.mean(logs[0]))
    batches = [[batch.seconds for batch in one.batches] for one in windows]
    relative = [(seconds_ / statistics.mean(own)) - 1 for own in batches for seconds_ in own]
    spent = [math.log(one.seconds / len(one.batches)) for one in windows]
    return (
        f"{rows:,}",
        f"{statistics.mean(map(statistics.mean, batches)):.2f} s",
        *(f"{100 * statistics.stdev(values):.1f} %" for values in (relative, spent, ratios)),
        f"{statistics.mean(wall_s):.1f} s",
    )


def with_options(benchmark: Benchmark, name: str, options: str) -> Benchmark:
    """Returns the benchmark with these options for the JVM of that system, in place of its own settings of Spark."""
    conf = {"spark.driver.extraJavaOptions": options}
    systems = tuple(
        one.model_copy(update={"conf": conf} if options else {}) for one in benchmark.systems if one.name == name
    )
    return benchmark.model_copy(update={"systems": systems, "cells": None})


def main() -> int:
    parser = argparse.ArgumentParser(description="How much windows of one process differ")
    parser.add_argument("file", type=Path)
    parser.add_argument("--system", required=True)
    parser.add_argument("--workload")
    parser.add_argument("--options", default="", help="of the JVM, for a system of Spark; none: as the file has it")
    parser.add_argument("--artifacts", type=Path, default=Path("artifacts"))
    parser.add_argument("--rows", default="640000", help="held, one line each")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a window")
    parser.add_argument("--blocks", type=int, default=6)
    args = parser.parse_args()
    benchmark, store = with_options(load(args.file), args.system, args.options), Store(args.artifacts)
    workload = args.workload or benchmark.workloads[0].name
    cells = [one for one in benchmark.all_cells() if one.workload == workload][:2]
    table = Table(
        "rows", "a batch", "batches differ by", "windows differ by", "blocks differ by", "a window with its change"
    )
    with (
        tempfile.TemporaryDirectory() as place,
        measuring(place) as token,
        ready(benchmark, store, cells[0], Path(place) / "work", others=cells[1:]) as bench,
    ):
        for turn in range(_WARM_UP):
            window(bench, turn % 2, 20_000 if turn % 3 else 200_000, 5.0, token, pinned=turn > 2)
        for rows in map(int, args.rows.split(",")):
            table.add_row(*row(bench, rows, args.seconds, args.blocks, token))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
