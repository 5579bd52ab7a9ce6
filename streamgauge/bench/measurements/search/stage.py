"""The search stage: measures windows and proof trials of a cell until `next_step` is Done; records each at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamgauge.base.environment import environment
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.long_runs import long_runs
from streamgauge.bench.measure.searcher import Line, Searcher, measurements
from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.bench.search.claims import claim_of
from streamgauge.bench.search.loop import next_step
from streamgauge.bench.search.steps import Done
from streamgauge.catalog import results
from streamgauge.catalog.run_summary import SEARCH
from streamgauge.config import Search
from streamgauge.records.claim import Claim
from streamgauge.records.result import Result

#: metrics: the rate, and the rate over the machine's speed, which stays comparable when the machine is slower
RATE, PER_UNIT = "sustainable_rate_events_per_s", "sustainable_events_per_yardstick_unit"


def measure(cell_run: CellRun, _: Search) -> dict[str, object]:
    """Searches; returns facts for the log of stages."""
    return facts(run(cell_run))


def run(cell_run: CellRun, long_run_s: float = 0.0) -> SearchAnswer:
    """Searches; returns the record. A search that was killed resumes after its last measurement.

    long_run_s: seconds of each of the long runs that test the found rate; 0 for none.
    """
    with cell_run.ready(cell_run.benchmark.search.cell_seconds(cell_run.benchmark)) as (bench, token):
        searcher = Searcher(bench, cell_run.benchmark.search, token, cell_run.directory, cell_run.plan_key)
        done = searcher.search()
        answer = searcher.answer(done)
        if long_run_s and claim_of(answer).rate_events_per_s:
            answer = answer.model_copy(update={"long_runs": long_runs(bench, done, long_run_s, token)})
    return publish(cell_run, answer)


def facts(answer: SearchAnswer) -> dict[str, object]:
    return {
        "rate_events_per_s": answer.sustainable_rate_events_per_s,
        "reason": answer.reason,
        "system": answer.application,
    }


def publish(cell_run: CellRun, answer: SearchAnswer, latency: Sequence[LatencyRun] = ()) -> SearchAnswer:
    """Writes search.json with the claim, and the rate among the run's results; returns what it wrote.

    The latency stage calls it again with its runs, as one of them may contradict the rate.
    """
    claim = claim_of(answer, latency)
    void = () if claim.rate_events_per_s is not None else (RATE, "interval", "events_per_yardstick_unit")
    published = answer.model_copy(update={"claim": claim, **dict.fromkeys(void)})
    published.write(cell_run.directory / SEARCH)
    for result in _results(cell_run, published, claim):
        results.append_once(cell_run.run_directory, result)
    return published


def is_due(settings: Search, lines: Sequence[Line], process: int) -> bool:
    """True if something of that process, or of one before it, is still to be measured."""
    if not lines:
        return True
    step = next_step(settings, lines[0].limits, measurements(lines))
    return not isinstance(step, Done) and step.process <= process


def _results(cell_run: CellRun, answer: SearchAnswer, claim: Claim) -> Iterator[Result]:
    """The rate and, if the yardstick was run, the rate over the machine's speed; no values if none counts."""
    rate, units = claim.rate_events_per_s, answer.yardstick_units_per_s
    for metric, unit, speed in ((RATE, "events/s", 1.0), (PER_UNIT, "events/unit", units)):
        if speed:
            low, high = [end / speed for end in claim.interval or ()] or (None, None)
            yield cell_run.result(
                metric, unit, rate and rate / speed, low=low, high=high, samples=len(answer.processes),
                valid=rate is not None, reason=claim.sentence, claim=claim.kind,
                software={**environment().software, **answer.software},
            )  # fmt: skip
