"""Measures how accurate a comparison of two streams is: shared searches on a virtual clock, with a known ratio.

    .venv/bin/python -m benchmarks.paired [--searches 100] [--processes 1] [--jobs 2] [--kinds TEXT] [--markdown]
        [--only rate|latency]

Both streams run in one process, and a row of the second one costs 1/0.9, 1 or 1/1.03 of a row of the first. A process
can favour one stream by chance (0, 1 or 2 %), which one process alone cannot show. The columns tell the mean error of
the ratio, its deviation, how many of the 90 % intervals hold the truth, their median half width, and the seconds of
both cells together. Beside it stands the unpaired way: two searches with a process each, and the error of their ratio.

A second table is of latencies in turns at one rate. All times of a system without a batch cap that binds grow with the
cost of its batches, and so do all quantiles of its latency: this cost of the second stream is 1 or 1.1 of the first's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import paced_turns, shared_search
from benchmarks.search import AGE_S, CAP, UNCAPPED, as_markdown
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.latency_turns import QUANTILES
from streamgauge.bench.search.simulate import calibrate
from streamgauge.config import Search
from streamgauge.stats.paired import Ratio

RATIOS = (0.9, 1.0, 1.03)
LATENCY_RATIOS = (1.0, 1.1)
FAVOURS = (0.0, 0.01, 0.02)
#: the rate at which latencies are compared, and the length of a turn, which is that of the default settings
RATE, TURN_S = 4e5, 5.0
MOST_BIAS, COVERAGE = 0.005, (0.85, 0.95)


@dataclass(frozen=True)
class Errors:
    """Figures of the ratios for one kind of system."""

    bias: float
    deviation: float
    coverage: float
    half_width: float
    without: int  # trials without a ratio

    @classmethod
    def of(cls, ratios: Iterable[tuple[Ratio | None, float]]) -> Errors:
        """ratios: each with the truth."""
        pairs = list(ratios)
        known = [(one, truth) for one, truth in pairs if one is not None]
        errors = [one.ratio / truth - 1 for one, truth in known]
        return cls(
            statistics.mean(errors),
            statistics.stdev(errors),
            sum(one.low <= truth <= one.high for one, truth in known) / len(known),
            statistics.median(one.half_width for one, _ in known),
            len(pairs) - len(known),
        )

    @property
    def missed(self) -> str:
        """Text that names the goals that these miss."""
        goals = [
            ("bias", abs(self.bias) > MOST_BIAS),
            ("coverage", not COVERAGE[0] <= self.coverage <= COVERAGE[1]),
            ("none", self.without > 0),
        ]
        return ", ".join(name for name, is_missed in goals if is_missed)

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            f"{self.bias:+.2%}",
            f"{self.deviation:.2%}",
            f"{self.coverage:.0%}",
            f"{self.half_width:.1%}",
            self.missed,
        )


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
    made["no cap, rows cost 10% more per million, 5 % noise"] = aged(noise=0.05, growth=0.1)
    made["no cap, rows cost 10% more per million, 10 % noise"] = aged(noise=0.1, growth=0.1)
    made["continuous, 10 % noise"] = Behaviour(1e6, noise=0.1, between=0.05, continuous=True)
    made["continuous, compiles 20 s"] = Behaviour(1e6, noise=0.1, between=0.05, compile_s=20, continuous=True)
    return made


def rates(searches: int, processes: int, item: tuple[Behaviour, float]) -> tuple[str, ...]:
    """Runs the searches of one kind of system; returns the cells of its row."""
    behaviour, favour = item
    settings = Search(processes=processes)
    ratios, seconds, unpaired = list[tuple[Ratio | None, float]](), list[float](), list[float]()
    for seed in range(searches):
        other = replace(behaviour, capacity=float(behaviour.capacity or 0.0) * RATIOS[seed % len(RATIOS)])
        truth = other.truth(AGE_S) / behaviour.truth(AGE_S)
        done, spent = shared_search([behaviour, other], settings, seed, favour)
        seconds.append(spent)
        ratios.append((done.ratios[0], truth))
        if favour == 0.0 and seed < 20:
            apart = [
                calibrate(kind, settings, 1, 1000 * seed + n).searches[0] for n, kind in ((1, behaviour), (2, other))
            ]
            unpaired.append(apart[1].rate_events_per_s / apart[0].rate_events_per_s / truth - 1)
    apart_ = (f"{statistics.mean(unpaired):+.1%}", f"{statistics.stdev(unpaired):.1%}") if unpaired else ("", "")
    return (*Errors.of(ratios).cells, f"{statistics.median(seconds):.0f}", *apart_)


def latencies(searches: int, item: tuple[Behaviour, float]) -> tuple[str, ...]:
    """Compares latencies of one kind of system in turns; returns the cells of its row."""
    behaviour, favour = item
    pairs_of: dict[str, list[tuple[Ratio | None, float]]] = {name: [] for name in QUANTILES}
    seconds = []
    for seed in range(searches):
        truth = LATENCY_RATIOS[seed % len(LATENCY_RATIOS)]
        other = replace(behaviour, batch_cost_s=behaviour.batch_cost_s * truth)
        ratios, spent = paced_turns([behaviour, other], RATE, TURN_S, Search(), seed, favour)
        seconds.append(spent)
        for name, one in ratios.items():
            pairs_of[name].append((one, truth))
    errors = [cell for pairs in pairs_of.values() for cell in Errors.of(pairs).cells]
    return (*errors, f"{statistics.median(seconds):.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Bias and coverage of paired comparisons against a known ratio")
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default="", help="only those whose name holds this text")
    parser.add_argument("--only", choices=("rate", "latency"), help="one of the two tables")
    parser.add_argument("--markdown", action="store_true", help="for docs/disorder.md")
    args = parser.parse_args()
    wanted = [(name, of, favour) for name, of in kinds().items() if args.kinds in name for favour in FAVOURS]
    errors = ("bias", "sd", "covers", "±", "missed")
    columns = {
        "rate": (*errors, "s", "unpaired bias", "unpaired sd"),
        "latency": (*(f"{name} {one}" for name in QUANTILES for one in errors), "s"),
    }
    of_kind = {"rate": partial(rates, args.searches, args.processes), "latency": partial(latencies, args.searches)}
    with ProcessPoolExecutor(args.jobs) as pool:
        for metric in (args.only,) if args.only else columns:
            # without batches, a latency has no known ratio but 1
            rows = [one for one in wanted if metric == "rate" or not one[1].continuous]
            table = Table("system", "favours", *columns[metric], title=metric)
            made = pool.map(of_kind[metric], [(of, favour) for _, of, favour in rows])
            for (name, _, favour), cells in zip(rows, made, strict=True):
                table.add_row(name, f"{favour:.0%}", *cells)
            if args.markdown:
                print("\n".join(as_markdown(table)))
            else:
                Console(width=180).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
