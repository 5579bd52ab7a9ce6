"""Compares the spread of rates per yardstick unit from run to run with that of the rates themselves.

    .venv/bin/python -m benchmarks.spread artifacts/runs

Reads search.json of every cell of these runs. A row is a cell that at least three runs searched: how many did, the
median rate, and the standard deviation of the rate and of the rate per yardstick unit, each relative to its mean.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, median, stdev

from rich.console import Console
from rich.table import Table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    pairs_of = defaultdict(list)
    for file in sorted(parser.parse_args().runs.glob("*/cells/*/search.json")):
        record = json.loads(file.read_text())
        if record.get("events_per_yardstick_unit"):
            pair = record["sustainable_rate_events_per_s"], record["events_per_yardstick_unit"]
            pairs_of[file.parent.name].append(pair)
    table = Table("cell", "searches", "median events/s", "sd of the rate", "sd per yardstick unit")
    for cell, pairs in pairs_of.items():
        if len(pairs) > 2:
            rates, per_unit = zip(*pairs, strict=True)
            spreads = [f"{stdev(values) / mean(values):.1%}" for values in (rates, per_unit)]
            table.add_row(cell, str(len(pairs)), f"{median(rates):,.0f}", *spreads)
    Console().print(table)


if __name__ == "__main__":
    main()
