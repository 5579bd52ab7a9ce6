"""The search stage: measures windows and recovery trials of a cell until `next_step` is Done; records each at once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamgauge.base.environment import environment
from streamgauge.base.places import here
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell import ready
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.long_runs import long_runs
from streamgauge.bench.measure.searcher import Line, Searcher, measurements
from streamgauge.bench.measure.settings_hash import plan_key, settings_hash
from streamgauge.bench.search.claims import claim_of
from streamgauge.bench.search.loop import next_step
from streamgauge.bench.search.steps import Done
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_summary import SEARCH
from streamgauge.config import Benchmark, Cell, Search
from streamgauge.records.claim import Claim
from streamgauge.records.latency import LatencyRun
from streamgauge.records.result import Result
from streamgauge.records.search import SearchAnswer

log = logging.getLogger("streamgauge")
#: metrics: the rate, and the rate over the machine's speed, which stays comparable when the machine is slower
RATE, PER_UNIT = "sustainable_rate_events_per_s", "sustainable_events_per_yardstick_unit"


def cell_directory(run: Path, cell: Cell) -> Path:
    return run / "cells" / cell.name


def run(benchmark: Benchmark, store: Store, cell: Cell, run_directory: Path, long_run_s: float = 0.0) -> SearchAnswer:
    """Searches; returns the record. A search that was killed resumes after its last measurement.

    long_run_s: seconds of each of the long runs that test the found rate; 0 for none.
    """
    directory = cell_directory(run_directory, cell)
    directory.mkdir(parents=True, exist_ok=True)
    with (
        measuring(f"{run_directory} {cell.name}", expected_s=timing.search_seconds(benchmark)) as token,
        ready(benchmark, store, cell, here(directory) / "work") as bench,
    ):
        searcher = Searcher(bench, benchmark.search, token, directory, plan_key(benchmark, store, cell))
        answer = searcher.run()
        if long_run_s and claim_of(answer).rate_events_per_s:
            answer = answer.model_copy(update={"long_runs": long_runs(bench, searcher.done, long_run_s, token)})
    return publish(benchmark, cell, run_directory, answer)


def publish(
    benchmark: Benchmark, cell: Cell, run_directory: Path, answer: SearchAnswer, latency: Sequence[LatencyRun] = ()
) -> SearchAnswer:
    """Writes search.json with the claim, and the rate among the run's results; returns what it wrote.

    The latency stage calls it again with its runs, as one of them may contradict the rate.
    """
    claim = claim_of(answer, latency)
    void = () if claim.rate_events_per_s is not None else (RATE, "interval", "events_per_yardstick_unit")
    published = answer.model_copy(update={"claim": claim, **dict.fromkeys(void)})
    published.write(cell_directory(run_directory, cell) / SEARCH)
    for result in _results(benchmark, cell, run_directory.name, published, claim):
        results.append_once(run_directory, result)
    return published


def is_due(settings: Search, lines: Sequence[Line], process: int) -> bool:
    """True if something of that process, or of one before it, is still to be measured."""
    if not lines:
        return True
    step = next_step(settings, lines[0].limits, measurements(lines))
    return not isinstance(step, Done) and step.process <= process


def _results(benchmark: Benchmark, cell: Cell, run_id: str, answer: SearchAnswer, claim: Claim) -> Iterator[Result]:
    """The rate and, if the yardstick was run, the rate over the machine's speed; no values if none counts."""
    rate, units = claim.rate_events_per_s, answer.yardstick_units_per_s
    for metric, unit, speed in ((RATE, "events/s", 1.0), (PER_UNIT, "events/unit", units)):
        if speed:
            low, high = [end / speed for end in claim.interval or ()] or (None, None)
            yield Result(
                benchmark.name, cell.experiment, cell.workload, cell.system, "streaming", metric, unit,
                rate and rate / speed, run_id, settings_hash(benchmark, cell), low, high,
                len(answer.processes), rate is not None, claim.sentence, claim=claim.kind,
                software={**environment().software, **answer.software}, replaces=True,
            )  # fmt: skip
