"""Measures figures of a run again: repetitions of a cell, each in a fresh process, and of two sides in turns."""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from streamgauge.answers.functional import is_output
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Cell
from streamgauge.measure.cell import ready
from streamgauge.measure.latency import figures_of, results_of
from streamgauge.measure.lock import measuring
from streamgauge.measure.search_stage import PER_UNIT, RATE, Searcher

log = logging.getLogger("streamgauge")
_FRACTION = re.compile(r"_at_([\d.e+-]+)pct$")

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
    metrics: Iterable[str],
    rate: float,
    run_id: str,
) -> Measure:
    """Returns a function that measures one repetition of a cell, each in a fresh process.

    It measures latency and CPU at the fractions of `rate` that the metrics name; for the rate itself it runs a ladder
    of one process. run_id: the run that asks, which names the holder of the lock: only its own retry kills a leftover.
    """
    cell = Cell(experiment=subject.experiment, workload=subject.workload, system=subject.system)
    wanted = [metric for metric in metrics if not is_output(metric)]
    fractions = sorted({float(found[1]) / 100 for metric in wanted if (found := _FRACTION.search(metric))})

    def measure() -> Values:
        found: Values = {}
        work = Path(tempfile.mkdtemp(prefix="streamgauge-rerun-"))
        try:
            with (
                measuring(f"{run_id} rerun {cell.name}") as token,
                ready(benchmark, store, cell, work) as bench,
            ):
                for fraction in fractions:
                    measured = bench.trial(rate * fraction, benchmark.latency.seconds, token=token)
                    results = results_of(benchmark, cell, "rerun", figures_of(fraction, measured))
                    found |= {r.metric: r.value for r in results if r.valid and r.value}
                if RATE in wanted or PER_UNIT in wanted:
                    bench.stop()
                    settings = benchmark.search.model_copy(update={"processes": 1, "proof_steps": 0})
                    answer = Searcher(bench, settings, token).run()
                    rates = {RATE: answer[RATE], PER_UNIT: answer["events_per_yardstick_unit"]}
                    found |= {metric: rate for metric, rate in rates.items() if rate}
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return {metric: value for metric, value in found.items() if metric in wanted}

    return measure
