"""Compares a stream with itself, under another name, on a real engine: how often the interval of the ratio holds 1.

    .venv/bin/streamgauge run configs/flights.yaml --only validate
    .venv/bin/python -m benchmarks.same_stream configs/flights.yaml --experiment ordered --system spark
        [--workload hourly] [--processes 4] [--comparisons 5] [--blocks 6] [--markdown]

Each process is warmed up once, climbs both ladders, and then makes several comparisons, each of its own blocks. A 90 %
interval of 20 comparisons holds 1 in at least 17 of them only 87 times of 100, if it is calibrated.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.search import as_markdown
from streamgauge.bench.measure import shared_search
from streamgauge.bench.measure.cell import ready
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.searcher import earlier
from streamgauge.bench.search.shared import ratio
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Cell, load
from streamgauge.records.measurement import Window
from streamgauge.stats.paired import Ratio


def twice(benchmark: Benchmark, args: argparse.Namespace) -> Benchmark:
    """The benchmark with that experiment under two names, and the search that its comparisons need."""
    one = benchmark.experiment(args.experiment)
    system = benchmark.system(args.system)
    workload = benchmark.workload(args.workload or benchmark.workloads[0].name)
    search = benchmark.search.model_copy(
        update={"proof_steps": 0, "processes": 1, "blocks": args.blocks * args.comparisons, "ratio_error": 1.0}
    )
    return benchmark.model_copy(
        update={
            "experiments": (one, one.model_copy(update={"name": f"{one.name}-again"})),
            "systems": (system,),
            "workloads": (workload,),
            "cells": None,
            "search": search,
        }
    )


def comparisons(benchmark: Benchmark, store: Store, place: Path, blocks: int) -> dict[int, list[Ratio]]:
    """Measures one process; returns, of each cell but the first, its ratio to that one in each group of blocks."""
    cells: tuple[Cell, ...] = benchmark.all_cells()
    group = [CellRun(benchmark, store, cell, place) for cell in cells]
    for one in group:
        one.directory.mkdir(parents=True)
    with (
        measuring(str(place)) as token,
        ready(benchmark, store, cells[0], place / "work", others=cells[1:]) as bench,
    ):
        shared_search.turn(bench, group, token, 1)
    logs = [earlier(one.directory, one.plan_key) for one in group]
    known, limits = shared_search.in_order(logs), logs[0][0].limits
    ratios: dict[int, list[Ratio]] = {}
    for first in range(0, benchmark.search.blocks, blocks):
        own = [
            one
            for one in known
            if not (isinstance(one.of, Window) and one.of.purpose == "pair") or first <= one.of.block < first + blocks
        ]
        for number in range(1, len(cells)):
            result = ratio(benchmark.search, limits, own, number)
            if result is not None:
                ratios.setdefault(number, []).append(result)
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(description="Comparisons of a stream with itself on a real engine")
    parser.add_argument("file", type=Path)
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--system", required=True)
    parser.add_argument("--workload")
    parser.add_argument("--artifacts", type=Path, default=Path("artifacts"))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--comparisons", type=int, default=5, help="of each process")
    parser.add_argument("--blocks", type=int, default=6, help="of a comparison")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    args = parser.parse_args()
    benchmark, store = twice(load(args.file), args), Store(args.artifacts)
    table, all_ratios = Table("process", "ratio", "90 % interval", "holds 1"), list[Ratio]()
    with tempfile.TemporaryDirectory() as place:
        for process in range(1, args.processes + 1):
            for one in comparisons(benchmark, store, Path(place) / str(process), args.blocks)[1]:
                all_ratios.append(one)
                held = "yes" if one.low <= 1 <= one.high else "no"
                table.add_row(str(process), f"{one.ratio:.3f}", f"{one.low:.3f} to {one.high:.3f}", held)
                print(f"process {process}: {one.ratio:.4f} ({one.low:.4f} to {one.high:.4f})", file=sys.stderr)
    holds = sum(one.low <= 1 <= one.high for one in all_ratios)
    half = statistics.median(one.half_width for one in all_ratios)
    table.add_row(
        "all",
        f"{statistics.mean(one.ratio for one in all_ratios):.3f}",
        f"± {half:.1%} (median)",
        f"{holds} of {len(all_ratios)}",
    )
    print("\n".join(as_markdown(table))) if args.markdown else Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
