"""Tests the cost of a batch, and the rate that follows, against exact data, brute force and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.estimate import fit, geometric_mean, interval
from streamgauge.records.measurement import Batch, Limits, Purpose, Window
from streamgauge.stats.batch_cost import BatchCost

A, B, AGE = 0.5, 1e-6, 10.0


def window(held: int, *, cap: int = 10**9, at_s: float = 100.0, count: int = 8, purpose: Purpose = "ladder",
           seconds: list[float] | None = None) -> Window:  # fmt: skip
    """A window of batches without noise, unless their seconds are given."""
    rows = min(held, cap)
    each = seconds or [A + B * rows] * count
    return Window(1, purpose, held, tuple(Batch(at_s, rows, s) for s in each))


def estimated(windows: list[Window], *, most_rows: float = math.inf, continuous: bool = False) -> Estimate:
    found = fit(windows, AGE, Limits(most_rows=most_rows, continuous=continuous))
    assert found is not None
    return found


def test_the_age_binds_where_batches_may_grow() -> None:
    found = estimated([window(20_000), window(2_000_000), window(5_000_000)])
    assert (found.batch_cost_s, found.row_cost_s) == pytest.approx((A, B))
    assert found.constraint == "age"
    assert found.rate_events_per_s == pytest.approx((1 - A / AGE) / B)
    assert found.backlog_rows == pytest.approx(found.rate_events_per_s * AGE)
    assert found.low < found.rate_events_per_s < found.high


def test_the_cap_binds_where_it_is_met() -> None:
    found = estimated([window(20_000), window(400_000, cap=200_000), window(66_000)])
    assert (found.cap_rows, found.constraint) == (200_000, "batch cap")
    assert found.rate_events_per_s == pytest.approx(200_000 / (A + B * 200_000))


@given(st.floats(1e-7, 1e-2), st.integers(1, 10**6))
def test_batches_of_one_size_show_the_cap_alone(row_cost: float, cap: int) -> None:
    assume(not math.isclose(row_cost * cap, AGE))  # both limits are one there
    same = window(10 * cap, cap=cap, seconds=[row_cost * cap] * 7)  # no line through one point: a is 0
    found = estimated([same])
    assert (found.constraint, found.cap_rows) == ("batch cap" if row_cost * cap < AGE else "age", cap)
    assert found.rate_events_per_s == pytest.approx(1 / row_cost)


def bent(held: int, growth: float, *, cap: int = 10**9, noise: float = 0.0) -> Window:
    """A window whose rows cost more the more of them a batch has."""
    rows = min(held, cap)
    cost = A + B * rows + growth * rows**2
    return window(held, cap=cap, seconds=[cost * (1 + noise), cost * (1 - noise)] * 3)


@given(st.floats(5e-14, 1e-12))
def test_rows_that_cost_more_in_large_batches_lower_the_rate(growth: float) -> None:
    found = estimated([bent(rows, growth) for rows in (20_000, 200_000, 1_000_000, 3_000_000, 6_000_000, 9_000_000)])
    assert (found.batch_cost_s, found.row_cost_s, found.row_growth_s) == pytest.approx((A, B, growth), rel=1e-6)
    rows = next(n for n in np.linspace(1e5, 1e7, 100_001) if A + B * n + growth * n * n >= AGE)  # by brute force
    assert found.constraint == "age"
    assert found.rate_events_per_s == pytest.approx(rows / AGE, rel=1e-3)
    assert found.low < found.rate_events_per_s < found.high
    age = found.age_at(0.5 * found.rate_events_per_s)
    assert age == pytest.approx(found.cost.seconds(0.5 * found.rate_events_per_s * (age or 0.0)))


def test_a_ladder_of_four_windows_shows_a_bend_too() -> None:
    found = estimated([bent(rows, 1e-13) for rows in (20_000, 2_000_000, 4_500_000, 8_000_000)])
    assert found.row_growth_s == pytest.approx(1e-13, rel=1e-6)


@pytest.mark.parametrize("growth", [0.0, 2e-14, 5e-14, 1e-13, 2e-13])
def test_intervals_hold_the_truth_whether_or_not_a_bend_shows(growth: float) -> None:
    random, held = np.random.default_rng(1), 0
    truth = BatchCost(A, B, growth).rows(AGE) / AGE
    for _ in range(200):
        factors = random.normal(1, 0.1, (11, 6))
        rows = (*(20_000, 200_000) * 4, 1_000_000, 2_500_000, 5_200_000)
        costs = [A + B * n + growth * n * n for n in rows]
        found = estimated([window(n, seconds=list(t * f)) for n, t, f in zip(rows, costs, factors, strict=True)])
        held += found.low <= truth <= found.high
    assert held / 200 > 0.8  # 83 to 96 %


def test_batches_that_last_longer_than_the_allowed_age_have_no_rate() -> None:
    slow = [window(rows, seconds=[1.2 * AGE] * 8) for rows in (20_000, 40_000)]
    assert fit(slow, AGE, Limits(most_rows=1e8)) is None


def test_a_bend_within_the_noise_has_the_weight_of_a_parameter_that_explains_nothing() -> None:
    rows = (20_000, 200_000, 1_000_000, 3_000_000, 9_000_000)
    found = estimated([bent(n, 2e-15, noise=0.1) for n in rows])
    assert found.row_growth_s == pytest.approx(2e-15 / (1 + math.e), rel=0.02)


def test_a_cap_and_queues_bind_before_rows_cost_more() -> None:
    rows, growth = (20_000, 200_000, 1_000_000, 2_000_000, 3_000_000), 1e-12
    most = A + B * 3_000_000 + growth * 3_000_000**2
    capped = estimated([*(bent(n, growth) for n in rows), bent(9_000_000, growth, cap=3_000_000)], most_rows=8e6)
    assert capped.constraint == "age"
    assert capped.rate_events_per_s == pytest.approx(capped.cost.rows(AGE) / AGE)
    held = estimated([bent(n, growth) for n in rows], most_rows=1_000_000)
    assert held.constraint == "queue memory"
    assert held.rate_events_per_s == pytest.approx(1e6 / (A + 1 + 1))
    assert most > AGE


def test_the_shape_of_a_cost_that_is_known_is_kept() -> None:
    """Two windows on fewer CPUs tell by how many times rows cost more, and not how the cost bends."""
    like = estimated([bent(n, 1e-13) for n in (20_000, 200_000, 1_000_000, 3_000_000, 6_000_000, 9_000_000)]).cost
    slow = [window(n, seconds=[A + 2 * (B * n + 1e-13 * n * n)] * 6) for n in (200_000, 2_000_000)]
    found = fit(slow, AGE, Limits(), like=like)
    assert found is not None
    assert (found.batch_cost_s, found.row_cost_s, found.row_growth_s) == pytest.approx((A, 2 * B, 2e-13), rel=1e-6)


def test_the_queues_bind_where_they_hold_fewer_rows() -> None:
    found = estimated([window(20_000), window(1_000_000)], most_rows=500_000)
    assert found.constraint == "queue memory"
    assert found.rate_events_per_s == pytest.approx(500_000 / (A + B * 500_000))


def test_batches_of_all_sizes_are_no_cap() -> None:
    mixed = Window(1, "ladder", 400_000, tuple(Batch(9, n, A + B * n) for n in (50_000, 200_000, 120_000, 90_000)))
    assert estimated([window(20_000), mixed]).cap_rows is None


def test_an_engine_without_batches_carries_what_it_carries() -> None:
    looks = [0.1] * 40
    found = estimated([window(20_000, seconds=looks), window(20_000, seconds=looks)], continuous=True)
    assert found.constraint == "system"
    assert found.rate_events_per_s == pytest.approx(200_000)
    assert found.batch_cost_s is None


def test_hiccups_count_by_their_share_of_the_time_of_all_windows() -> None:
    """10 of 100 batches take three times as long: the whole costs 1.2 times as much, in whichever window they are."""
    slow = A + B * 200_000
    windows = [window(20_000, count=20), window(400_000, cap=200_000, seconds=[slow] * 70 + [3 * slow] * 10)]
    found = estimated(windows)
    spent = 20 * (A + B * 20_000) + 80 * slow
    assert found.hiccups == pytest.approx(20 * slow / spent)
    assert found.rate_events_per_s == pytest.approx(200_000 / slow / (1 + 20 * slow / spent))


def test_a_compile_curve_is_taken_out_and_told() -> None:
    def at(t: float, rows: int, purpose: Purpose) -> Window:
        cost = (A + B * rows) * (1 + 0.5 * math.exp(-t / 40))
        return window(rows, at_s=t, purpose=purpose, seconds=[cost] * 10)

    windows = [at(t, 20_000, "warm-up") for t in range(5, 60, 5)]
    windows += [at(65, 400_000, "ladder"), at(75, 3_000_000, "ladder"), at(85, 5_000_000, "ladder")]
    found = estimated(windows)
    assert found.rate_events_per_s == pytest.approx((1 - A / AGE) / B, rel=0.01)
    assert found.drift == pytest.approx(0.5 * math.exp(-85 / 40), rel=0.2)
    assert found.rate_now == pytest.approx(found.rate_events_per_s / (1 + found.drift))


def test_windows_that_do_not_count_are_left_out() -> None:
    sound = [window(20_000), window(2_000_000)]
    broken = Window(1, "ladder", 20_000, (Batch(1, 20_000, 99.0),), invalid="the machine's speed changed")
    cold = window(20_000, purpose="compile", seconds=[9.0] * 9)
    assert estimated([*sound, broken, cold]) == estimated(sound)
    assert fit([broken, cold], AGE, Limits()) is None


def test_the_age_that_the_model_predicts() -> None:
    found = estimated([window(20_000), window(2_000_000), window(5_000_000)])
    assert found.age_at(500_000) == pytest.approx(A / (1 - 0.5))
    assert found.age_at(960_000) is None, "above the limit it does not settle"


def test_the_line_is_the_least_squares_of_relative_errors() -> None:
    random = np.random.default_rng(3)
    rows = np.array([20_000, 21_000, 1_900_000, 2_000_000])  # two sizes, which show no bend
    noisy = (A + B * rows) * random.normal(1, 0.03, 4)
    windows = [window(int(n), seconds=[float(t)] * 9) for n, t in zip(rows, noisy, strict=True)]
    weights = noisy.copy()
    for _ in range(50):
        (a, b), *_ = np.linalg.lstsq(np.c_[1 / weights, rows / weights], noisy / weights, rcond=None)
        weights = a + b * rows
    found = estimated(windows)
    assert (found.batch_cost_s, found.row_cost_s) == pytest.approx((a, b), rel=1e-3)


def test_the_interval_over_processes_is_the_t_interval_of_logarithms() -> None:
    rates = [90_000.0, 100_000.0, 97_000.0]
    logs = np.log(rates)
    low, high = stats.t.interval(0.9, 2, loc=logs.mean(), scale=stats.sem(logs))
    assert interval(rates) == pytest.approx((math.exp(low), math.exp(high)))
    assert interval([5.0]) is None
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


@settings(max_examples=60, deadline=None)
@given(cost=st.floats(0, 3), row=st.floats(1e-7, 1e-4), cap=st.integers(1_000, 10_000_000), age=st.floats(0.5, 30))
def test_the_truth_is_the_highest_rate_at_which_a_backlog_shrinks(
    cost: float, row: float, cap: int, age: float
) -> None:
    """Brute force: bisects the rate; a rate catches up when the first batch from the allowed age on gains time."""
    behaviour = Behaviour(capacity=1 / row, batch_cost_s=cost, batch_rows=cap)

    def catches_up(rate: float) -> bool:
        rows = min(rate * age, cap)
        return cost + row * rows < rows / rate

    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if catches_up(middle) else (low, middle)
    assert behaviour.truth(age) == pytest.approx(low, rel=1e-6, abs=1e-3)


def test_the_truth_of_a_system_with_hiccups_and_of_one_without_batches() -> None:
    assert Behaviour(capacity=1e6, hiccups=0.1, continuous=True).truth(10) == pytest.approx(1e6 / 1.2)
    assert Behaviour(capacity=1e6, batch_cost_s=1, hiccups=0.1).truth(10) == pytest.approx(
        min((1 - 0.12) / 1.2e-6, 1_000_000 / (1.2 + 1.2))
    )
    assert Behaviour().truth(10) == math.inf
