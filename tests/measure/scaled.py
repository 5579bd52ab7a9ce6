"""The known system, whose law of scaling is known: its benchmark, its search, and windows without a process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measurements.scaling.record import ScalingRun
from streamgauge.bench.measurements.search.record import Estimate, ProcessEstimate, SearchAnswer
from streamgauge.bench.measurements.search.stage import publish
from streamgauge.bench.search.parts import Point, Visit
from streamgauge.bench.search.steps import Hold
from streamgauge.records.measurement import Batch, Window
from streamgauge.stats.scalability import carried
from tests.measure.benches import CELL, Bench, write_bench

ONE_CPU, CONTENTION, COHERENCY = 10_000, 0.1, 0.02
QUICK = {"max_age": "600ms", "warmup_seconds": 0, "window_seconds": 0.2, "yardstick": False}
#: a batch of n rows takes 10 ms and n times 100 µs
WHOLE = Estimate(9900.0, 9800.0, 10_000.0, "age", 9900.0, 0.01, 1e-4, None, 0.01, 0.0, 0.0, 0.0)


def bench_of(place: Path, *, pipeline: str = "", **section: Any) -> Bench:
    """pipeline: time of a row through a system without batches."""
    known = {
        "name": "known", "engine": "known", "capacity": ONE_CPU, "batch_cost": "10ms", "contention": CONTENTION,
        "coherency": COHERENCY,
    }  # fmt: skip
    known |= {"continuous": True, "pipeline": pipeline} if pipeline else {}
    return write_bench(place, systems=[known], search=QUICK, scaling=section)


def searched(bench: Bench) -> CellRun:
    """A run whose search has ended."""
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    cell_run.directory.mkdir(parents=True, exist_ok=True)
    rate = carried(1, ONE_CPU, CONTENTION, COHERENCY) * 0.99
    is_continuous = bench.benchmark.system("known").model_dump()["continuous"]
    one = ProcessEstimate(**{**vars(WHOLE), **({"batch_cost_s": None} if is_continuous else {})}, process=1)
    answer = SearchAnswer(
        sustainable_rate_events_per_s=rate, interval=(rate, rate), outcome="found", correct=True, processes=(one,),
        plan=cell_run.plan_key, proven=(0.9 * rate, 1.1 * rate),
    )  # fmt: skip
    publish(cell_run, answer)
    return cell_run


def measured(bench: Bench) -> ScalingRun:
    cell_run = searched(bench)
    measure("scaling", cell_run)
    return ScalingRun.read(cell_run.directory / "scaling.json")


def follow_the_law(run: ScalingRun, rel: float) -> None:
    """Asserts that each point is that of the known law."""
    for one in run.points:
        truth = carried(one.cpus, ONE_CPU, CONTENTION, COHERENCY)
        assert len(one.blocks) == run.blocks
        assert one.rate_events_per_s == pytest.approx(truth * 0.99, rel=rel)
        assert one.efficiency == pytest.approx(truth / one.cpus / ONE_CPU, rel=rel)


def visits(window: Callable[[float, Hold], Window]) -> Visit:
    """Visits that only carry windows out."""
    return lambda cpus: nullcontext(partial(window, cpus))


def window(cpus: float, step: Hold) -> Window:
    """A window of a system whose batches take as long as WHOLE says on one CPU."""
    seconds = (0.01 + 1e-4 * step.rows) / cpus
    batches = tuple(Batch(n * seconds, step.rows, seconds) for n in range(max(4, step.least_batches)))
    return Window(1, "ladder", step.rows, batches)


def point(cpus: float, *rates: float) -> list[Point]:
    made = [Estimate(**{**vars(WHOLE), "rate_events_per_s": rate}) for rate in rates]
    return [Point(block, cpus, estimate) for block, estimate in enumerate(made)]
