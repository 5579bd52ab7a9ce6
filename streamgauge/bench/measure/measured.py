"""Judges trials, and reads from their details which software they measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.measure.dropped import dropped
from streamgauge.bench.search.verdict import judge
from streamgauge.config import Search
from streamgauge.records.loss import Loss
from streamgauge.records.trial import UNENDED, Compared, Details, TrialResult


def judged(
    run: TrialRun,
    search: Search,
    cold: str | None,
    compare: Callable[[], Compared | None],
    lost_at_own_speed: Loss,
) -> TrialResult:
    """Judges a trial; a wrong output makes it invalid.

    cold: why the system was cold, or None. compare: checks the output, where there is one.
    """
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
        observation = dataclasses.replace(observation, invalid=UNENDED)
        verdict = judge(observation, search)
    lost = dropped(check, run)
    return TrialResult(
        rate_events_per_s=observation.rate_events_per_s,
        seconds=observation.seconds,
        outcome=verdict.outcome,
        reason=f"{verdict.reason}; {lost.sentence}" if lost else verdict.reason,
        figures=verdict.figures,
        observation=observation,
        correct=None if check is None else check["wrong"] is None,
        check=check,
        dropped=lost,
        lost_at_own_speed=lost_at_own_speed,
        details=run.details,
    )


def speed_of(details: Details) -> float | None:
    """Stream seconds that passed in a wall second of a trial, from its details."""
    return next((driver["stream_seconds_per_second"] for driver in details["drivers"]), None)


def software_of(details: Details) -> dict[str, str]:
    """Versions of the measured system, from a trial's details: they may be others than ours."""
    return details.get("system", {}).get("software", {})


def application_of(details: Details) -> dict[str, str]:
    """Application id and event log of the measured Spark (see streamgauge.streams.stages.session)."""
    return details.get("system", {}).get("application", {})
