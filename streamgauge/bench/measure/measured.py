"""The outcome of a trial with its verdict, and the software that it measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.measure.dropped import dropped
from streamgauge.bench.measurements.latency.record import Dropped
from streamgauge.bench.search.verdict import judge
from streamgauge.config import Search
from streamgauge.records.loss import Loss
from streamgauge.records.measurement import TrialObservation, Verdict
from streamgauge.records.trial import Compared, Details, TrialResult


@dataclass(frozen=True)
class Measured:
    """A trial with its verdict; a wrong output makes it invalid."""

    observation: TrialObservation
    verdict: Verdict
    run: TrialRun
    check: Compared | None  # expected and reported rows, checksums, late drops; None: not checked
    lost_at_own_speed: Loss
    dropped: Dropped | None = None  # None: nothing

    @property
    def correct(self) -> bool | None:
        return None if self.check is None else self.check["wrong"] is None

    @property
    def failure(self) -> str:
        """Reason why it is invalid if its system failed; empty if something else did first, such as its driver."""
        invalid, failure = self.observation.invalid or "", self.run.details["system"].get("failure")
        return invalid if failure and failure in invalid else ""

    def record(self) -> TrialResult:
        return TrialResult(
            rate_events_per_s=self.observation.rate_events_per_s,
            seconds=self.observation.seconds,
            outcome=self.verdict.outcome,
            reason=self.verdict.reason,
            figures=self.verdict.figures,
            observation=self.observation,
            correct=self.correct,
            check=self.check,
            dropped=self.dropped,
            lost_at_own_speed=self.lost_at_own_speed,
            details=self.run.details,
        )


def judged(
    run: TrialRun,
    search: Search,
    cold: str | None,
    compare: Callable[[], Compared | None],
    lost_at_own_speed: Loss,
) -> Measured:
    """Judges a trial; `compare` checks its output, where it has one. cold: why the system was cold, or None."""
    observation, check = run.observation, None
    system = run.details.get("system", {})
    failure = system.get("failure")
    if run.details.get("drained") and system.get("drained") is False:
        run.details["drained"] = False  # it took all rows, and its last answers did not come out in time
    invalid = observation.invalid or cold
    if not invalid and failure and not observation.overflow:  # an overflow was cut short
        invalid = f"the system failed: {failure}"
    if not invalid and run.details.get("drained") and not observation.overflow:
        check = compare()
        invalid = check["wrong"] if check else None
    observation = dataclasses.replace(observation, invalid=invalid or None)
    verdict = judge(observation, search)
    if verdict.outcome == "sustainable" and run.details.get("drained") is False:
        # its last answers are unknown, hence also whether the others are right
        observation = dataclasses.replace(observation, invalid="the system did not end its work in time")
        verdict = judge(observation, search)
    if lost := dropped(check, run):
        verdict = dataclasses.replace(verdict, reason=f"{verdict.reason}; {lost.sentence}")
    return Measured(observation, verdict, run, check, lost_at_own_speed, lost)


def speed_of(details: Details) -> float | None:
    """Stream seconds that passed in a wall second of a trial, from its details."""
    return next((driver["stream_seconds_per_second"] for driver in details["drivers"]), None)


def software_of(details: Details) -> dict[str, str]:
    """Versions of the measured system, from a trial's details: they may be others than ours."""
    return details.get("system", {}).get("software", {})


def application_of(details: Details) -> dict[str, str]:
    """Application id and event log of the measured Spark (see streamgauge.streams.stages.session)."""
    return details.get("system", {}).get("application", {})
