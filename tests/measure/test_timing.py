"""Tests the estimates of how long a run takes, against runs that were timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.catalog.stages import scopes_of, stages_of
from streamgauge.config import load
from streamgauge.measure import timing

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize(("name", "measured_s"), [("flights", 441), ("engines", 62 * 60)])
def test_the_estimate_for_people_is_within_half_of_what_a_run_took(name: str, measured_s: float) -> None:
    usual = timing.run_seconds(load(CONFIGS / f"{name}.yaml"), pace=timing.USUAL)
    assert measured_s / 1.5 < usual < measured_s * 1.5


def test_a_timeout_is_far_beyond_what_a_run_usually_takes() -> None:
    for file in CONFIGS.glob("*.yaml"):
        benchmark = load(file)
        for stage in stages_of(benchmark, nightly=True):
            assert timing.stage_seconds(stage, benchmark, timing.USUAL) <= timing.stage_seconds(stage, benchmark)


def test_what_is_left_shrinks_with_each_stage_that_ends() -> None:
    benchmark = load(CONFIGS / "flights.yaml")
    tasks = [
        (stage.name, *scope.values()) for stage in stages_of(benchmark) for scope in scopes_of(benchmark, stage.scope)
    ]
    assert timing.told(benchmark).startswith("about 7 min (at most 24 min): 2 × search of 2 min, 2 × latency of 1 min")
    assert timing.left(benchmark, []) == "about 7 min left"
    assert timing.left(benchmark, tasks[:-3]) == "about 2 min left"
    assert timing.left(benchmark, tasks) == "about 1 min left", "the shortest time that is told"
