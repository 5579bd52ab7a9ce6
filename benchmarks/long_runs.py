"""Tests the search by long open-loop runs below and above the rate that it found.

    .venv/bin/python -m benchmarks.long_runs configs/nexmark.yaml [--cells TEXT] [--seconds 120] [--out FILE]

For each cell of the benchmark file: `streamgauge search --long-runs SECONDS`, which runs 0.9 and 1.1 of the found rate
in the process that was searched. The rate holds if the run at 0.9 settles at the age that the search predicts, such as
a/(1 − b·r), within 20 %, and if the age grows in the run at 1.1. With --seconds 0 the searches alone are run. A cell
that --out holds already is compared with its first search: do the intervals overlap?
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.kept import Kept
from streamgauge import config

TOLERANCE = 0.2
Json = dict[str, Any]


def cli(*words: str) -> list[Json]:
    """Runs a streamgauge command; returns the JSON lines that it printed. Its log goes to our standard error."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("streamgauge")), *words, "--json"],
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(record: Json, first: Json | None) -> list[str]:
    """Cells of a line of the table; first: an earlier search of the cell."""
    rate, interval = record["sustainable_rate_events_per_s"], record["interval"]
    overlaps = ""
    if first is not None and interval and first["interval"]:
        low, high = interval
        overlaps = "yes" if low <= first["interval"][1] and first["interval"][0] <= high else "NO"
    cells = [
        record["name"], "none" if rate is None else f"{rate:,.0f}",
        f"{interval[0]:,.0f} to {interval[1]:,.0f}" if interval else "", overlaps,
        str(record["constraint"]), record["outcome"], f"{record['seconds']:.0f}",
    ]  # fmt: skip
    for run in record.get("long_runs", []):
        age, predicted = run["age_s"], run["predicted_age_s"]
        right = {True: "right", False: "WRONG", None: "not checked"}[run["correct"]]
        if run["fraction"] < 1:
            close = predicted is not None and age is not None and abs(age / predicted - 1) <= TOLERANCE
            cells += [f"{predicted or 0:.2f}", f"{age or 0:.2f}", "yes" if close else "NO", right]
        else:
            grows = {"unsustainable": "yes", "sustainable": "NO"}.get(run["outcome"], "unclear")
            cells += [f"{run['last_age_s'] or 0:.1f}", grows]
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description="Long runs at 0.9 and 1.1 of the rate that a search finds")
    parser.add_argument("file")
    parser.add_argument("--cells", default="", help="only those whose name holds this text")
    parser.add_argument("--seconds", type=float, default=120.0, help="0: the searches alone")
    parser.add_argument("--artifacts", type=Path)
    Kept.options(parser)
    args = parser.parse_args()
    kept = Kept(args)
    if not args.print:
        benchmark = config.load(Path(args.file))
        with tempfile.TemporaryDirectory() as scratch:
            for cell in benchmark.all_cells():
                if args.cells not in cell.name:
                    continue
                began = time.time()
                outcomes = cli(
                    "search", args.file, "--experiment", cell.experiment, "--workload", cell.workload, "--system",
                    cell.system, "--artifacts", str(args.artifacts or scratch), "--long-runs", f"{args.seconds:g}",
                )  # fmt: skip
                if not outcomes:
                    print(f"{cell.name}: the search failed", file=sys.stderr)
                    continue
                kept.add({"name": cell.name, "at": began, "seconds": time.time() - began, **outcomes[0]})
    table = Table(
        "cell", "rate", "90 % interval", "overlaps the first", "limited by", "outcome", "s",
        "age predicted at 0.9 (s)", "measured (s)", "within 20 %", "output", "last age at 1.1 (s)", "grows",
    )  # fmt: skip
    firsts: dict[str, Json] = {}
    for record in kept.all:
        table.add_row(*row(record, firsts.get(record["name"])))
        firsts.setdefault(record["name"], record)
    Console(width=230).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
