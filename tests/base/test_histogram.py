from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.histogram import Histogram

NANOSECONDS = st.one_of(
    st.integers(0, 300), st.integers(0, 10**12), st.integers(0, 2**63 - 1), st.sampled_from([2**63 - 1, 2**53 + 1])
)
BATCHES = st.lists(st.lists(NANOSECONDS | st.integers(-(2**63), -1), max_size=40), max_size=5)


def of(*values: int) -> Histogram:
    histogram = Histogram()
    histogram.add(np.array(values, np.int64))
    return histogram


def nearest_rank(values: list[int], q: float) -> int:
    """The definition, on the values themselves; q in thousandths, so that no float decides."""
    return sorted(values)[max(1, -(-round(q * 1000) * len(values) // 1000)) - 1]


@given(st.lists(NANOSECONDS, min_size=1, max_size=200), st.integers(0, 1000))
def test_a_quantile_is_within_one_percent_of_the_nearest_rank(values: list[int], thousandths: int) -> None:
    q = thousandths / 1000
    exact = nearest_rank(values, q)
    quantile = of(*values).quantile(q)
    assert quantile is not None
    assert abs(quantile - exact) <= exact // 100
    if exact < 256:
        assert quantile == exact


@pytest.mark.parametrize("exponent", range(63))
def test_every_power_of_two_keeps_the_error_below_half_a_percent(exponent: int) -> None:
    low, high = 2**exponent, 2 ** (exponent + 1) - 1
    for value in {low, low + 1, (low + high) // 2, (3 * low + high) // 4, high - 1, high} - {0}:
        histogram = of(0, value, 2**63 - 1)  # so that neither min nor max gives the answer away
        quantile = histogram.quantile(0.5)
        assert quantile is not None
        assert abs(quantile - value) * 250 <= value


@given(BATCHES)
def test_merging_parts_equals_adding_everything_and_counts_are_exact(batches: list[list[int]]) -> None:
    whole, merged = Histogram(), Histogram()
    for batch in batches:
        part = of(*batch)
        merged.merge(Histogram.from_dict(json.loads(json.dumps(part.to_dict()))))
        whole.add(np.array(batch, np.int64))
    assert merged == whole
    kept = [value for batch in batches for value in batch if value >= 0]
    assert (whole.count, whole.sum) == (len(kept), sum(kept))
    assert (whole.min, whole.max) == ((min(kept), max(kept)) if kept else (None, None))
    assert whole.negative == sum(map(len, batches)) - len(kept)


def test_negative_values_are_counted_apart_and_move_no_quantile() -> None:
    assert of(-5, -1, 7, 8, 9).to_dict() == {
        "count": 3,
        "negative": 2,
        "sum": 24,
        "min": 7,
        "max": 9,
        "buckets": [353, 385, 401],
        "counts": [1, 1, 1],
    }
    assert of(-5, -1, 7, 8, 9).quantile(0.5) == 8


def test_an_empty_histogram_has_no_quantile() -> None:
    assert Histogram().quantile(0.99) is None
    assert Histogram().mean is None
    assert of(-1).quantile(0.5) is None


def test_rank_is_not_moved_by_the_last_bit_of_a_float() -> None:
    assert of(*range(1, 101)).quantile(0.07) == 7  # 0.07 * 100 > 7 in floats
    assert of(10, 20).quantile(0.0) == 10
    assert of(10, 20).quantile(1.0) == 20


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_quantile_outside_of_0_to_1_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="allowed: 0 to 1"):
        of(1).quantile(q)


def test_floats_are_refused_because_they_lose_19_digit_times() -> None:
    with pytest.raises(TypeError, match="float64"):
        Histogram().add(np.array([1.0]))


@pytest.mark.parametrize(
    "change",
    [
        {"count": 4},
        {"buckets": [1]},
        {"buckets": [-1, 2, 3]},
        {"buckets": [10**6, 2, 3]},
        {"counts": [0, 2, 1]},
        {"min": None},
        {"sum": "much"},
        {"negative": -1},
    ],
)
def test_a_contradicting_report_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a histogram"):
        Histogram.from_dict(of(1, 2, 3).to_dict() | change)


def test_a_million_values_cost_less_than_a_tenth_of_a_microsecond_each() -> None:
    values = np.random.default_rng(1).lognormal(18, 1, 1_000_000).astype(np.int64)
    histogram = Histogram()

    def cost() -> float:
        begin = time.thread_time()
        histogram.add(values)
        return time.thread_time() - begin

    assert min(cost() for _ in range(5)) / values.size < 0.1e-6
    assert histogram.count == 5 * values.size
