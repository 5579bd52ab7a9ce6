"""The judgement level or growing: against scipy's slope, on series whose truth is known, and where it says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.trend import LEVEL
from streamgauge.stats.trend import HOUR_S, LEAST, SETTLING, Trend, full, lowest, medians, trend

#: 3 minutes with a sample every 2 s, the shortest soak that is worth one
AT = np.arange(90) * 2.0


@pytest.mark.parametrize("kind", LEVEL)
def test_of_twenty_level_series_none_or_one_is_found_to_grow(kind: str) -> None:
    """`python -m benchmarks.trend` has 100 of each kind, in two lengths."""
    found = [trend(AT, LEVEL[kind](np.random.default_rng((seed, 5)), AT.size)).kind for seed in range(20)]
    assert found.count("growing") <= 1


@pytest.mark.parametrize("noise", ["white noise", "AR(1) 0.5", "sawtooth of 8 samples"])
def test_a_leak_is_found_and_its_rate_lies_in_the_interval(noise: str) -> None:
    growth = 20.0
    rate = growth / AT[-1] * HOUR_S
    held = 0
    for seed in range(20):
        seen = LEVEL[noise](np.random.default_rng((seed, 6)), AT.size) + growth * AT / AT[-1]
        judged = trend(AT, seen)
        assert judged.kind == "growing"
        assert judged.per_hour == pytest.approx(rate, rel=0.25)
        assert judged.low is not None
        assert judged.high is not None
        held += judged.low <= rate <= judged.high
    assert held >= 18


def test_the_slope_is_that_of_theil_and_sen() -> None:
    seen = np.random.default_rng(3).normal(0, 1, AT.size) + 0.01 * AT
    judged = SETTLING * AT[-1] <= AT
    slope = stats.theilslopes(seen[judged], AT[judged]).slope
    assert trend(AT, seen).per_hour == pytest.approx(slope * HOUR_S)


@given(st.integers(0, 2**32 - 1), st.integers(16, 60))
def test_a_falling_series_has_the_mirrored_interval_of_a_growing_one(seed: int, count: int) -> None:
    seen = np.random.default_rng(seed).normal(0, 1, count)
    grows, falls = trend(AT[:count], seen), trend(AT[:count], -seen)
    assert (grows.low, grows.high) == (falls.high and -falls.high, falls.low and -falls.low)


@given(st.floats(-100, 100), st.floats(-1e6, 1e6), st.sampled_from(["growing", "level"]))
def test_a_straight_line_has_its_slope_whatever_its_level(slope: float, level: float, kind: str) -> None:
    slope = 0.0 if kind == "level" else 1 + abs(slope)
    found = trend(AT, level + slope * AT)
    assert found.kind == kind
    assert found.per_hour == pytest.approx(slope * HOUR_S, rel=1e-6)


def test_more_series_make_each_judgement_stricter() -> None:
    seen = np.random.default_rng(4).normal(0, 1, AT.size) + 0.02 * AT
    alone, among = trend(AT, seen), trend(AT, seen, series=20)
    assert alone.low is not None
    assert among.low is not None
    assert among.low < alone.low


def test_few_samples_say_nothing_and_so_do_samples_that_hardly_differ_from_their_neighbours() -> None:
    assert trend(AT[: LEAST - 1], AT[: LEAST - 1]) == Trend(
        "not clear", 11, 11, reason=f"11 samples, at least {LEAST} are needed"
    )
    assert trend([], []).kind == "not clear"
    wandering = np.cumsum(np.random.default_rng(5).normal(0, 1, AT.size))
    assert trend(AT, wandering).kind in ("not clear", "level")


def test_what_grows_is_full_when_its_rate_says() -> None:
    growing = Trend("growing", 100, 50.0, level=60.0, per_hour=10.0, low=8.0, high=20.0)
    filled = full(growing, 100.0)
    assert filled is not None
    assert (filled.hours, filled.low, filled.high) == (4.0, 2.0, 5.0)
    assert full(Trend("level", 100, 50.0, level=60.0, per_hour=1.0, low=-1.0, high=2.0), 100.0) is None


def test_parts_have_their_median_and_their_least_value() -> None:
    at, seen = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 1.0, 9.0, 7.0, 8.0, 6.0]
    assert [one.tolist() for one in medians(at, seen, 2)] == [[1.0, 4.0], [3.0, 7.0]]
    assert [one.tolist() for one in lowest(at, seen, 2)] == [[1.0, 4.0], [1.0, 6.0]]
    assert medians(at, seen, 6)[1].tolist() == seen
