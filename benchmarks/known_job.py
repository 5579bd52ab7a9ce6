"""Calibrates what is measured through Kafka: the known system over the wire, and the same one behind a broker.

    .venv/bin/python -m benchmarks.known_job [--seeds 7] [--seconds 10] [--out FILE]

Prints two tables. The first has whole searches on the real clock: bias and coverage of the sustainable rate. The second
has trials of systems whose delay is set: their latency, the link's share of it, and what is left. The broker is a local
one (`make kafka`). --out adds each figure to a file, so that a run can be done in parts: --print prints what it holds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.kept import Kept
from streamgauge.app.services.broker import Broker
from streamgauge.base.units import Duration
from streamgauge.bench.measure.calibrate import bench_of, calibrate_for_real, known
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measurements.latency.stage import figures_of
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.config import Search
from streamgauge.records.trial import TrialResult

Json = dict[str, Any]
SLOW = "row by row, commits each second"
#: the first two are seen by the offsets that their group commits, the others by their micro-batches. Over the wire
#: there is no group, so there the first two are the same
SYSTEMS = {
    "row by row, 5 % noise": Behaviour(capacity=10_000, continuous=True, noise=0.05),
    SLOW: Behaviour(capacity=10_000, continuous=True, noise=0.05),
    "limited by the batch cap": Behaviour(capacity=10_000, batch_cost_s=0.2, batch_rows=1_000),
    "limited by the age, 5 % noise": Behaviour(capacity=10_000, batch_cost_s=0.1, noise=0.05),
}
PLAN = Search(max_age=Duration.parse("1s"), warmup_seconds=5, window_seconds=2, proof_steps=0)
WIRE, KAFKA = "without Kafka", "behind Kafka"
DELAYS_S, RATE = (0.05, 0.2, 1.0), 5_000


def job(behaviour: Behaviour, bootstrap: str, delay_s: float = 0.0, commit_s: float = 0.0) -> Json:
    """The known system behind Kafka, as the keys of a benchmark file."""
    settings: Json = {"behaviour": asdict(behaviour), "delay_s": delay_s, "commit_s": commit_s}
    if not behaviour.continuous:
        settings["checkpoint"] = "{work}/checkpoint"
    return {
        "name": "known-job", "engine": "job", "bootstrap": bootstrap, "warm": "0s",
        "command": [sys.executable, "-P", str(Path(__file__).with_name("known_in_kafka.py")),
                    "{bootstrap}", "{input}", "{output}", "{group}", json.dumps(settings)],
        "progress": {"checkpoint": settings["checkpoint"]} if "checkpoint" in settings else {"group": "{group}"},
        "answer": {"sql": "select seq, event_wall, offered_wall from events", "key": ["seq"], "quiet": "1500ms"},
    }  # fmt: skip


def searches(bootstrap: str, seeds: int, first: int, wanted: str) -> Iterator[Json]:
    """Yields the result of each search; the two sides take turns."""
    for seed in range(first, first + seeds):
        for name, behaviour in SYSTEMS.items():
            for side in (WIRE, KAFKA):
                if wanted not in f"{name}, {side}":
                    continue
                commit_s = 1.0 if name == SLOW else 0.0
                system = job(behaviour, bootstrap, commit_s=commit_s) if side == KAFKA else None
                calibrated = calibrate_for_real(behaviour, PLAN, 1, seed, system=system)
                (done,) = calibrated.searches
                yield {
                    "kind": "search", "system": name, "side": side, "truth": calibrated.truth_events_per_s,
                    "rate": done.rate_events_per_s, "interval": done.interval, "outcome": done.outcome,
                    "reason": done.reason, "seconds": calibrated.seconds[0],
                }  # fmt: skip


def latencies(bootstrap: str, repeats: int, seconds: float, wanted: str) -> Iterator[Json]:
    """Yields the latencies of each trial of a system whose delay is set."""
    behaviour = SYSTEMS["row by row, 5 % noise"]
    for number in range(repeats):
        for delay_s in DELAYS_S:
            for side in (WIRE, KAFKA):
                if wanted not in f"delay {delay_s:g} s, {side}":
                    continue
                over_wire = known(behaviour, number) | {"delay": f"{round(delay_s * 1000)}ms"}
                system = job(behaviour, bootstrap, delay_s) if side == KAFKA else over_wire
                figures = figures_of(1.0, trial(system, seconds)).to_json()
                yield {"kind": "latency", "delay_s": delay_s, "side": side, "figures": figures}


def trial(system: Json, seconds: float) -> TrialResult:
    """Runs one trial of a system."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-") as scratch, measuring("calibration") as token:
        bench = bench_of(system, PLAN, Path(scratch))
        with bench.fleet:
            try:
                return bench.trial(RATE, seconds, token=token)
            finally:
                bench.stop()


def grouped(records: list[Json], key: str) -> Iterator[tuple[Any, str, list[Json]]]:
    """Yields a key's value, a side and their figures, for each pair that has any, in the order of the first ones."""
    for value in dict.fromkeys(one[key] for one in records):
        for side in (WIRE, KAFKA):
            if ours := [one for one in records if (one[key], one["side"]) == (value, side)]:
                yield value, side, ours


def rates_table(records: list[Json]) -> Table:
    table = Table(
        "system", "", "truth", "median found", "lowest and highest", "bias", "covers", "outcomes", "s a search",
    )  # fmt: skip
    for name, side, ours in grouped(records, "system"):
        truth, rates = ours[0]["truth"], [one["rate"] for one in ours]
        held = sum(bool(one["interval"]) and one["interval"][0] <= truth <= one["interval"][1] for one in ours)
        outcomes = [one["outcome"] for one in ours]
        table.add_row(
            name if side == WIRE else "", side, f"{truth:,.0f}", f"{median(rates):,.0f}",
            f"{min(rates):,.0f} to {max(rates):,.0f}", f"{median(rates) / truth - 1:+.1%}",
            f"{held} of {len(ours)}",
            ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in sorted(set(outcomes))),
            f"{median(one['seconds'] for one in ours):.0f}",
        )  # fmt: skip
    return table


def latency_table(records: list[Json]) -> Table:
    table = Table(
        "delay set (ms)", "", "trials", "p50", "p99", "link's share: p50", "p99", "left of p50", "off by (ms)",
    )  # fmt: skip
    for delay_s, side, all_ours in grouped([one for one in records if one["figures"]["valid"]], "delay_s"):
        ours = [one["figures"] for one in all_ours]

        def middle(what: str, quantile: str, ours: list[Json] = ours) -> float:
            return median((figures[what] or {}).get(f"{quantile}_ms") or 0.0 for figures in ours)

        left = middle("processing_latency", "p50") - middle("link_share", "p50")
        table.add_row(
            f"{delay_s * 1000:g}", side, str(len(ours)),
            *(f"{middle(what, q):.1f}" for what in ("processing_latency", "link_share") for q in ("p50", "p99")),
            f"{left:.1f}", f"{left - delay_s * 1000:+.1f}",
        )  # fmt: skip
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description="The known system over the wire, and behind Kafka")
    parser.add_argument("--seeds", type=int, default=7, help="searches of each system on each side; 0: none")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3, help="trials of each delay on each side; 0: none")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each of these trials")
    parser.add_argument("--only", default="", help="only those whose name holds this text")
    Kept.options(parser)
    args = parser.parse_args()
    kept = Kept(args)
    if not args.print:
        with tempfile.TemporaryDirectory() as place:
            broker = Broker(Path(place) / "broker")
            try:
                # a broker that was just started is slow
                trial(job(SYSTEMS["row by row, 5 % noise"], broker.bootstrap), 5.0)
                for measured in chain(
                    latencies(broker.bootstrap, args.repeats, args.seconds, args.only),
                    searches(broker.bootstrap, args.seeds, args.first_seed, args.only),
                ):
                    kept.add(measured)
            finally:
                broker.stop()
    console = Console(width=180)
    console.print(rates_table([one for one in kept.all if one["kind"] == "search"]))
    console.print(latency_table([one for one in kept.all if one["kind"] == "latency"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
