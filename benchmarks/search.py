"""Measures how accurate the search is: whole searches, on a virtual clock, against systems whose truth is known.

    .venv/bin/python -m benchmarks.search [--searches 100] [--processes 3] [--jobs 2] [--kinds TEXT] [--before COMMIT]
        [--alike]

A micro-batch of n rows takes a + n·1 µs or, in a slow system, a + n·1 ms, and has at most N rows. The allowed age is
10 s; fresh processes differ by 5 %, or not at all with --alike, which shows what the interval of one process holds. The
columns tell the median error, its deviation, how many of the 90 % intervals hold the truth, their mean half width, and
the median seconds a process. Two others stand beside it, on one process each, with bias and how often the truth lies in
what they give: the search as it was at --before (from the git history; only the noise of batches), and MLRsearch
(draft-ietf-bmwg-mlrsearch; package MLRsearch), whose trials are recovery trials of 20 s in the warm process: what the
backlog grows by is lost.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from rich.console import Console
from rich.table import Table

from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.simulate import VirtualProcess, calibrate
from streamgauge.config import Search

ROOT = Path(__file__).resolve().parents[1]
UNCAPPED, CAP = 10**9, 200_000
#: the allowed age of all searches
AGE_S = 10.0
MOST_BIAS, COVERAGE, MOST_SECONDS = 0.02, (0.85, 0.95), 150.0
#: runs in the old tree: whole searches against T = a + b·n with the noise of batches and 3 % between trials
OLD = """
import json, math, random, sys
from streamgauge.config import Search
from streamgauge.search import Rate, next_step
from streamgauge.trial import Sample, TrialObservation
from streamgauge.verdict import carried, judge

def trial(a, cap, rate, seconds, rng, noise, hold, factor):
    now, taken, samples, over = 0.0, 0, [], False
    while now < seconds:
        waiting = max(1, math.floor(now * rate) + 1 - taken)
        samples.append(Sample(now, max(0.0, now - taken / rate), waiting, taken, warm=len(samples) >= 3))
        if waiting > 10 * rate:
            over = True
            if not hold:
                break
        rows = min(waiting, cap)
        now += (a + 1e-6 * rows) * factor * max(0.2, rng.gauss(1, noise))
        taken += rows
        now = max(now, taken / rate)
    return TrialObservation(rate, seconds, tuple(samples), math.floor(min(now, seconds) * rate) + 1, taken, \
over and not hold)

a, cap, noise, count = json.loads(sys.argv[1])
rates = []
for seed in range(count):
    rng, plan, trials, spent = \
random.Random(seed), Search(trial_seconds=8, max_trials=10, min_rate=100, max_rate=4e6), [], 0.0
    while isinstance(step := next_step(plan, trials), Rate):
        seconds = 8 * step.seconds_factor
        seen = trial(a, cap, step.rate_events_per_s, seconds, rng, noise, step.purpose == "probe", rng.gauss(1, 0.03))
        trials.append(step.tried(judge(seen, plan), carried(seen)))
        spent += seconds
    rates.append([step.rate_events_per_s, step.interval[0], step.interval[1], spent])
print(json.dumps(rates))
"""


def kinds() -> dict[str, Behaviour]:
    """Maps names to known systems, with every fault that real ones have."""
    made: dict[str, Behaviour] = {}
    for cost in (0.0, 0.05, 0.3, 1.0):
        for cap in (UNCAPPED, CAP):
            of = partial(Behaviour, 1e6, cost, cap, between=0.05)
            name = f"a = {cost:g} s, {'no cap' if cap == UNCAPPED else 'N = 200,000'}"
            made[f"{name}, 5 % noise"] = of(noise=0.05)
            made[f"{name}, 10 % noise"] = of(noise=0.1)
            made[f"{name}, 10 % hiccups"] = of(noise=0.05, hiccups=0.1)
            made[f"{name}, compiles 20 s"] = of(noise=0.05, compile_s=20)
            made[f"{name}, compiles 60 s"] = of(noise=0.05, compile_s=60)
            made[f"{name}, machine wanders 5 %"] = of(noise=0.1, wander=0.05)
    for cost, growth in ((0.0, 0.05), (0.3, 0.02), (0.3, 0.05), (0.3, 0.2), (1.0, 0.1)):
        of, name = partial(Behaviour, 1e6, cost, UNCAPPED, between=0.05, growth=growth), f"a = {cost:g} s, rows cost"
        name += f" {growth:.0%} more per million"
        made[f"{name}, 5 % noise"] = of(noise=0.05)
        made[f"{name}, 10 % noise"] = of(noise=0.1)
        made[f"{name}, compiles 20 s"] = of(noise=0.05, compile_s=20)
        made[f"{name}, machine wanders 5 %"] = of(noise=0.1, wander=0.05)
    of = partial(Behaviour, 1e6, 5.0, UNCAPPED, between=0.05)
    made["a = 5 s, no cap, 5 % noise"] = of(noise=0.05)
    made["a = 5 s, no cap, compiles 20 s"] = of(noise=0.05, compile_s=20)
    for cost in (0.05, 1.0):
        of, name = partial(Behaviour, 1e3, cost, UNCAPPED, between=0.05), f"slow, a = {cost:g} s, no cap"
        made[f"{name}, 5 % noise"] = of(noise=0.05)
        made[f"{name}, 10 % noise"] = of(noise=0.1)
        made[f"{name}, 10 % hiccups"] = of(noise=0.05, hiccups=0.1)
        made[f"{name}, compiles 20 s"] = of(noise=0.05, compile_s=20)
    made["continuous, 10 % noise"] = Behaviour(1e6, noise=0.1, between=0.05, continuous=True)
    made["continuous, pipeline 0.4 s"] = Behaviour(1e6, noise=0.1, between=0.05, continuous=True, pipeline_s=0.4)
    made["continuous, pipeline 2 s"] = Behaviour(1e6, noise=0.1, between=0.05, continuous=True, pipeline_s=2)
    made["continuous, pipeline 0.4 s, compiles 20 s"] = Behaviour(
        1e6, noise=0.1, between=0.05, compile_s=20, continuous=True, pipeline_s=0.4
    )
    made["continuous, compiles 20 s"] = Behaviour(1e6, noise=0.1, between=0.05, compile_s=20, continuous=True)
    return made


def measure(searches: int, processes: int, item: tuple[str, Behaviour]) -> dict[str, Any]:
    """Runs the searches of one kind of system; returns its figures."""
    name, behaviour = item
    calibrated = calibrate(behaviour, Search(processes=processes), searches)
    widths = [(d.interval[1] - d.interval[0]) / 2 / d.rate_events_per_s for d in calibrated.searches if d.interval]
    return {
        "name": name,
        "truth": calibrated.truth_events_per_s,
        "bias": calibrated.bias,
        "sd": calibrated.deviation,
        "coverage": calibrated.coverage,
        "half_width": statistics.mean(widths),
        "mlrsearch": with_mlrsearch(min(20, searches), behaviour),
        "seconds": statistics.median(calibrated.seconds) / processes,
        "outcomes": dict(Counter(done.outcome for done in calibrated.searches)),
    }


def as_it_was(tree: Path, searches: int, behaviour: Behaviour) -> tuple[float, float]:
    """Bias and coverage of the search at an earlier commit, on the costs and the noise of this system."""
    asked = json.dumps([behaviour.batch_cost_s, behaviour.batch_rows, behaviour.noise, searches])
    done = subprocess.run(
        [sys.executable, "-c", OLD, asked], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    truth = Behaviour(1e6, behaviour.batch_cost_s, behaviour.batch_rows).truth(10.0)
    rates = json.loads(done.stdout)
    held = sum(low <= truth <= (float("inf") if high is None else high) for _, low, high, _ in rates)
    return statistics.median(rate / truth for rate, *_ in rates) - 1, held / len(rates)


class Recoveries(AbstractMeasurer):  # type: ignore[misc]
    """Trials for MLRsearch: they begin with a backlog of the allowed age, and its growth counts as lost frames."""

    def __init__(self, process: VirtualProcess) -> None:
        self._process = process

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        seen = self._process.offer(
            intended_load, AGE_S, intended_duration, None,
            lambda so_far: so_far.samples[-1].age_s < AGE_S / 2, queue_s=math.inf,
        )  # fmt: skip
        lasted = max(intended_duration, seen.samples[-1].at_s)
        offered = max(1, round(intended_load * lasted))
        lost = min(offered, max(0, seen.samples[-1].backlog - seen.samples[0].backlog))
        return MeasurementResult(
            intended_duration, intended_load, offered_count=offered, loss_count=lost, duration_with_overheads=lasted
        )


def with_mlrsearch(searches: int, behaviour: Behaviour) -> tuple[float, float, float]:
    """Bias of MLRsearch's conditional throughput, the share of its bounds that hold the truth, seconds a search."""
    truth, rates, held, seconds = behaviour.truth(AGE_S), [], 0, []
    capacity = float(behaviour.capacity or 0.0)
    goal = SearchGoal(
        loss_ratio=0.0, exceed_ratio=0.5, relative_width=0.02, initial_trial_duration=20.0,
        final_trial_duration=20.0, duration_sum=60.0, preceding_targets=1, fail_fast=False,
    )  # fmt: skip
    for seed in range(searches):
        process = VirtualProcess(behaviour, seed, 1)
        while process.clock_s < Search().warmup_seconds:
            process.batch(round(capacity / 50))
        config = Config()
        config.goals, config.min_load, config.max_load = [goal], capacity / 1000, 4 * capacity
        config.warmup_duration, config.search_duration_max = None, 600.0
        bounds = MultipleLossRatioSearch(config).search(Recoveries(process), lambda _: None)[goal]
        low, high = bounds.relevant_lower_bound, bounds.relevant_upper_bound
        rates.append(float(bounds.conditional_throughput or 0.0))
        held += low is not None and high is not None and float(low) <= truth <= float(high)
        seconds.append(process.clock_s)
    return statistics.median(rates) / truth - 1, held / searches, statistics.median(seconds)


def checked_out(commit: str, place: Path) -> Path | None:
    """The package at that commit, unpacked; None where the history is not there."""
    made = subprocess.run(["git", "-C", str(ROOT), "archive", commit, "streamgauge"], capture_output=True)
    if made.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", str(place)], input=made.stdout, check=True)
    return place


def missed(row: dict[str, Any]) -> str:
    """Text that names the goals that a row misses."""
    goals = [
        ("bias", abs(row["bias"]) > MOST_BIAS),
        ("coverage", not COVERAGE[0] <= row["coverage"] <= COVERAGE[1]),
        ("time", row["seconds"] > MOST_SECONDS),
    ]
    return ", ".join(name for name, is_missed in goals if is_missed)


def as_markdown(table: Table) -> list[str]:
    """Formats the table as lines of Markdown."""
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    rows = [[str(column.header) for column in table.columns], ["---"] * len(cells), *zip(*cells, strict=True)]
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description="Bias and coverage of the search against known truth")
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default="", help="only those whose name holds this text")
    parser.add_argument("--before", default="f9da74f", help="commit of the search as it was; '' for none")
    parser.add_argument("--alike", action="store_true", help="fresh processes do not differ")
    parser.add_argument("--markdown", action="store_true", help="for docs/known.md")
    args = parser.parse_args()
    wanted = {name: behaviour for name, behaviour in kinds().items() if args.kinds in name}
    if args.alike:
        wanted = {name: dataclasses.replace(behaviour, between=0.0) for name, behaviour in wanted.items()}
    table = Table(
        "system",
        "truth",
        "bias",
        "sd",
        "covers",
        "±",
        "s a process",
        "outcomes",
        "missed",
        "bias was",
        "covered",
        "MLRsearch",
        "holds",
        "s",
    )
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(args.jobs) as pool:
        tree = checked_out(args.before, Path(scratch)) if args.before else None
        for row in pool.map(partial(measure, args.searches, args.processes), wanted.items()):
            behaviour = wanted[row["name"]]
            faults = (
                behaviour.hiccups or behaviour.compile_s or behaviour.wander or behaviour.continuous or behaviour.growth
            )
            # it simulates 1 µs a row, batch by batch: of one row each without a cost
            plain = behaviour.batch_cost_s and behaviour.capacity == 1e6 and not faults
            was = as_it_was(tree, min(20, args.searches), behaviour) if tree and plain else None
            table.add_row(
                row["name"], f"{row['truth']:,.0f}", f"{row['bias']:+.1%}", f"{row['sd']:.1%}",
                f"{row['coverage']:.0%}",
                f"{row['half_width']:.1%}", f"{row['seconds']:.0f}",
                ", ".join(f"{count} {name}" for name, count in row["outcomes"].items()), missed(row),
                f"{was[0]:+.0%}" if was else "", f"{was[1]:.0%}" if was else "",
                f"{row['mlrsearch'][0]:+.1%}", f"{row['mlrsearch'][1]:.0%}", f"{row['mlrsearch'][2]:.0f}",
            )  # fmt: skip
    console = Console(width=220)
    if args.markdown:
        for line in as_markdown(table):
            print(line)
    else:
        console.print(table)
    if args.before and tree is None:
        console.print(f"the search as it was is not shown: the git history has no {args.before}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
