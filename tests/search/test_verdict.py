from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration
from streamgauge.bench.search.verdict import judge, load, recovery, slope_interval
from streamgauge.config import Search
from streamgauge.records.measurement import Outcome, Sample, TrialObservation, Verdict

PLAN = Search(max_age=Duration.parse("10s"))


def observed(ages: list[float], *, every_s: float = 1.0, settling: int = 0, **more: Any) -> TrialObservation:
    """Ages at a fixed interval, at 100 events/s."""
    samples = tuple(Sample(i * every_s, age, 100, 100 * i, warm=i >= settling) for i, age in enumerate(ages))
    length = len(ages) * every_s
    return TrialObservation(100, length, samples, offered=100 * len(ages), taken=100 * len(ages), **more)


def outcome(ages: list[float], **how: Any) -> str:
    return recovery(observed(ages, **how), PLAN).outcome


# -- trials that begin with empty queues


def test_steady_and_still_growing() -> None:
    sawtooth = [0.4, 0.5, 0.6, 0.5] * 5
    assert outcome(sawtooth) == "sustainable"
    assert outcome([age - 0.01 * i for i, age in enumerate(sawtooth)]) == "sustainable"
    assert outcome([age + 0.1 * i for i, age in enumerate(sawtooth)]) == "inconclusive", "it may settle"


@given(
    cost=st.floats(0.05, 2),
    load=st.floats(0.3, 0.9),
    seconds=st.sampled_from([4.0, 8.0, 20.0, 60.0]),
)
def test_settling_is_never_taken_for_overload(cost: float, load: float, seconds: float) -> None:
    """T = a + b·n settles at a/(1 − b·r): as long as that is below the allowed age, no trial is too short to say no."""
    rate, row = load * 1e6, 1e-6
    if cost / (1 - load) > 9:
        return
    at, age, ages = 0.0, 0.0, list[tuple[float, float]]()
    while at < seconds:
        ages.append((at, age))
        took = cost + row * max(1.0, rate * age)
        age, at = took, at + took
    samples = tuple(Sample(at, age, round(rate * age), 0) for at, age in ages)
    found = recovery(TrialObservation(rate, seconds, samples, 1, 1), PLAN)
    assert found.outcome != "unsustainable", found


def test_one_outlier_decides_nothing() -> None:
    ages = [0.5] * 20
    ages[11] = 8.0
    assert outcome(ages) == "sustainable"


def test_settling_is_left_out() -> None:
    ages = [12.0, 12.0, 12.0, *[0.5] * 20]
    assert outcome(ages) == "unsustainable"
    assert outcome(ages, settling=3) == "sustainable"


def test_too_few_looks_never_pass() -> None:
    assert [outcome([0.5] * looks) for looks in (2, 3, 4)] == ["inconclusive", "inconclusive", "sustainable"]


def test_an_old_event_is_unsustainable_even_with_few_batches() -> None:
    verdict = recovery(observed([3.0, 10.5]), PLAN)
    assert verdict == Verdict(
        "unsustainable", "an event waited 10.5 s, more than 10 s", {"looks": 2, "age_s_max": 10.5}
    )


# -- trials that begin behind


def behind(steps: list[float], *, noise: float | None = None, start: float = 5.0) -> str:
    """The outcome for an age that begins at `start` and changes by such steps, one a second."""
    ages = np.cumsum([start, *steps]).tolist()
    return outcome(ages, behind_s=start, batch_noise=noise)


def test_the_sign_of_the_drift_decides() -> None:
    assert behind([-0.1] * 10) == "sustainable"
    assert behind([0.1] * 10) == "unsustainable"
    assert behind([0.1, -0.1] * 5) == "inconclusive"
    assert behind([-0.1] * 2) == "inconclusive", "too few looks"


def test_noise_that_the_ladder_has_seen_asks_for_more() -> None:
    assert behind([-0.1] * 4, noise=0.02) == "sustainable"
    assert behind([-0.1] * 4, noise=0.2) == "inconclusive"


@pytest.mark.parametrize("hiccups", [1, 2])
def test_a_batch_or_two_that_stand_out_do_not_decide(hiccups: int) -> None:
    steps = [-0.01, 0.01] * 10
    for place in (7, 12)[:hiccups]:
        steps[place] = 2.0
    assert behind(steps) == "inconclusive"
    assert behind(steps, noise=0.05) == "inconclusive"


def test_what_catches_up_at_once_and_then_rests_has_caught_up() -> None:
    assert behind([-4.9, *[0.0] * 10], noise=0.05) == "sustainable"


def test_an_engine_without_micro_batches_is_judged_by_the_clock() -> None:
    clock = tuple(Sample(0.1 * i, 5 - 0.03 * i + 0.01 * (i % 2), 100, i) for i in range(100))
    busy = tuple(Sample(0.001 * i, 5.0, 100, i) for i in range(500))  # plans every millisecond
    found = recovery(TrialObservation(100, 10, busy, 1, 1, clock=clock, behind_s=5.0), PLAN)
    assert found.outcome == "sustainable"
    assert found.figures["looks"] < 30, "neighbours are alike: the clock is read twice a second"


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        ({"overflow": True}, "unsustainable", "a queue overflowed"),
        (
            {"overflow": True, "uncommitted": True},
            "inconclusive",
            "rows that it took and has not committed fill the driver's queues: raise replay.max_memory_mb, or let it "
            "commit more often",
        ),
        ({"invalid": "the driver slipped"}, "inconclusive", "invalid trial: the driver slipped"),
        ({"invalid": "a process died", "overflow": True}, "inconclusive", "invalid trial: a process died"),
        ({"samples": ()}, "inconclusive", "the system took nothing"),
        ({"offered": 0}, "inconclusive", "nothing was offered"),
    ],
)
def test_missing_or_invalid_data_is_never_a_pass(change: dict[str, Any], expected: Outcome, reason: str) -> None:
    observation = replace(observed([0.5] * 20), **change)
    assert recovery(observation, PLAN) == Verdict(expected, reason)
    assert judge(observation, PLAN) == Verdict(expected, reason)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_ages_that_are_no_numbers_are_inconclusive(bad: float) -> None:
    assert outcome([0.5] * 10 + [bad]) == "inconclusive"


def test_samples_at_one_instant_are_inconclusive() -> None:
    assert outcome([0.5] * 10, every_s=0.0) == "inconclusive"
    assert outcome([0.5] * 10, every_s=0.0, behind_s=5.0) == "inconclusive"


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0.001, 10)), min_size=3, max_size=24))
def test_the_slope_is_theil_and_sens(points: list[tuple[int, float]]) -> None:
    at, value = zip(*sorted(points), strict=True)
    slope, low, high = slope_interval(at, value)
    if at[0] == at[-1]:
        assert math.isnan(slope)
    else:
        pairs = combinations(zip(at, value, strict=True), 2)
        assert slope == pytest.approx(median((y - v) / (x - u) for (u, v), (x, y) in pairs if x > u), abs=1e-9)
        assert low <= high
    assert slope_interval(at, value)[1:] == pytest.approx((low, high), nan_ok=True)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_interval_holds_the_true_slope_about_as_often_as_it_says(correlation: float) -> None:
    hits = 0
    for seed in range(300):
        noise = np.random.default_rng(seed).normal(0, 1, 24)
        for i in range(1, 24):
            noise[i] += correlation * noise[i - 1]
        _, low, high = slope_interval(range(24), (0.1 * np.arange(24) + noise).tolist())
        hits += low <= 0.1 <= high
    assert 0.6 <= hits / 300 <= 0.98  # short blocks of 24 points are known to give narrow intervals


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    def write(body: str) -> str:
        (tmp_path / "my_verdicts.py").write_text(
            f"from streamgauge.records.measurement import Verdict\ndef mine(observation, search):\n    {body}\n"
        )
        return "my_verdicts:mine"

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_verdicts", raising=False)
    return write


def test_a_users_own_function_decides(user_module: Callable[[str], str]) -> None:
    name = user_module("return Verdict('unsustainable', 'I say so', {'rate': observation.rate_events_per_s})")
    verdict = judge(observed([0.5] * 20), Search(verdict=name))
    assert verdict == Verdict("unsustainable", "I say so", {"rate": 100})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('age')", "search.verdict: my_verdicts:mine raised KeyError: 'age'"),
        ("return True", "my_verdicts:mine returned bool True, allowed: streamgauge.records.measurement.Verdict"),
        ("return None", "my_verdicts:mine returned NoneType None"),
        ("return Verdict('fine', 'x')", "returned the outcome 'fine', allowed"),
        ("return Verdict([], 'x')", "returned the outcome []"),
        ("return Verdict('sustainable', None)", "returned the reason None"),
        ("return Verdict('sustainable', 'x', {'p': float('nan')})", "returned the figure p = nan"),
        ("return Verdict('sustainable', 'x', None)", "returned the figures None"),
    ],
)
def test_a_function_that_raises_or_returns_nonsense_is_named(
    user_module: Callable[[str], str], body: str, message: str
) -> None:
    with pytest.raises(UserError) as refused:
        judge(observed([0.5] * 20), Search(verdict=user_module(body)))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_users_function_is_not_asked_about_an_invalid_trial(user_module: Callable[[str], str]) -> None:
    plan = Search(verdict=user_module("return Verdict('sustainable', 'whatever')"))
    assert judge(replace(observed([0.5] * 20), invalid="cut"), plan).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("age", "found 'age', allowed: recovery, or package.module:function"),
        (":mine", "found ':mine', allowed"),
        ("no_such_module:mine", "no_such_module:mine cannot be loaded: ModuleNotFoundError"),
        ("math:no_such", "math:no_such cannot be loaded: AttributeError: module 'math' has no attribute 'no_such'"),
        ("math:pi", "math:pi is no function"),
    ],
)
def test_an_unknown_function_is_named(name: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        load(name)
    assert message in str(refused.value)


# -- which samples count


def by_clock(seconds: float, age_s: Callable[[float], float]) -> tuple[Sample, ...]:
    return tuple(Sample(at / 10, age_s(at / 10), 100, 0) for at in range(round(10 * seconds)))


@pytest.mark.parametrize("planned", [[], [(0.0, 9.0)], [(0.0, 9.0), (9.0, 9.5)]])
def test_within_its_first_batches_an_engine_is_not_judged_by_the_clock(planned: list[tuple[float, float]]) -> None:
    """The age only rises until the next batch takes rows; a job that commits every ten seconds looks the same."""
    samples = tuple(Sample(at, age, 100, 100) for at, age in planned)
    clock = by_clock(5, lambda at: at)
    seen = TrialObservation(100, 40, samples, offered=500, taken=100, clock=clock, behind_s=10.0)
    assert recovery(seen, PLAN).outcome == "inconclusive"


def test_an_engine_without_batches_is_judged_by_the_clock() -> None:
    clock = by_clock(10, lambda at: 10 - at)
    planned = tuple(replace(sample, age_s=0.0) for sample in clock)
    seen = TrialObservation(100, 40, planned, offered=500, taken=100, clock=clock, behind_s=10.0)
    assert recovery(seen, PLAN).outcome == "sustainable"


@pytest.mark.parametrize(("age_s", "wanted"), [(10.0, "inconclusive"), (10.4, "inconclusive"), (12.0, "unsustainable")])
def test_queues_that_cannot_hold_the_backlog_are_the_driver_s_fault(age_s: float, wanted: str) -> None:
    seen = TrialObservation(100, 40, (Sample(0.1, age_s, 9, 0),), 500, 100, overflow=True, behind_s=10.0)
    assert judge(seen, PLAN).outcome == wanted
