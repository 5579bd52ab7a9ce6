"""Tests the estimates of how long a run takes, against runs that were timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.bench.measure import timing
from streamgauge.bench.measurements import USUAL
from streamgauge.catalog.run_log import StageRecord
from streamgauge.catalog.stages import BY_NAME, scopes_of, stages_of
from streamgauge.config import RELEASE_RATE, Release, load

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize(("name", "measured_s"), [("flights", 659), ("degrees", 62 * 60)])
def test_the_estimate_for_people_is_within_half_of_what_a_run_took(name: str, measured_s: float) -> None:
    usual = timing.run_seconds(load(CONFIGS / f"{name}.yaml"), pace=USUAL)
    assert measured_s / 1.5 < usual < measured_s * 1.5


def test_a_timeout_is_far_beyond_what_a_run_usually_takes() -> None:
    for file in CONFIGS.glob("*.yaml"):
        benchmark = load(file)
        for stage in stages_of(benchmark, nightly=True):
            assert timing.stage_seconds(stage, benchmark, USUAL) <= timing.stage_seconds(stage, benchmark)


def test_what_is_left_shrinks_with_each_stage_that_ends() -> None:
    benchmark = load(CONFIGS / "flights.yaml")
    tasks = [
        (stage.name, *scope.values()) for stage in stages_of(benchmark) for scope in scopes_of(benchmark, stage.scope)
    ]
    assert timing.summary(benchmark).startswith("about 11 min (at most 40 min): 1 × turns of 9 min, 2 × generate")
    assert timing.left(benchmark) == "about 11 min left"
    assert timing.left(benchmark, [record(*task) for task in tasks[:-2]]) == "about 9 min left"
    assert timing.left(benchmark, [record(*task) for task in tasks]) == "under a minute left"


def test_cells_in_turns_have_less_left_with_each_one_that_was_searched() -> None:
    benchmark = load(CONFIGS / "flights.yaml")
    first, _ = benchmark.all_cells()
    begun = [record("turns", state="started")]
    turns_s = timing.stage_seconds(BY_NAME["turns"], benchmark, USUAL)
    whole = timing.left_seconds(benchmark, begun)
    half = timing.left_seconds(benchmark, [*begun, record("search", *first.model_dump().values())])
    assert whole - half == pytest.approx(turns_s / 2)


def record(stage: str, *scope: str, state: str = "done") -> StageRecord:
    named = dict(zip(("experiment", "workload", "system"), scope, strict=False))
    attempt = " ".join((stage, *scope))
    return StageRecord(stage=stage, scope=named, attempt=attempt, state=state, at="", started_at="")


def test_what_a_failed_experiment_skips_is_not_left() -> None:
    benchmark = load(CONFIGS / "flights.yaml")
    first, second = benchmark.experiments
    ready = [record("ingest"), record("analyze")]
    both = [*ready, *(record(stage, one.name) for stage in ("generate", "validate") for one in (first, second))]
    one = [*ready, record("generate", first.name, state="failed"), *both[3:]]
    of_a_cell = timing.stage_seconds(BY_NAME["turns"], benchmark, USUAL) / 2
    whole, half = timing.left_seconds(benchmark, both), timing.left_seconds(benchmark, one[:3] + both[3:])
    assert whole - half == pytest.approx(of_a_cell), "validation of the first one is done in both"
    none = [*ready, *(record("generate", one.name, state="failed") for one in benchmark.experiments)]
    assert timing.left(benchmark, none) == "under a minute left", "the page alone is left"
    again = [*none, record("generate", first.name), record("generate", second.name)]
    assert timing.left(benchmark, again) == timing.left(benchmark, both[:2] + again[-2:]), "the last attempt counts"


def test_a_stage_that_runs_has_less_left_from_second_to_second() -> None:
    benchmark = load(CONFIGS / "flights.yaml")
    running = [record("ingest", state="started")]
    whole = timing.left_seconds(benchmark, running)
    assert timing.left_seconds(benchmark, running, running_s=5) == whole - 5
    others = whole - timing.stage_seconds(BY_NAME["ingest"], benchmark, USUAL)
    assert timing.left_seconds(benchmark, running, running_s=1e6) == pytest.approx(others), "never below the others"


def test_a_release_check_is_estimated_with_the_rounds_of_suspects() -> None:
    """A check of Flink against itself, with rates and all cells run again, took 39.5 minutes on two cores."""
    flights, start_s = load(CONFIGS / "flights.yaml"), USUAL.start_s
    search = flights.search.model_copy(update={"warmup_seconds": 25.0, "window_seconds": 2.5})
    release = Release(rate=30_000, seconds=10, warmup_seconds=15, compare=("rate", "latency", "cpu"), queries=())
    one = {"cells": flights.all_cells()[:1], "search": search, "release": release}
    benchmark = flights.model_copy(update=one)
    at_rate_s = 3 * (2 * start_s + 15 + 10)
    ladders_s = 2 * (2 * start_s + 0.8 * 25 + 22 * 2.5 + 10)  # starts, warm-up, windows, the trial that checks answers
    assert timing.release_seconds(benchmark, USUAL, again=False) == start_s + 4 * (at_rate_s + ladders_s)
    usual_s = timing.release_seconds(benchmark, USUAL)
    assert usual_s == start_s + 8 * (at_rate_s + ladders_s)
    assert 39.5 * 60 < usual_s < timing.release_seconds(benchmark) / 2
    assert timing.release_summary(benchmark) == "about 49 min; about 25 min if no cell is run again"
    rates = release.model_copy(update={"tolerance": {RELEASE_RATE: 0.1}})
    alone = benchmark.model_copy(update={"release": rates})
    assert timing.release_seconds(alone, USUAL) == start_s + 8 * ladders_s
