"""Measures how accurate a comparison of two streams is: shared searches on a virtual clock, with a known ratio.

    .venv/bin/python -m benchmarks.paired [--searches 100] [--processes 1] [--jobs 2] [--kinds TEXT] [--markdown]
    .venv/bin/python -m benchmarks.paired --release [--searches 40] [--pairs 4] [--jobs 2] [--markdown]

Both streams run in one process, and a row of the second one costs 1/0.9, 1 or 1/1.03 of a row of the first. A process
can favour one stream by chance (0, 1 or 2 %), which one process alone cannot show. The columns tell the mean error of
the ratio, its deviation, how many of the 90 % intervals hold the truth, their median half width, and the seconds of
both cells together. Beside it stands the unpaired way: two searches with a process each, and the error of their ratio.

With --release, release checks compare rates by ladders of fresh processes, in pairs, at a tolerated loss of 10 %. The
candidate keeps 1, 0.95, 0.9 or 0.8 of the rate. A check that does not pass has as many pairs once more, as a suspect
has. The column "false" tells how often the verdict was no-go though less was lost, or go though more was.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from rich.console import Console
from rich.table import Table

from benchmarks.search import AGE_S, CAP, UNCAPPED, as_markdown
from streamgauge.config import RELEASE_RATE, Search
from streamgauge.judge.release_rules import Repetition, decide, series, sides, table
from streamgauge.search.behaviour import Behaviour
from streamgauge.search.simulate import calibrate, shared_search

RATIOS = (0.9, 1.0, 1.03)
FAVOURS = (0.0, 0.01, 0.02)
#: part of the rate that candidates of simulated release checks keep
KEPT = (1.0, 0.95, 0.9, 0.8)
MOST_BIAS, COVERAGE = 0.005, (0.85, 0.95)


@dataclass(frozen=True)
class Row:
    """Figures of one kind of system."""

    bias: float
    deviation: float
    coverage: float
    half_width: float
    seconds: float
    unpaired_bias: float
    unpaired_deviation: float
    without: int  # searches without a ratio


def kinds() -> dict[str, Behaviour]:
    """Maps names to known systems, with the faults of real ones; fresh processes differ by 5 %."""
    capped = partial(Behaviour, 1e6, 0.05, CAP, between=0.05)
    aged = partial(Behaviour, 1e6, 0.3, UNCAPPED, between=0.05)
    made = {}
    for name, of in (("N = 200,000", capped), ("no cap", aged)):
        made[f"{name}, 5 % noise"] = of(noise=0.05)
        made[f"{name}, 10 % noise"] = of(noise=0.1)
        made[f"{name}, 10 % hiccups"] = of(noise=0.05, hiccups=0.1)
        made[f"{name}, compiles 60 s"] = of(noise=0.05, compile_s=60)
        made[f"{name}, machine wanders 5 %"] = of(noise=0.1, wander=0.05)
    made["continuous, 10 % noise"] = Behaviour(1e6, noise=0.1, between=0.05, continuous=True)
    made["continuous, compiles 20 s"] = Behaviour(1e6, noise=0.1, between=0.05, compile_s=20, continuous=True)
    return made


def measure(searches: int, processes: int, item: tuple[Behaviour, float]) -> Row:
    """Runs the searches of one kind of system; returns its figures."""
    behaviour, favour = item
    settings = Search(processes=processes)
    errors, halves, seconds, unpaired, held, without = [], [], [], [], 0, 0
    for seed in range(searches):
        other = replace(behaviour, capacity=float(behaviour.capacity or 0.0) * RATIOS[seed % len(RATIOS)])
        truth = other.truth(AGE_S) / behaviour.truth(AGE_S)
        done, spent = shared_search([behaviour, other], settings, seed, favour)
        seconds.append(spent)
        one = done.ratios[0].ratio
        if one is None:
            without += 1
            continue
        errors.append(one.ratio / truth - 1)
        halves.append(one.half_width)
        held += one.low <= truth <= one.high
        if favour == 0.0 and seed < 20:
            apart = [
                calibrate(kind, settings, 1, 1000 * seed + n).searches[0] for n, kind in ((1, behaviour), (2, other))
            ]
            unpaired.append(apart[1].rate_events_per_s / apart[0].rate_events_per_s / truth - 1)
    return Row(
        statistics.mean(errors), statistics.stdev(errors), held / len(errors), statistics.median(halves),
        statistics.median(seconds), statistics.mean(unpaired) if unpaired else math.nan,
        statistics.stdev(unpaired) if len(unpaired) > 1 else math.nan, without,
    )  # fmt: skip


def release_kinds() -> dict[str, Behaviour]:
    """Maps names to known systems, whose fresh processes differ by 3 or 5 %."""
    made = {}
    for between in (0.03, 0.05):
        told = f"{between:.0%} between"
        made[f"N = 200,000, 5 % noise, {told}"] = Behaviour(1e6, 0.05, CAP, noise=0.05, between=between)
        made[f"no cap, 10 % hiccups, {told}"] = Behaviour(1e6, 0.3, UNCAPPED, noise=0.05, hiccups=0.1, between=between)
        made[f"continuous, 10 % noise, {told}"] = Behaviour(1e6, noise=0.1, between=between, continuous=True)
    return made


@dataclass(frozen=True)
class Gate:
    """Verdicts of release checks on one kind of system."""

    verdicts: dict[str, int]
    half_width: float  # the median
    detectable: float  # the median loss that nine of ten such checks would find


def release_checks(checks: int, pairs: int, item: tuple[Behaviour, float]) -> Gate:
    """Runs release checks of rates against a candidate that keeps a part of the rate."""
    behaviour, kept = item
    settings, tolerance = Search(processes=1, proof_steps=0), {RELEASE_RATE: 0.1}
    slower = replace(behaviour, capacity=float(behaviour.capacity or 0.0) * kept)
    if behaviour.batch_rows == CAP:  # under a cap the rate is that of a whole batch
        slower = replace(slower, batch_cost_s=behaviour.batch_cost_s / kept)
    verdicts, halves, losses = Counter[str](), [], []
    for check in range(checks):
        known: list[Repetition] = []
        for number in range(1, 2 * pairs + 1):
            if number == pairs + 1 and series(known, tolerance)[0].state == "passed":
                break
            for side in sides(number, ladder=True):
                system, seed = (slower, 2) if side == "candidate" else (behaviour, 1)
                rate = calibrate(system, settings, 1, 1000 * check + 10 * number + seed).searches[0].rate_events_per_s
                known.append(Repetition("e.w", side, number, {RELEASE_RATE: rate}, ladder=True))
        [one] = series(known, tolerance)
        verdicts[decide([], [one]).decision] += 1
        [row] = table([one])
        halves.append(math.sqrt(row["interval"][1] / row["interval"][0]) - 1)
        losses.append(row["detectable_effect"])
    return Gate(dict(verdicts), statistics.median(halves), statistics.median(losses))


def release_table(checks: int, pairs: int, jobs: int, kinds_like: str) -> Table:
    """Table of verdicts; a false no-go is one where less than the tolerance is lost."""
    wanted = [(name, of, kept) for name, of in release_kinds().items() if kinds_like in name for kept in KEPT]
    found = Table("system", "keeps", "go", "no-go", "inconclusive", "false", "±", "finds a loss of")
    with ProcessPoolExecutor(jobs) as pool:
        gates = pool.map(partial(release_checks, checks, pairs), [(of, kept) for _, of, kept in wanted])
        for (name, _, kept), gate in zip(wanted, gates, strict=True):
            shares = {verdict: gate.verdicts.get(verdict, 0) / checks for verdict in ("go", "no-go", "inconclusive")}
            false = {1.0: "no-go", 0.95: "no-go", 0.9: "", 0.8: "go"}[kept]
            found.add_row(
                name, f"{kept:g}", *(f"{share:.0%}" for share in shares.values()),
                f"{shares[false]:.0%}" if false else "", f"{gate.half_width:.1%}", f"{gate.detectable:.0%}",
            )  # fmt: skip
    return found


def missed(row: Row) -> str:
    """Text that names the goals that a row misses."""
    goals = [
        ("bias", abs(row.bias) > MOST_BIAS),
        ("coverage", not COVERAGE[0] <= row.coverage <= COVERAGE[1]),
        ("none", row.without > 0),
    ]
    return ", ".join(name for name, is_missed in goals if is_missed)


def main() -> int:
    parser = argparse.ArgumentParser(description="Bias and coverage of paired comparisons against a known ratio")
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default="", help="only those whose name holds this text")
    parser.add_argument("--release", action="store_true", help="release checks of rates instead")
    parser.add_argument("--pairs", type=int, default=4, help="of processes, in a release check")
    parser.add_argument("--markdown", action="store_true", help="for docs/comparisons.md")
    args = parser.parse_args()
    if args.release:
        shown = release_table(args.searches, args.pairs, args.jobs, args.kinds)
        print("\n".join(as_markdown(shown))) if args.markdown else Console(width=160).print(shown)
        return 0
    wanted = [(name, of, favour) for name, of in kinds().items() if args.kinds in name for favour in FAVOURS]
    table = Table(
        "system", "favours", "bias", "sd", "covers", "±", "s", "missed", "unpaired bias", "unpaired sd"
    )  # fmt: skip
    with ProcessPoolExecutor(args.jobs) as pool:
        rows = pool.map(partial(measure, args.searches, args.processes), [(of, favour) for _, of, favour in wanted])
        for (name, _, favour), row in zip(wanted, rows, strict=True):
            apart = ("", "") if favour else (f"{row.unpaired_bias:+.1%}", f"{row.unpaired_deviation:.1%}")
            table.add_row(
                name, f"{favour:.0%}", f"{row.bias:+.2%}", f"{row.deviation:.2%}", f"{row.coverage:.0%}",
                f"{row.half_width:.1%}", f"{row.seconds:.0f}", missed(row), *apart,
            )  # fmt: skip
    if args.markdown:
        for line in as_markdown(table):
            print(line)
    else:
        Console(width=160).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
