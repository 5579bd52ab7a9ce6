"""The ratio, its interval and the verdict, against brute force and against known truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.stats.ab import compare, critical_rank, logs, shift, unit_effects

Noise = Callable[[np.random.Generator, int], np.ndarray]
#: factors around 1, from the tame to the ugly; the last has three values only, so nearly all are ties
NOISES: dict[str, Noise] = {
    "normal": lambda r, n: np.exp(r.normal(0, 0.03, n)),
    "skewed": lambda r, n: 1 + 0.05 * r.lognormal(0, 1, n),
    "heavy tail": lambda r, n: 1 + 0.02 * r.pareto(1.2, n),
    "spikes": lambda r, n: np.exp(r.normal(0, 0.01, n)) * np.where(r.random(n) < 0.1, 1.5, 1.0),
    "ties": lambda r, n: 1.02 ** r.integers(0, 3, n),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sizes", [(4, 4), (5, 5), (4, 12), (10, 10)], ids=str)
def test_the_interval_covers_the_true_ratio(noise: str, sizes: tuple[int, int]) -> None:
    random, draw = np.random.default_rng(11), NOISES[noise]
    covered, trials = 0, 1500
    for _ in range(trials):
        _, interval = shift(np.log(100 * draw(random, sizes[0])), np.log(110 * draw(random, sizes[1])))
        assert interval is not None
        covered += interval[0] - 1e-9 <= 1.1 <= interval[1] + 1e-9
    assert covered / trials >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / trials)


def test_a_drift_of_the_machine_widens_an_interleaved_comparison() -> None:
    random, covered, trials = np.random.default_rng(12), 0, 1500
    for _ in range(trials):
        turns = 100 * np.exp(random.normal(0, 0.01, 16) + np.linspace(0, 0.1, 16))
        _, interval = shift(np.log(turns[0::2]), np.log(turns[1::2]))
        assert interval is not None
        covered += interval[0] <= 1 <= interval[1]
    assert covered / trials >= 0.95


def test_equals_are_called_better_or_worse_no_more_often_than_promised() -> None:
    random, trials = np.random.default_rng(13), 1500
    called = [
        compare(np.exp(random.normal(0, 0.03, 6)).tolist(), np.exp(random.normal(0, 0.03, 6)).tolist()).verdict
        for _ in range(trials)
    ]
    assert sum(verdict in ("better", "worse") for verdict in called) / trials <= 0.05


def test_the_detectable_effect_is_seen_in_four_of_five_comparisons() -> None:
    random, trials = np.random.default_rng(14), 1500
    _, unit = unit_effects(6, 6)
    assert unit is not None
    seen = 0
    for _ in range(trials):
        _, interval = shift(random.normal(0, 0.03, 6), random.normal(0.03 * unit, 0.03, 6))
        assert interval is not None
        seen += interval[0] > 1
    assert seen / trials == pytest.approx(0.8, abs=0.04)


def misses(m: int, n: int, rank: int) -> float:
    """Chance that the interval from that rank on misses, by every order of m + n values."""
    orders = list(itertools.combinations(range(m + n), m))
    below = sum(sum(b < a for a in first for b in set(range(m + n)) - set(first)) <= rank for first in orders)
    return 2 * below / len(orders)


@pytest.mark.parametrize(("m", "n"), [(4, 4), (3, 5), (4, 6), (6, 5), (2, 9)])
def test_the_rank_is_the_largest_that_every_order_of_the_values_allows(m: int, n: int) -> None:
    rank = critical_rank(m, n)
    assert rank is not None
    assert misses(m, n, rank) <= 0.05 < misses(m, n, rank + 1)


def test_no_rank_is_sure_enough_for_three_and_three() -> None:
    assert misses(3, 3, 0) > 0.05
    assert critical_rank(3, 3) is None


def test_large_samples_agree_with_exact_ranks() -> None:
    exact, approximate = critical_rank(50, 50), critical_rank(50, 51)
    assert exact == 965  # 1250 − 1.96·√(50·50·101/12)
    assert approximate is not None
    assert abs(approximate / (50 * 51) - exact / (50 * 50)) < 0.002


positive = st.floats(0.01, 1e6)


@given(st.lists(positive, min_size=4, max_size=8), st.lists(positive, min_size=4, max_size=8))
@settings(max_examples=50, deadline=None)
def test_the_ratio_is_the_median_of_all_ratios_and_turns_with_the_sides(a: list[float], b: list[float]) -> None:
    ratio, interval = shift(logs(a, "a"), logs(b, "b"))
    back, turned = shift(logs(b, "b"), logs(a, "a"))
    assert interval is not None
    assert turned is not None
    assert math.log(ratio) == pytest.approx(float(np.median(np.subtract.outer(np.log(b), np.log(a)))), abs=1e-9)
    assert interval[0] <= ratio * (1 + 1e-12)
    assert ratio <= interval[1] * (1 + 1e-12)
    assert [1 / back, 1 / turned[1], 1 / turned[0]] == pytest.approx([ratio, *interval])


def test_many_values_give_what_all_pairs_give() -> None:
    random = np.random.default_rng(15)
    a, b = random.normal(0, 1, 2100), random.normal(0.1, 1, 2000)
    ratio, interval = shift(a, b)
    rank = critical_rank(a.size, b.size)
    pairs = np.sort(np.subtract.outer(b, a).ravel())
    assert rank is not None
    assert interval == pytest.approx((math.exp(pairs[rank]), math.exp(pairs[-1 - rank])))
    assert ratio == pytest.approx(math.exp(float(np.median(pairs))))


BASE = [100.0, 101.0, 99.0, 100.5, 99.5]


@pytest.mark.parametrize(
    ("factor", "higher_is_better", "verdict"),
    [
        (1.10, False, "worse"), (1.10, True, "better"), (0.9, False, "better"), (0.9, True, "worse"),
        (1.0, False, "same"), (1.017, False, "inconclusive"),
    ],
)  # fmt: skip
def test_verdicts(factor: float, higher_is_better: bool, verdict: str) -> None:
    found = compare(BASE, [factor * value for value in BASE], higher_is_better=higher_is_better)
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(factor)


def test_a_sure_change_below_what_matters_is_the_same() -> None:
    exact = [100.0, 100.01, 99.99, 100.02]
    assert compare(exact, [1.01 * v for v in exact]).verdict == "same"
    assert compare(exact, [1.01 * v for v in exact], smallest_effect=0.005).verdict == "worse"


def test_too_few_values_are_inconclusive_with_the_least_number() -> None:
    found = compare([100.0, 101.0, 99.0], [150.0, 151.0, 149.0])
    assert (found.verdict, found.interval) == ("inconclusive", None)
    assert found.reason == "3 and 3 values are too few for 95%; 4 of each are enough"
    assert (found.noise_floor, found.detectable_effect) == (None, None)
    assert compare([100.0], [150.0]).noise is None


def test_a_difference_between_equals_raises_what_matters() -> None:
    same = compare(BASE, [1.05 * value for value in BASE], self_comparison=(BASE, [1.06 * value for value in BASE]))
    assert same.noise_floor == pytest.approx(0.06)
    assert same.smallest_effect == same.noise_floor
    assert same.verdict == "inconclusive"


def test_values_far_apart_give_finite_figures() -> None:
    found = compare([1e-100, 1e100] * 4, [1e100, 1e-100] * 4)
    figures = [found.ratio, *(found.interval or ()), found.noise, found.noise_floor, found.detectable_effect]
    assert all(figure is not None and math.isfinite(figure) for figure in figures)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "baseline: found no values"), ([1.0, 0.0], "baseline: value 2: found 0, allowed: positive"),
        ([-1.0], "value 1: found -1"), ([1.0, math.nan], "value 2: found nan"), ([math.inf], "value 1: found inf"),
        ([1e308], "value 1: found 1e[+]308, allowed: positive numbers from 1e-100 to 1e[+]100"),
        ([1e-320], "value 1: found 9.99989e-321"),
    ],
)  # fmt: skip
def test_values_without_a_ratio_are_refused(values: list[float], said: str) -> None:
    with pytest.raises(UserError, match=said):
        compare(values, BASE)
