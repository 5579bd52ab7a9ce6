from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.config import Search
from streamgauge.errors import UserError
from streamgauge.trial import Sample, TrialObservation, Verdict
from streamgauge.units import Duration
from streamgauge.verdict import age_slope, carried, judge, load, slope_interval

PLAN = Search(max_age_slope=0.03, max_age=Duration.parse("10s"), min_batches=8)


def observed(ages: list[float], *, every_s: float = 1.0, warmup: int = 0) -> TrialObservation:
    """Ages at a fixed interval, at 100 events/s."""
    samples = tuple(Sample(i * every_s, age, 100, 100 * i, warm=i >= warmup) for i, age in enumerate(ages))
    return TrialObservation(100, len(ages) * every_s, samples, offered=100 * len(ages), taken=100 * len(ages))


def outcome(ages: list[float], **how: float) -> str:
    return age_slope(observed(ages, **how), PLAN).outcome


def test_steady_growing_and_in_between() -> None:
    sawtooth = [0.4, 0.5, 0.6, 0.5] * 5
    assert outcome(sawtooth) == "sustainable"
    assert outcome([age + 0.1 * i for i, age in enumerate(sawtooth)]) == "unsustainable"
    assert outcome([age + 0.03 * i for i, age in enumerate(sawtooth)]) == "inconclusive"
    assert outcome([age - 0.01 * i for i, age in enumerate(sawtooth)]) == "sustainable"


@pytest.mark.parametrize("slope", [0.01, 0.05])
def test_an_interval_on_both_sides_of_the_threshold_is_inconclusive(slope: float) -> None:
    noise = np.random.default_rng(1).normal(0, 1, 10)
    verdict = age_slope(observed((3 + slope * np.arange(10) + noise).tolist()), PLAN)
    assert verdict.outcome == "inconclusive"
    assert verdict.figures["age_slope_low"] < 0.03 < verdict.figures["age_slope_high"]


@pytest.mark.parametrize("count", [8, 12, 20, 400])
def test_few_or_many_batches_tell_half_and_twice_the_threshold_apart(count: int) -> None:
    noise = np.random.default_rng(count).normal(0, 0.02, count)
    at = np.arange(count) * 20 / count
    assert outcome((0.5 + 0.005 * at + noise).tolist(), every_s=20 / count) == "sustainable"
    assert outcome((0.5 + 0.08 * at + noise).tolist(), every_s=20 / count) == "unsustainable"


def test_one_outlier_decides_nothing() -> None:
    ages = [0.5] * 20
    ages[18] = 8.0  # one garbage collection
    assert outcome(ages) == "sustainable"


def test_warming_up_is_left_out() -> None:
    ages = [20.0, 9.0, 4.0, *[0.5] * 10]
    assert age_slope(observed(ages, warmup=3), PLAN).outcome == "sustainable"
    assert age_slope(observed(ages), PLAN).outcome == "unsustainable"


@pytest.mark.parametrize("batches", range(12))
def test_too_few_batches_never_pass(batches: int) -> None:
    expected = "sustainable" if batches >= 8 else "inconclusive"
    assert outcome([0.5] * batches) == expected


def test_an_old_event_is_unsustainable_even_with_few_batches() -> None:
    verdict = age_slope(observed([3.0, 10.5]), PLAN)
    assert verdict == Verdict(
        "unsustainable", "an event waited 10.5 s, more than 10 s", {"batches": 2, "age_s_max": 10.5}
    )


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        ({"overflow": True}, "unsustainable", "a queue overflowed"),
        ({"invalid": "the driver slipped"}, "inconclusive", "invalid trial: the driver slipped"),
        ({"invalid": "a process died", "overflow": True}, "inconclusive", "invalid trial: a process died"),
        ({"samples": ()}, "inconclusive", "the system took no micro-batch"),
        ({"offered": 0}, "inconclusive", "nothing was offered"),
    ],
)
def test_missing_or_invalid_data_is_never_a_pass(change: dict[str, object], expected: str, reason: str) -> None:
    observation = replace(observed([0.5] * 20), **change)
    assert age_slope(observation, PLAN) == Verdict(expected, reason)
    assert judge(observation, PLAN) == Verdict(expected, reason)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_ages_that_are_no_numbers_are_inconclusive(bad: float) -> None:
    assert outcome([0.5] * 10 + [bad]) == "inconclusive"


def test_samples_at_one_instant_are_inconclusive() -> None:
    assert outcome([0.5] * 10, every_s=0.0) == "inconclusive"


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


def test_carried_is_what_was_handed_over_between_the_first_and_last_warm_batch() -> None:
    samples = (Sample(0, 0, 50, 0, False), Sample(1, 0.5, 60, 10), Sample(2, 1.0, 70, 40), Sample(4, 2.0, 90, 100))
    observation = TrialObservation(100, 4, samples, 400, 120)
    assert carried(observation) == 30
    assert carried(replace(observation, samples=samples[:2])) == 10  # one warm sample only: all count
    assert carried(replace(observation, samples=samples[:1])) is None
    assert carried(replace(observation, invalid="slipped")) == 30


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    def write(body: str) -> str:
        (tmp_path / "my_verdicts.py").write_text(
            f"from streamgauge.trial import Verdict\ndef mine(observation, search):\n    {body}\n"
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
        ("return True", "my_verdicts:mine returned bool True, allowed: streamgauge.trial.Verdict"),
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
        ("age", "found 'age', allowed: age_slope, or package.module:function"),
        (":mine", "found ':mine', allowed"),
        ("no_such_module:mine", "'no_such_module' of 'no_such_module:mine' cannot be imported (ModuleNotFoundError"),
        ("math:no_such", "'math' has no function 'no_such'"),
        ("math:pi", "'math' has no function 'pi'"),
    ],
)
def test_an_unknown_function_is_named(name: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        load(name)
    assert message in str(refused.value)
