"""Spark's Real-time Mode: which workloads it takes, and its latencies beside micro-batches and Flink at one rate.

    .venv/bin/python -m benchmarks.real_time [--rate 20000] [--seconds 15] [--no-queries] [--no-latencies]

Needs `make jvm-link`; Flink is among the systems after `make flink`. Every workload that starts runs for two seconds,
and its output is compared with DuckDB's answer where the engine's account allows it. `streamgauge nexmark` and
`streamgauge hard` ask all other queries, with `--system spark-real-time`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from streamgauge.base.errors import UserError
from streamgauge.base.schemas import NEXMARK
from streamgauge.bench import workloads
from streamgauge.bench.answers.capabilities import HARD, SUITE
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.driver.system import make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.oracle.check import check
from streamgauge.bench.workloads import Spec
from streamgauge.config import Nexmark, Replay, System, Workload, parse
from streamgauge.config.systems import settings_of
from streamgauge.streams.nexmark.generator import Generator, rows

EVENTS = 50_000
REAL_TIME = {"link": "jvm", "mode": "real-time"}
SYSTEMS = {
    "Spark, micro-batches, Python link": {"master": "local[2]"},
    "Spark, micro-batches, JVM link": {"master": "local[2]", "link": "jvm"},
    "Spark, Real-time Mode": {"master": "local[2]", **REAL_TIME},
    "Flink": {"engine": "flink"},
}
ASKED = {"key": "channel", "value": "price", "window": "10s", "watermark": "10s"}
MARKED = {"value": "kind", "mark": "auction"}
PATIENT = Bounds(max_slip_s=1.0, drain_s=30)


def stream(place: Path) -> Path:
    """Writes Nexmark's events, in order, 1,000 a second of their own time."""
    events = rows(Generator(Nexmark(rate=1000)), 0, EVENTS, list(NEXMARK))
    table = events.append_column("ingestion_time", events["event_time"])
    pq.write_table(table.sort_by([("ingestion_time", "ascending"), ("seq", "ascending")]), place / "part-0.parquet")
    (place / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": NEXMARK}))
    return place


def system_of(name: str, **settings: object) -> System:
    engine = str(settings.get("engine", "spark"))
    given = {"name": name, "engine": engine, "state_store": "rocksdb", **settings}
    return parse(settings_of(engine), given, name)


def judged(run: TrialRun, place: Path, workload: Workload, columns: dict[str, str]) -> str:
    figures = run.details["system"]
    if run.observation.invalid is not None:
        return f"invalid: {run.observation.invalid}"
    if not (figures.get("batches") or figures.get("stretches")):
        return "not compared: running answers"
    table = load_stream([place / "part-0.parquet"], "ns", columns, line=False, max_memory_mb=256, densify=1)
    offered = offered_rows(table, [[count - 1 for count in driver["offered"]] for driver in run.details["drivers"]])
    spec, rules = Spec.of(workload, columns), run.details["rules"]
    return check(offered, figures, run.details["epochs"], spec, rules).wrong or "right"


def queries(place: Path, work: Path) -> Table:
    """Asks in Real-time Mode each query of the registry that no suite has."""
    table = Table("query", "Real-time Mode", "output", title="What Real-time Mode takes")
    # a slot for each of two readers and for each stage after them
    slots = {"master": "local[6]", "conf": {"spark.sql.shuffle.partitions": "1"}}
    system = make_system(system_of("s", **REAL_TIME, **slots), work / "system")
    system.start()
    try:
        for query in workloads.registry():
            if query.name.removeprefix("nexmark.") in (*SUITE, *HARD):
                continue
            asked = {"name": "w", "query": query.name} | ASKED | (MARKED if "mark" in query.needs else {})
            workload = Workload.model_validate(asked)
            try:
                Spec.of(workload, NEXMARK)
                with Fleet(place, Replay(), tick="ns", columns=NEXMARK) as fleet:
                    request = TrialRequest(workload, work / query.name, 2000, 2, PATIENT)
                    run = run_trial(system, fleet, request)
                table.add_row(query.name, "takes it", judged(run, place, workload, NEXMARK))
            except UserError as problem:
                table.add_row(query.name, str(problem).partition(" in mode real-time: ")[2] or str(problem), "")
    finally:
        system.stop()
    return table


def latencies(place: Path, work: Path, rate: float, seconds: float) -> Table:
    """Measures one query on each system, after a trial that warms it."""
    workload = Workload(name="w", query="nexmark.q0")
    columns = {name: NEXMARK[name] for name in workloads.find(workload.query).columns}
    table = Table("system", "p50, ms", "p99, ms", "CPU-µs/event", "output", title=f"q0 at {rate:,.0f} events/s")
    for number, (name, settings) in enumerate(SYSTEMS.items()):
        chosen = system_of("s", **settings)
        try:
            chosen.check_installed()
        except UserError as problem:
            table.add_row(name, str(problem))
            continue
        system = make_system(chosen, work / f"system{number}")
        system.start()
        try:
            for part, length in (("warm", 10.0), ("measured", seconds)):
                with Fleet(place, Replay(), tick="ns", columns=columns) as fleet:
                    request = TrialRequest(workload, work / f"{part}{number}", rate, length, PATIENT)
                    run = run_trial(system, fleet, request)
        finally:
            system.stop()
        p50, p99 = ((run.event_latency.quantile(q) or 0) / 1e6 for q in (0.5, 0.99))
        cpu = (run.details["system"]["cpu_seconds"] or 0) / max(1, run.observation.offered) * 1e6
        table.add_row(name, f"{p50:.1f}", f"{p99:.1f}", f"{cpu:.1f}", judged(run, place, workload, columns))
    return table


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=20_000, help="events/s")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the measured trial")
    parser.add_argument("--no-queries", action="store_true")
    parser.add_argument("--no-latencies", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "stream").mkdir()
        place = stream(work / "stream")
        if not args.no_latencies:
            Console(width=160).print(latencies(place, work, args.rate, args.seconds))
        if not args.no_queries:
            Console(width=250).print(queries(place, work))


if __name__ == "__main__":
    main()
