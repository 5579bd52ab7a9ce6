"""Runs open-loop trials of a started system: events are offered on schedule, whatever the system does."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from streamgauge.bench.driver.conversation import Conversation, Progress
from streamgauge.bench.driver.fleet import Drivers
from streamgauge.bench.driver.marking import UNMARKED, Marking
from streamgauge.bench.driver.observed import Bounds, TrialRequest, TrialRun
from streamgauge.bench.driver.schedule import check_rate, check_seconds
from streamgauge.bench.driver.system import Adapter, Endpoint, TrialSetup
from streamgauge.bench.workloads import find
from streamgauge.config import Workload
from streamgauge.records.measurement import TrialObservation

#: a context that yields other endpoints for the same drivers
Through = Callable[[tuple[Endpoint, ...]], AbstractContextManager[tuple[Endpoint, ...]]]


def run_trial(
    system: Adapter,
    fleet: Drivers,
    workload: Workload,
    *,
    rate: float,
    seconds: float,
    work: Path,
    bounds: Bounds | None = None,
    behind_s: float = 0.0,
    batch_noise: float | None = None,
    over: Callable[[TrialObservation], bool] | None = None,
    attempt: str | None = None,
    progress: Progress | None = None,
    marking: Marking = UNMARKED,
    stream: int = 0,
    through: Through = nullcontext,
) -> TrialRun:
    """Runs one open-loop trial of a started system at `rate` events/s. Raises UserError for a bad rate or time only.

    behind_s: age of the backlog at the start. over: called now and then with the observation so far; once it is true,
    the trial ends before `seconds`. work: an empty directory for the system. progress: called several times a second
    with the status of each driver process. marking: the columns that are ids, which have values of their own in each
    round. stream: which one of the fleet's. through: a context with the endpoints that the system is given instead of
    the fleet's own.
    """
    check_rate(rate)
    check_seconds(seconds)
    talk = Conversation(system, fleet, bounds or Bounds(), attempt or uuid.uuid4().hex[:12], progress)
    request = TrialRequest(rate, seconds, behind_s, batch_noise, find(workload.query).late != "never")

    def watch() -> None:
        talk.watch(request, over)
        talk.stop_and_drain()

    with through(fleet.endpoints) as given:
        setup = TrialSetup(talk.attempt, given, workload, fleet.columns, fleet.tick, work, rate, marking)
        return talk.run(request, lambda: talk.begin(setup, request, stream=stream), watch)
