"""Measures figures of a run again: repetitions of a cell, each in a fresh process, and of two sides in turns."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.measure.cell import ready
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.searcher import one_ladder
from streamgauge.bench.measurements.latency.stage import figures_of, is_of_load, load_name, results_of
from streamgauge.bench.measurements.search.stage import PER_UNIT, RATE
from streamgauge.bench.search.claims import claim_of
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Cell

log = logging.getLogger("streamgauge")

Values = dict[str, float]  # by metric
#: measures one repetition; a figure that is missing in its result was void
Measure = Callable[[], Values]


@dataclass(frozen=True)
class Subject:
    """The subject of a repetition: a cell in streaming, or a query of the suite in a mode."""

    experiment: str
    workload: str
    system: str
    mode: str
    suite: bool = False  # True for a query of the suite, as a cell may have the same name

    @property
    def name(self) -> str:
        return f"{self.experiment} {self.workload} {self.system} {self.mode}"


def is_rerun(metric: str) -> bool:
    """True if a repetition measures this figure. Those of other measurements come from their own stages alone."""
    return metric in (RATE, PER_UNIT, SECONDS) or is_of_load(metric)


def edited(earlier: Benchmark, now: Benchmark, subject: Subject, *, others: bool = False) -> list[str]:
    """Names what differs besides the system: with such a difference, a step says nothing about the system.

    others: also compares the sections of all other measurements, on which their figures depend.
    """

    def asked(benchmark: Benchmark) -> dict[str, Any]:
        mine = {f"experiment {e.name}": e.model_dump() for e in benchmark.experiments if e.name == subject.experiment}
        mine |= {f"workload {w.name}": w.model_dump() for w in benchmark.workloads if w.name == subject.workload}
        if others:
            own = {name: one for name, one in benchmark.sections.items() if name not in ("search", "latency")}
            mine |= {f"section {name}": section.model_dump() for name, section in own.items()}
        if not subject.suite:
            mine |= {"search": benchmark.search.model_dump(), "latency": benchmark.latency.model_dump()}
        return {"source": benchmark.source, "scale": benchmark.scale, "replay": benchmark.replay, **mine}

    before, after = asked(earlier), asked(now)
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def in_turns(first: Measure, second: Measure, repetitions: int) -> tuple[list[Values], list[Values]]:
    """Measures both sides in turns (A B A B …), so that a drift of the machine affects both; returns their values."""
    sides: tuple[list[Values], list[Values]] = ([], [])
    for number in range(repetitions):
        for measure, side in zip((first, second), sides, strict=True):
            log.info("  repetition %d of %d, %s", number + 1, repetitions, "AB"[side is sides[1]])
            side.append(measure())
    return sides


def column(values: Iterable[Values], metric: str) -> list[float]:
    return [row[metric] for row in values if metric in row]


def of_cell(
    benchmark: Benchmark,
    store: Store,
    subject: Subject,
    metrics: Collection[str],
    rate: float,
    run_id: str,
) -> Measure:
    """Returns a function that measures one repetition of a cell, each in a fresh process.

    It measures latency and CPU at the loads of the latency stage, in its order, up to the last that the metrics name:
    a trial of the night followed the same trials, so its process was as warm. For the rate itself it runs a ladder of
    one process. rate: sustainable rate in events/s, of which the loads are fractions. run_id: the run that asks, which
    names the holder of the lock: only its own retry kills a leftover.
    """
    cell = Cell(experiment=subject.experiment, workload=subject.workload, system=subject.system)
    plan = benchmark.latency
    loads = [(one, False) for one in plan.fractions] + [(one / rate, True) for one in plan.rates]
    named = {metric.rpartition("_at_")[2] for metric in metrics}
    places = [n for n, (part, common) in enumerate(loads, 1) if load_name(part, part * rate, common) in named]

    def measure() -> Values:
        values: Values = {}
        with (
            tempfile.TemporaryDirectory(prefix="streamgauge-rerun-", ignore_cleanup_errors=True) as work,
            measuring(f"{store.run(run_id)} rerun {cell.name}") as token,
            ready(benchmark, store, cell, Path(work)) as bench,
        ):
            for fraction, common in loads[: max(places, default=0)]:
                measured = bench.trial(rate * fraction, plan.seconds, token=token)
                figures = figures_of(fraction, measured, common=common)
                results = results_of(CellRun(benchmark, store, cell, Path(work)), figures)
                values |= {r.metric: r.value for r in results if r.valid and r.value}
            if RATE in metrics or PER_UNIT in metrics:
                answer = one_ladder(bench, benchmark.search, token)
                if claim_of(answer).rate_events_per_s is not None:
                    rates = {RATE: answer.sustainable_rate_events_per_s, PER_UNIT: answer.events_per_yardstick_unit}
                    values |= {metric: rate for metric, rate in rates.items() if rate}
        return {metric: value for metric, value in values.items() if metric in metrics}

    return measure


class Turns:
    """Repetitions shared by the figures of a subject; without a first side, past values are the baseline."""

    def __init__(self, first: Measure | None, second: Measure) -> None:
        self.first, self._second = first, second
        self._sides: tuple[list[Values], list[Values]] = ([], [])

    def of(self, metric: str, past: list[float]) -> Callable[[int], tuple[list[float], list[float]]]:
        """Returns a function that gives, at every call, the next `count` values of each side."""
        taken = 0

        def rerun(count: int) -> tuple[list[float], list[float]]:
            nonlocal taken
            begin, taken = taken, taken + count
            self._up_to(taken)
            old, new = (column(side[begin:taken], metric) for side in self._sides)
            newest_first = past[::-1]
            return (newest_first[begin:taken] if self.first is None else old), new

        return rerun

    def _up_to(self, count: int) -> None:
        missing = count - len(self._sides[1])
        if missing > 0:
            more = in_turns(self.first or dict, self._second, missing)
            for side, new in zip(self._sides, more, strict=True):
                side.extend(new)
