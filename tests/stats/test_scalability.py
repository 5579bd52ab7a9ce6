"""The scalability law: exact points, coverage on known laws, demand against trying all, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from benchmarks.scalability import ALONE, IN_TURNS, LAWS, PLANS, Plan, least, row
from streamgauge.stats.scalability import Law, Refused, carried, cost_per_billion, fit

SIZES = (1, 2, 4, 8, 16)


def drawn(seed: int, contention: float, coherency: float, deviation: float = 0.03) -> list[tuple[float, float]]:
    draw = np.random.default_rng(seed)
    return [
        (n, carried(n, 50_000, contention, coherency) * math.exp(draw.normal(0, deviation)))
        for n in SIZES
        for _ in range(3)
    ]


@given(st.floats(0, 0.5), st.floats(0, 0.05))
def test_points_of_a_law_give_its_coefficients(contention: float, coherency: float) -> None:
    law = fit([(n, carried(n, 1000, contention, coherency)) for n in SIZES])
    assert isinstance(law, Law)
    assert law.one_core == pytest.approx(1000, rel=1e-6)
    assert law.contention.value == pytest.approx(contention, abs=1e-7)
    assert law.coherency.value == pytest.approx(coherency, abs=1e-7)


def test_the_fit_is_that_of_scipy_on_logarithms() -> None:
    points = drawn(1, 0.1, 0.01)
    cores, rates = map(np.array, zip(*points, strict=True))
    wanted, _ = curve_fit(lambda n, a, s, k: np.log(carried(n, a, s, k)), cores, np.log(rates), p0=(4e4, 0.1, 0.01))
    law = fit(points)
    assert isinstance(law, Law)
    assert (law.one_core, law.contention.value, law.coherency.value) == pytest.approx(tuple(wanted), rel=0.02)


def test_intervals_hold_the_truth_nine_times_in_ten() -> None:
    """`python -m benchmarks.scalability` has 100 of each of 24 kinds."""
    counted = [row(law, PLANS[1], 40) for law in (LAWS[3], LAWS[4])]
    for *_, contention, coherency, half, more, _ in counted:
        assert all(float(one.rstrip(" %")) >= 75 for one in (contention, coherency, half, more))


@pytest.mark.parametrize("plan", [IN_TURNS[0], ALONE], ids=["search of three", "search of one"])
def test_a_demand_holds_the_truth_of_a_fresh_process_though_one_alone_was_measured(plan: Plan) -> None:
    """Half of the largest rate needs exactly four cores: a slower process than the median one needs five."""
    *_, half, more, _ = row(LAWS[0], plan, 40)
    assert all(float(one.rstrip(" %")) >= 80 for one in (half, more))


def test_the_demand_is_the_least_number_of_cores_and_none_beyond_the_peak() -> None:
    law = fit([(n, carried(n, 1000, 0.05, 0.01)) for n in SIZES])
    assert isinstance(law, Law)
    for rate in (500, 1000, 2500, 4000):
        found = law.demand(rate)
        assert found.cores == least(rate * 50, 0.05, 0.01)  # whose core carries 50,000
        assert not found.is_beyond
    assert law.peak == pytest.approx(math.sqrt(0.95 / 0.01))
    beyond = law.demand(1.01 * carried(10, 1000, 0.05, 0.01))
    assert (beyond.cores, beyond.high) == (None, None)
    assert beyond.is_beyond


def test_far_beyond_what_was_measured_a_demand_is_no_less_than_without_contention() -> None:
    each = 10_000
    demands: list[float] = []
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(0, 0.05, 12)
        law = fit([(n, n * each * math.exp(one)) for n, one in zip([1, 2, 4, 8] * 3, noise, strict=True)])
        if isinstance(law, Law) and (demand := law.demand(240 * each)).cores is not None:
            demands.append(demand.cores)
    assert len(demands) >= 20
    assert np.quantile(demands, 0.05) >= 0.9 * 240


def test_the_coefficients_are_those_by_which_it_tells_rates() -> None:
    """A free coefficient of some of these fits is below 0 by chance."""
    bounded = 0
    for seed in range(20):
        law = fit(drawn(seed, 0.0, 0.0, 0.05))
        if isinstance(law, Law):
            bounded += min(law.free) < 0
            values = law.one_core, law.contention.value, law.coherency.value
            for cores in (1, 5, 40):
                assert law.rate(cores).value == pytest.approx(carried(cores, *values))
            for one in (law.contention, law.coherency):
                assert 0 <= one.low <= one.value <= one.high
    assert bounded >= 5


def test_fresh_processes_widen_the_demand_alone() -> None:
    law = fit([(n, carried(n, 1000, 0.05, 0.001)) for n in SIZES])
    assert isinstance(law, Law)
    own, fresh = law.demand(8000), law.demand(8000, 0.1)
    assert own.low == own.cores == own.high == fresh.cores
    assert own.cores is not None
    least, most = (law.demand(8000 * part).cores for part in (0.9, 1.1))
    assert (fresh.low, fresh.high) == (least, most) != (own.low, own.high)


def test_noise_widens_the_demand() -> None:
    law = fit(drawn(2, 0.05, 0.001))
    assert isinstance(law, Law)
    found = law.demand(300_000)
    assert found.low is not None
    assert found.cores is not None
    assert found.high is not None
    assert found.low <= found.cores <= found.high


def test_money_for_a_billion_events() -> None:
    assert cost_per_billion(4, 100_000, 0.045) == pytest.approx(4 * 0.045 * 10_000 / 3600)


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ([(1, 10.0), (2, 19.0), (4, 35.0)], "3 sizes were measured, at least 4 are needed"),
        (
            [(0.25, 10.0), (0.5, 20.0), (0.75, 30.0), (1, 40.0)],
            "0.25 of a core: a quota below one core measures throttling, not scaling",
        ),
        ([(4, 10.0), (5, 12.0), (6, 14.0), (7, 15.0)], "sizes from 4 to 7: the largest must be 4 times the smallest"),
        ([(1, 10.0), (2, 0.0), (4, 35.0), (8, 50.0)], "a size or a rate is not a number above 0"),
    ],
)
def test_points_that_cannot_carry_the_law_are_refused(points: list[tuple[float, float]], why: str) -> None:
    assert fit(points) == Refused(why)


def test_points_that_contradict_the_law_or_are_mere_noise_are_refused() -> None:
    steps = [(n, rate * (1 + one)) for n, rate in ((1, 10), (2, 10), (4, 40), (8, 40)) for one in (-0.01, 0, 0.01)]
    wrong = fit(steps)
    assert isinstance(wrong, Refused)
    assert "do not follow the law" in wrong.reason
    faster = fit([(n, 10.0 * n**1.5) for n in SIZES])
    assert isinstance(faster, Refused)
    draw = np.random.default_rng(6)
    noisy = fit([(n, 100 * n * math.exp(draw.normal(0, 1.5))) for n in SIZES])
    assert isinstance(noisy, Refused)
