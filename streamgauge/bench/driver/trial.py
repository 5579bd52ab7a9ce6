"""Runs open-loop trials of a started system: events are offered on schedule, whatever the system does."""

from __future__ import annotations

from streamgauge.bench.driver.conversation import Conversation
from streamgauge.bench.driver.fleet import Drivers
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.schedule import check_rate, check_seconds
from streamgauge.bench.driver.system import Adapter
from streamgauge.bench.driver.trial_request import TrialRequest


def run_trial(system: Adapter, fleet: Drivers, request: TrialRequest) -> TrialRun:
    """Runs one open-loop trial of a started system. Raises UserError for a bad rate, time, workload or late rule."""
    check_rate(request.rate)
    check_seconds(request.seconds)
    talk = Conversation(system, fleet, request)

    def watch() -> None:
        talk.watch()
        talk.stop_and_drain()

    with request.through(fleet.endpoints) as given:
        return talk.run(lambda: talk.begin(given, stream=request.stream), watch)
