"""Searches three known systems over the real wire and clock, and compares the rates found with the true ones.

    .venv/bin/python -m benchmarks.wire [--seeds N]

Each system is a process of its own whose batch of n rows takes a + b·n seconds; the tests try the second one alone.
The bias is found/truth − 1 in the median of the searches.
"""

from __future__ import annotations

import argparse
import statistics

from rich.console import Console
from rich.table import Table

from streamgauge.base.units import Duration
from streamgauge.bench.measure.calibrate import calibrate_for_real
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.config import Search

SYSTEMS = {
    "limited by the batch cap": Behaviour(capacity=10_000, batch_cost_s=0.2, batch_rows=1_000),
    "limited by the age": Behaviour(capacity=100_000, batch_cost_s=0.1, batch_rows=1_000_000, noise=0.05),
    "fast": Behaviour(capacity=400_000, batch_cost_s=0.05, batch_rows=50_000, noise=0.05),
}
PLAN = Search(max_age=Duration.parse("1s"), warmup_seconds=0, window_seconds=2, recovery_seconds=10)


def main() -> None:
    """Prints a line for each system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="searches of each system")
    seeds = parser.parse_args().seeds
    table = Table("system", "truth", "found", "bias", "interval holds it", "outcomes", "s a search")
    for name, behaviour in SYSTEMS.items():
        calibrated = calibrate_for_real(behaviour, PLAN, seeds=seeds)
        truth = behaviour.truth(1.0)
        rates = ", ".join(f"{one.rate_events_per_s:,.0f}" for one in calibrated.searches)
        outcomes = ", ".join(sorted({one.outcome for one in calibrated.searches}))
        table.add_row(
            name,
            f"{truth:,.0f}",
            rates,
            f"{calibrated.bias:+.1%}",
            f"{calibrated.coverage:.0%}",
            outcomes,
            f"{statistics.median(calibrated.seconds):.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
