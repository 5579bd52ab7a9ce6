"""Schedules: the wanted count within the wanted time, in the wanted shape."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.schedule import NS, Loop, schedule

LOOP = Loop.of(np.array([0, 10, 10, 10, 70], np.int64))  # shift 70 + 17


def within(rate: float, seconds: float, profile: str, begin: float = 0.0, end: float | None = None) -> int:
    """Events due in [begin, end)."""
    due = schedule(rate, seconds, LOOP, profile=profile).due(np.arange(int(rate * seconds * 2)))
    assert (np.diff(due) >= 0).all()
    until = seconds if end is None else end
    return int(((due >= begin * NS) & (due < until * NS)).sum())


@pytest.mark.parametrize("profile", ["constant", "steps", "sine", "burst"])
@pytest.mark.parametrize(("rate", "seconds"), [(1000, 20), (123.4, 7), (100_000, 4)])
def test_profiles_integrate_to_the_wanted_count(profile: str, rate: float, seconds: float) -> None:
    assert within(rate, seconds, profile) == pytest.approx(rate * seconds, abs=1 + rate * seconds * 1e-4)


def test_steps_rise_from_a_half_to_one_and_a_half() -> None:
    counts = [within(1000, 20, "steps", 4 * i, 4 * i + 4) for i in range(5)]
    assert counts == pytest.approx([2000, 3000, 4000, 5000, 6000], abs=3)


def test_a_burst_is_four_times_the_mean_for_a_tenth_of_its_period() -> None:
    assert within(1000, 20, "burst", 4.5, 5.5) == pytest.approx(4000, abs=10)
    assert within(1000, 20, "burst", 0, 3) == pytest.approx(2000, abs=10)


def test_a_sine_starts_up_and_goes_down() -> None:
    mean = 10 * 1000 / 2
    assert within(1000, 10, "sine", 0, 5) == pytest.approx(mean * (1 + 1 / math.pi), abs=10)
    assert within(1000, 10, "sine", 5, 10) == pytest.approx(mean * (1 - 1 / math.pi), abs=10)


def test_a_time_map_respects_every_ingestion_time_and_keeps_the_mean_rate_over_loops() -> None:
    # 5 events in a span of 87 ticks at 5 events/s: one loop a second
    due = schedule(5, 3, LOOP, mode="time_map").due(np.arange(12))
    expected = [(loop + g / 87) * NS for loop in (0, 1) for g in (0, 10, 10, 10, 70)] + [2 * NS, (2 + 10 / 87) * NS]
    assert due.tolist() == pytest.approx(expected, abs=2)


def test_the_source_profile_spreads_events_of_one_ingestion_time_until_the_next() -> None:
    due = schedule(5, 3, LOOP, profile="source").due(np.arange(6))
    assert due.tolist() == pytest.approx([g / 87 * NS for g in (0, 10, 30, 50, 70, 87)], abs=2)


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf, None, "many", True])
def test_a_rate_that_is_none_is_refused_in_one_line(rate: float) -> None:
    with pytest.raises(UserError, match=r"rate: found .* allowed: a number of events per second above 0"):
        schedule(rate, 10, LOOP)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_time_that_is_none_is_refused_in_one_line(seconds: float) -> None:
    with pytest.raises(UserError, match="seconds: found"):
        schedule(10, seconds, LOOP)


@pytest.mark.parametrize("setting", [{"mode": "backwards"}, {"profile": "zigzag"}])
def test_an_unknown_mode_or_profile_is_refused(setting: dict[str, str]) -> None:
    with pytest.raises(UserError, match="allowed: constant"):
        schedule(10, 10, LOOP, **setting)
