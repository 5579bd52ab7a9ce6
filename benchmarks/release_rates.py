"""Measures how often a release check of rates is wrong: ladders of fresh processes in pairs, on a virtual clock.

    .venv/bin/python -m benchmarks.release_rates [--searches 40] [--pairs 4] [--jobs 2] [--kinds TEXT] [--markdown]

The tolerated loss is 10 %. The candidate keeps 1, 0.95, 0.9 or 0.8 of the rate. A check that does not pass has as many
pairs once more, as a suspect has. The column "false" tells how often the verdict was no-go though less was lost, or go
though more was.
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

from benchmarks.search import CAP, UNCAPPED, as_markdown
from streamgauge.bench.compare.release_rules import decide, series, sides
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.simulate import calibrate
from streamgauge.config import RELEASE_RATE, Search
from streamgauge.records.release import Repetition

#: part of the rate that candidates keep
KEPT = (1.0, 0.95, 0.9, 0.8)


def kinds() -> dict[str, Behaviour]:
    """Maps names to known systems, whose fresh processes differ by 3 or 5 %."""
    made = {}
    for between in (0.03, 0.05):
        noise = f"{between:.0%} between"
        made[f"N = 200,000, 5 % noise, {noise}"] = Behaviour(1e6, 0.05, CAP, noise=0.05, between=between)
        made[f"no cap, 10 % hiccups, {noise}"] = Behaviour(1e6, 0.3, UNCAPPED, noise=0.05, hiccups=0.1, between=between)
        made[f"continuous, 10 % noise, {noise}"] = Behaviour(1e6, noise=0.1, between=between, continuous=True)
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
            for side in sides(number):
                system, seed = (slower, 2) if side == "candidate" else (behaviour, 1)
                rate = calibrate(system, settings, 1, 1000 * check + 10 * number + seed).searches[0].rate_events_per_s
                known.append(Repetition(cell="e.w", side=side, round=number, values={RELEASE_RATE: rate}, ladder=True))
        [one] = series(known, tolerance)
        verdicts[decide([], [one]).decision] += 1
        assert one.interval is not None, one.reason
        assert one.detectable_effect is not None, one.reason
        halves.append(math.sqrt(one.interval[1] / one.interval[0]) - 1)
        losses.append(one.detectable_effect)
    return Gate(dict(verdicts), statistics.median(halves), statistics.median(losses))


def release_table(checks: int, pairs: int, jobs: int, kinds_like: str) -> Table:
    """Table of verdicts; a false no-go is one where less than the tolerance is lost."""
    wanted = [(name, of, kept) for name, of in kinds().items() if kinds_like in name for kept in KEPT]
    table = Table("system", "keeps", "go", "no-go", "inconclusive", "false", "±", "finds a loss of")
    with ProcessPoolExecutor(jobs) as pool:
        gates = pool.map(partial(release_checks, checks, pairs), [(of, kept) for _, of, kept in wanted])
        for (name, _, kept), gate in zip(wanted, gates, strict=True):
            shares = {verdict: gate.verdicts.get(verdict, 0) / checks for verdict in ("go", "no-go", "inconclusive")}
            false = {1.0: "no-go", 0.95: "no-go", 0.9: "", 0.8: "go"}[kept]
            table.add_row(
                name,
                f"{kept:g}",
                *(f"{share:.0%}" for share in shares.values()),
                f"{shares[false]:.0%}" if false else "",
                f"{gate.half_width:.1%}",
                f"{gate.detectable:.0%}",
            )
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description="Verdicts of release checks of rates, against a known loss")
    parser.add_argument("--searches", type=int, default=40, help="checks of each kind")
    parser.add_argument("--pairs", type=int, default=4, help="of processes, in a check")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default="", help="only those whose name holds this text")
    parser.add_argument("--markdown", action="store_true", help="for docs/release.md")
    args = parser.parse_args()
    shown = release_table(args.searches, args.pairs, args.jobs, args.kinds)
    print("\n".join(as_markdown(shown))) if args.markdown else Console(width=160).print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
