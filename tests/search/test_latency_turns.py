"""Latencies in turns: the common rate, the order, the ratio of given latencies, and that of known systems."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.in_turns import paced_turns
from streamgauge.base.histogram import Histogram
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.latency_turns import QUANTILES, common_rate, order, ratio
from streamgauge.bench.search.shared import block_order
from streamgauge.config import Search


def latency(ms: float, count: int = 1000) -> Histogram:
    """Latencies of which the median is `ms`, and p99 twice as long."""
    histogram = Histogram()
    histogram.add(np.repeat([round(ms * 1e6), round(2 * ms * 1e6)], [count - count // 20, count // 20]))
    return histogram


def test_the_rate_is_one_asked_for_or_half_of_the_lowest_one_found() -> None:
    assert common_rate([900, 800], [0.8, 0.9], []) == 400
    assert common_rate([900, 800], [0.25, 0.9], []) == 200
    assert common_rate([900, 800], [], []) == 400
    assert common_rate([900, 800], [0.5], [300, 100]) == 100


def test_the_blocks_are_those_of_the_shared_search() -> None:
    assert order(1, 3, 2) == [*block_order(1, 0, 2), *block_order(1, 1, 2), *block_order(1, 2, 2)]
    assert all(order(1, 6, 3).count(cell) == 12 for cell in range(3))


@pytest.mark.parametrize("quantile", QUANTILES.values())
def test_a_drift_cancels_within_the_blocks(quantile: float) -> None:
    turns = order(1, 6, 2)
    drifting = [latency(10 * 1.02**place * (1.1 if cell else 1)) for place, cell in enumerate(turns)]
    found = ratio(turns, drifting, 1, quantile)
    assert found is not None
    assert found.blocks == 6
    assert found.ratio == pytest.approx(1.1, rel=0.006)  # buckets are 0.8 % wide
    assert found.low < 1.1 < found.high


def test_only_whole_blocks_with_answers_enough_count() -> None:
    turns = order(1, 6, 2)
    whole = [latency(10) for _ in turns]
    cut = ratio(turns, whole[:-1], 1, 0.99)
    assert cut is not None
    assert cut.blocks == 5
    few = [*whole[:5], latency(10, 150), *whole[6:]]  # of one turn in the second block
    of_p50, of_p99 = (ratio(turns, few, 1, quantile) for quantile in (0.5, 0.99))
    assert of_p50 is not None
    assert of_p99 is not None
    assert (of_p50.blocks, of_p99.blocks) == (6, 5)
    assert ratio(turns, whole[:16], 1, 0.5) is None
    assert ratio(turns, (), 1, 0.5) is None


@pytest.mark.parametrize("truth", [1.0, 1.1])
def test_the_ratio_of_known_systems_is_found(truth: float) -> None:
    """Checks against the cost of a batch, with which all times of a system without a cap grow, and all quantiles."""
    known = Behaviour(1e6, 0.2, 10**9, noise=0.05, between=0.05)
    errors, held = [], 0
    for seed in range(6):
        ratios, _ = paced_turns([known, replace(known, batch_cost_s=0.2 * truth)], 4e5, 3, Search(), seed)
        for one in ratios.values():
            assert one is not None
            errors.append(math.log(one.ratio / truth))
            held += one.low <= truth <= one.high
    assert abs(sum(errors) / len(errors)) < 0.01
    assert held >= 10
