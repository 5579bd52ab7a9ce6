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
from itertools import pairwise
from statistics import median, stdev

from rich.console import Console
from rich.table import Table

from streamgauge.bench.measure.yardstick import Yardstick, moved, steal


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
    speeds, before = [], steal(stick.cpus)
    for _ in range(args.repeats):
        speeds.append(stick.run())
        time.sleep(args.pause_s)
    stolen = steal(stick.cpus).stolen_since(before)
    if args.json:
        print(json.dumps({"units_per_s": speeds, "stolen": stolen}))
        return
    cpus = ", ".join(map(str, stick.cpus))
    table = Table("", "median", "least", "most", "spread", "sd", title=f"{args.repeats} runs on CPUs {cpus}")
    middle, least, most = median(speeds), min(speeds), max(speeds)
    shown = [f"{figure:,.4g}" for figure in (middle, least, most)]
    table.add_row("units/s of a CPU", *shown, f"{(most - least) / middle:.1%}", f"{stdev(speeds) / middle:.1%}")
    console = Console(width=120)
    console.print(table)
    console.print(
        f"moved from one run to the next: {sum(moved(*pair) for pair in pairwise(speeds))} of {args.repeats - 1}; "
        f"{stolen:.2%} of these CPUs' time was stolen meanwhile"
    )


if __name__ == "__main__":
    main()
