"""The numpy reference against the definitions in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.streams.disorder import definitions
from tests.oracle import naive

times = st.lists(st.integers(-50, 50), max_size=60) | st.lists(st.integers(-(2**61), 2**61), max_size=30)


def test_a_small_stream_by_hand() -> None:
    stream = np.array([10, 30, 20, 30, 25, 40, 5])
    assert definitions.out_of_order(stream).tolist() == [False, False, True, False, True, False, True]
    assert definitions.delays(stream).tolist() == [10, 5, 35]
    assert definitions.adjacent_descents(stream) == 3
    assert definitions.inversions(stream) == 9
    assert definitions.distance(stream) == 6
    assert definitions.interleaved(stream) == 3  # as 30 > 25 > 5


@given(times)
def test_every_measure_equals_its_definition(stream: list[int]) -> None:
    array = np.array(stream, np.int64)
    assert definitions.out_of_order(array).tolist() == naive.out_of_order(stream)
    assert definitions.delays(array).tolist() == naive.delay_of(stream)
    pairs = naive.inversions(stream)
    assert definitions.inversions(array) == len(pairs)
    assert definitions.distance(array) == max((j - i for i, j in pairs), default=0)
    assert definitions.interleaved(array) == naive.longest_strictly_decreasing(stream)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]))
def test_nearest_rank_is_the_smallest_value_that_covers_the_quantile(values: list[int], quantile: float) -> None:
    got = sorted(values)[definitions.rank_of(quantile, len(values)) - 1]
    covering = [v for v in values if sum(w <= v for w in values) >= quantile * len(values) - 1e-9]
    assert got == min(covering)
