"""Nights of the known system that are written by hand, for tests that judge them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from streamgauge.app.nights.night import Night
from streamgauge.base.jsonl import write_json
from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.search.stage import RATE
from streamgauge.catalog import results
from streamgauge.results.index import Index
from tests.measure.benches import CELL, Bench

P50 = "event_latency_ms_p50_at_50pct"
PAUSE = "longest_pause_s"  # of a package
NIGHTS, STEP = 24, 20
PLAN: dict[str, Any] = {
    "latency": {"fractions": [0.5], "seconds": 0.4},
    "search": {"max_age": "1s", "window_seconds": 0.3, "proof_steps": 0},
    "nightly": {"repetitions": [4], "self_tests": 0},
}


def write_nights(
    bench: Bench,
    level: float,
    factor: float,
    before: Bench | None = None,
    machine: str = "x",
    seconds: float = 0,
    pause_s: float = 0,
) -> None:
    """Latency around a level, times a factor from night STEP on; earlier nights have another benchmark."""
    for night in range(NIGHTS):
        run, at = f"n{night:02}", (datetime(2026, 3, 1, 2, tzinfo=UTC) + timedelta(days=night)).isoformat()
        value = level * (1 + 0.01 * (night * 7 % 5 - 2)) * (factor if night >= STEP else 1.0)
        as_it_was = before if before and night < STEP else bench
        result = CellRun(as_it_was.benchmark, bench.store, CELL, bench.store.run(run)).result
        figures = [(P50, "ms", value), (RATE, "events/s", 2000.0), (SECONDS, "s", seconds)]
        figures.append((PAUSE, "s", pause_s * value))
        for metric, unit, figure in (told for told in figures if told[2]):
            made = result(metric, unit, figure, at=at, machine={"cpu": machine}, software={"spark": "1"})
            results.append(bench.store.run(run), made)
        write_json(bench.store.run(run) / "benchmark.json", as_it_was.benchmark.model_dump(mode="json"))


def no_session() -> Any:
    raise AssertionError("the known system needs no Spark")


def night_of(bench: Bench) -> Night:
    index = Index(f"sqlite:///{bench.store.root / 'results.db'}")
    index.rebuild((bench.store.root / "runs").iterdir())
    return Night(bench.benchmark, bench.store, f"n{NIGHTS - 1}", index, no_session)
