"""Measures how quiet this machine is: the yardstick's speed, repeatedly, and the time stolen by the hypervisor.

    .venv/bin/python -m benchmarks.yardstick [--repeats 30] [--pause-s 0.2] [--cpus 0 1] [--json]

A spread (most - least, of the median) above a few per cent means neighbours, a busy machine or a changing clock:
figures that were measured meanwhile bear the same noise. `moved` counts how often one run and the next differ by more
than 10 %.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from statistics import median, stdev

from rich.console import Console
from rich.table import Table

from streamgauge.bench.measure.yardstick import Yard, Yardstick, moved, steal

COLUMNS: dict[str, Callable[[Yard], float]] = {
    "units per CPU second of wall time": lambda yard: yard.units_per_s,
    "the same, slowest CPU": lambda yard: yard.slowest_units_per_s,
    "units per second of CPU time": lambda yard: yard.units_per_s * yard.cpu_wall_seconds / yard.cpu_seconds,
    "wall seconds of a run": lambda yard: yard.wall_seconds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--pause-s", type=float, default=0.2)
    parser.add_argument("--cpus", type=int, nargs="+")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.repeats < 2:
        parser.error("--repeats: at least 2")
    try:
        stick = Yardstick(args.cpus)
    except ValueError as problem:
        parser.error(str(problem))
    yards, before = [], steal(stick.cpus)
    for _ in range(args.repeats):
        yards.append(stick.run())
        time.sleep(args.pause_s)
    shares = steal(stick.cpus).since(before)
    if args.json:
        print(json.dumps({"runs": [asdict(yard) for yard in yards], "meanwhile": asdict(shares)}))
        return
    cpus = ", ".join(map(str, stick.cpus))
    table = Table("", "median", "least", "most", "spread", "sd", title=f"{args.repeats} runs on CPUs {cpus}")
    for name, value in COLUMNS.items():
        values = [value(yard) for yard in yards]
        middle = median(values)
        shown = [f"{figure:,.4g}" for figure in (middle, min(values), max(values))]
        table.add_row(name, *shown, f"{(max(values) - min(values)) / middle:.1%}", f"{stdev(values) / middle:.1%}")
    console = Console(width=120)
    console.print(table)
    console.print(
        f"moved from one run to the next: {sum(moved(*pair) for pair in pairwise(yards))} of {args.repeats - 1}; "
        f"over all of it these CPUs were busy for {shares.busy:.1%}, and {shares.steal:.2%} was stolen"
    )


if __name__ == "__main__":
    main()
