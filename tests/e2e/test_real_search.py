"""Three known capacities on the real clock and wire: the search ends within 5 % of each, in at most 10 trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.config import Replay, Search, System, Workload
from streamgauge.driver.fleet import Fleet
from streamgauge.driver.system import make_system
from streamgauge.driver.trial import run_trial
from streamgauge.search import Done, next_step
from streamgauge.trial import Trial
from streamgauge.units import Duration
from streamgauge.verdict import carried, judge
from tests.driver.conftest import COLUMNS, artifact, favoured

__all__ = ["artifact", "favoured"]

pytestmark = pytest.mark.e2e


@pytest.mark.usefixtures("favoured")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("capacity", "noise"), [(1_000, 0.0), (30_000, 0.1), (400_000, 0.1)])
def test_search_on_the_real_clock_finds_the_capacity(artifact: Path, capacity: float, noise: float) -> None:
    plan = Search(trial_seconds=5.0, min_rate=100, max_rate=2_000_000)
    known = System(name="k", engine="known", capacity=capacity, noise=noise, trigger=Duration.parse("100ms"))
    system, trials = make_system(known, artifact), list[Trial]()
    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS) as fleet:
        while not isinstance(step := next_step(plan, trials), Done):
            run = run_trial(
                system,
                fleet,
                Workload(name="pass", query="passthrough"),
                rate=step.rate_events_per_s,
                seconds=plan.trial_seconds * step.seconds_factor,
                work=artifact,
                hold=step.purpose == "probe",
            )
            trials.append(
                step.tried(
                    judge(run.observation, plan), carried(run.observation), valid=run.observation.invalid is None
                )
            )
            print(trials[-1].purpose, trials[-1].rate_events_per_s, trials[-1].carried_events_per_s, trials[-1].verdict)
    assert step.rate_events_per_s == pytest.approx(capacity, rel=0.05), step
    assert len(trials) <= 10
