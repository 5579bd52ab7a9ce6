"""The ratio over blocks: against brute force, with an outlier, and its coverage on known truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamgauge.stats.paired import LEAST_BLOCKS, Ratio, outside, ratio_of

BLOCKS = [0.01, -0.02, 0.03, 0.0, 0.015, -0.01]


def test_the_estimate_is_the_median_of_all_means_of_two() -> None:
    pairs = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(BLOCKS, 2))
    ratio = ratio_of([BLOCKS])
    assert ratio is not None
    assert ratio.ratio == pytest.approx(math.exp(pairs[10]))  # the middle one of 21
    assert (ratio.blocks, ratio.processes) == (6, 1)
    assert ratio.low < ratio.ratio < ratio.high


@pytest.mark.parametrize("count", [5, 6, 8, 11])
def test_the_ranks_left_out_give_the_nearest_coverage_to_ninety_percent(count: int) -> None:
    """Counts all signs of the ranks, as the test of Wilcoxon does."""
    sums = np.array(
        [sum(r for r, kept in enumerate(signs, 1) if kept) for signs in itertools.product([0, 1], repeat=count)]
    )
    coverages = [1 - 2 * float((sums <= left).mean()) for left in range(count * (count + 1) // 4)]
    assert coverages[outside(count)] == min(coverages, key=lambda coverage: abs(coverage - 0.9))


def test_one_slow_window_hardly_moves_it() -> None:
    calm, disturbed = ratio_of([BLOCKS]), ratio_of([[*BLOCKS[:-1], -0.4]])
    assert calm is not None
    assert disturbed is not None
    assert abs(disturbed.ratio - calm.ratio) < 0.01
    assert abs(math.exp(float(np.mean([*BLOCKS[:-1], -0.4]))) - calm.ratio) > 0.05


def test_too_few_blocks_give_none() -> None:
    assert ratio_of([BLOCKS[: LEAST_BLOCKS - 1]]) is None
    assert ratio_of([]) is None


@given(st.lists(st.floats(-0.5, 0.5), min_size=5, max_size=12), st.floats(-1, 1))
def test_the_other_way_round_it_is_the_reciprocal_and_a_factor_shifts_it(blocks: list[float], shift: float) -> None:
    here, back = ratio_of([blocks]), ratio_of([[-block for block in blocks]])
    moved = ratio_of([[block + shift for block in blocks]])
    assert here is not None
    assert back is not None
    assert moved is not None
    assert back.ratio == pytest.approx(1 / here.ratio)
    assert (back.low, back.high) == pytest.approx((1 / here.high, 1 / here.low))
    assert moved.ratio == pytest.approx(here.ratio * math.exp(shift))


@pytest.mark.parametrize("favour", [0.0, 0.01, 0.02])
def test_three_processes_cover_what_one_process_cannot_show(favour: float) -> None:
    """The 90 % interval of three processes holds the truth in 85 to 95 % of 600 tries, however much each favours."""
    random = np.random.default_rng(7)
    held = 0
    for _ in range(600):
        processes = [random.normal(random.normal(0.0, favour), 0.03, 8) for _ in range(3)]
        ratio = ratio_of([list(blocks) for blocks in processes])
        assert ratio is not None
        held += ratio.low <= 1 <= ratio.high
    assert 0.86 <= held / 600 <= 0.94


@pytest.mark.parametrize("count", [3, 4, 8])
def test_a_truth_so_far_from_a_bound_is_told_apart_as_often_as_said(count: int) -> None:
    """Checks with one block a process that nine of ten intervals leave out a bound at that distance."""
    draws = np.random.default_rng(3).normal(0.0, 0.07, (2000, count))
    quantile = stats.t.ppf(0.95, count - 1)
    error = 0.07 / math.sqrt(count)
    exact = Ratio(1.0, math.exp(-quantile * error), math.exp(quantile * error), count, count)
    bound = -exact.beyond(0.9)
    left_out = [ratio.low > math.exp(bound) for own in draws if (ratio := ratio_of([[one] for one in own]))]
    assert 0.88 <= sum(left_out) / len(draws) <= 0.92
    assert Ratio(1.0, 0.9, 1.1, 6, 2).beyond(0.9) == math.inf
