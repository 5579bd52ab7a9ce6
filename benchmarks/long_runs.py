"""Hold the search against reality: long open-loop runs below and above the rate that it found.

    .venv/bin/python -m benchmarks.long_runs configs/nexmark.yaml [--cells TEXT] [--seconds 120] [--out FILE]

For each cell of the benchmark file: `streamgauge search`, then `streamgauge trial` of --seconds at 0.9 and at 1.1 of
the found rate, each in a fresh process of the system. The rate holds if the run at 0.9 ends at the age that the search
predicts, a/(1 − b·r), within 20 %, and if the run at 1.1 does not settle.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from streamgauge import config
from streamgauge.measure.yardstick import Yardstick
from streamgauge.report.model import settled_age, typical

BELOW, ABOVE, TOLERANCE = 0.9, 1.1, 0.2
Json = dict[str, Any]


def cli(*words: str) -> list[Json]:
    """The JSON lines that a streamgauge command printed; its log goes to our standard error."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("streamgauge")), *words, "--json"],
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def speed(cpus: tuple[int, ...] | None) -> float:
    """Units per second of the yardstick: the median of five runs."""
    stick = Yardstick(cpus)
    return statistics.median(stick.run().units_per_s for _ in range(5))


def measure(file: str, cell: config.Cell, cpus: tuple[int, ...] | None, seconds: float, work: list[str]) -> Json:
    """The search of a cell and its two long runs."""
    named = ["--experiment", cell.experiment, "--workload", cell.workload, "--system", cell.system, *work]
    began = time.time()
    (found,) = cli("search", file, *named)
    record: Json = {"cell": cell.name, "at": began, "search": found, "search_s": time.time() - began}
    if not seconds:
        return record
    record["yardstick"] = speed(cpus)
    rates = [f"{part * found['sustainable_rate_events_per_s']:.6g}" for part in (BELOW, ABOVE)]
    runs = cli("trial", file, *named, "--rate", rates[0], "--rate", rates[1], "--seconds", f"{seconds:g}")
    record["yardstick_after"] = speed(cpus)
    record[f"{BELOW:g}"], record[f"{ABOVE:g}"] = runs
    return record


def row(record: Json) -> list[str]:
    """A line of the table."""
    found = record["search"]
    rate, (low, high) = found["sustainable_rate_events_per_s"], found["interval"] or (0.0, 0.0)
    model = typical(found)
    cells = [
        record["cell"], f"{rate:,.0f}", f"{low:,.0f}–{high:,.0f}", f"{found['constraint']}", f"{found['outcome']}",
        f"{record['search_s']:.0f}",
    ]  # fmt: skip
    for part in (BELOW, ABOVE):
        if f"{part:g}" not in record:
            break
        trial = record[f"{part:g}"]
        age = settled_age(trial)
        predicted = model.age_at(part * rate) if model else None
        if part == BELOW:
            close = age is not None and predicted is not None and abs(age / predicted - 1) <= TOLERANCE
            cells += [f"{predicted:.2f}" if predicted else "–", f"{age:.2f}" if age is not None else "–"]
            cells += ["yes" if close else "NO"]
        else:
            cells += ["yes" if trial["outcome"] == "unsustainable" else "NO"]
            cells += [f"{trial['observation']['samples'][-1]['age_s']:.1f}" if trial["observation"]["samples"] else "–"]
        cells += [trial["outcome"], {True: "right", False: "WRONG", None: "–"}[trial["correct"]]]
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description="Long runs at 0.9 and 1.1 of the rate that a search finds")
    parser.add_argument("file")
    parser.add_argument("--cells", default="", help="only those whose name holds this text")
    parser.add_argument("--seconds", type=float, default=120.0, help="0: the searches alone")
    parser.add_argument("--out", type=Path, help="JSON lines of all records, to add to")
    parser.add_argument("--artifacts", type=Path)
    parser.add_argument("--print", action="store_true", help="only the table of what --out holds")
    args = parser.parse_args()
    records: list[Json] = []
    if args.print:
        records = [json.loads(line) for line in args.out.read_text().splitlines()]
    else:
        benchmark = config.load(Path(args.file))
        with tempfile.TemporaryDirectory() as scratch:
            work = ["--artifacts", str(args.artifacts or scratch)]
            for cell in benchmark.all_cells():
                if args.cells not in cell.name:
                    continue
                cpus = benchmark.system(cell.system).cpus
                records.append(measure(args.file, cell, cpus, args.seconds, work))
                if args.out:
                    with args.out.open("a") as out:
                        out.write(json.dumps(records[-1]) + "\n")
    table = Table(
        "cell", "rate", "90 % interval", "limited by", "outcome", "s",
        "age predicted (s)", "measured (s)", "within 20 %", "at 0.9", "output",
        "falls behind", "last age (s)", "at 1.1", "output",
    )  # fmt: skip
    for record in records:
        table.add_row(*row(record))
    Console(width=230).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
