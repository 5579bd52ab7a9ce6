"""Exact quantiles without a sort, however many values share a bucket, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.streams.disorder.profile import QUANTILES, Spread, enough_places, exact_quantiles, frequency_bins

VALUES = st.one_of(
    st.integers(-(2**62), 2**62),
    st.integers(0, 5),
    st.integers(2**61, 2**61 + 10**6),  # of one bucket
    st.just(7),
)


def found(parts: list[list[int]], fetched: int) -> tuple[dict[str, Any], int]:
    """The quantiles, and the most values that a pass gave."""
    arrays = [np.array(part, np.int64) for part in parts]
    most = 0

    def walk(f: Any) -> list[Any]:
        nonlocal most
        given = [f(array) for array in arrays]
        most = max(most, sum(len(one) for some in given for one in some if isinstance(one, np.ndarray)))
        return given

    spread = sum((Spread.of(array) for array in arrays), Spread())
    return exact_quantiles(spread, walk, fetched=fetched), most


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(VALUES, max_size=30), min_size=1, max_size=4).filter(any), st.sampled_from([1, 3, 10**6]))
def test_they_are_those_of_a_sort(parts: list[list[int]], fetched: int) -> None:
    every = np.sort(np.concatenate([np.array(part, np.int64) for part in parts]))
    wanted = {name: int(every[max(0, int(np.ceil(q * len(every))) - 1)]) for name, q in QUANTILES.items()}
    assert found(parts, fetched)[0] == wanted


def test_few_values_are_fetched_of_many_alike() -> None:
    draw = np.random.default_rng(1)
    far = (2**61 + draw.integers(0, 10**15, 300_000)).tolist()  # delays of 73 years, by 11 days more or less
    quantiles, most = found([far, [1, 2, 3]], fetched=1000)
    assert quantiles["p50"] == int(np.sort(np.array([*far, 1, 2, 3]))[150_001])
    assert most <= 3 * 1024
    assert found([[5] * 100_000], fetched=10) == (dict.fromkeys(QUANTILES, 5), 0)


@given(st.integers(0, 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_bins_begin_where_each_time_has_a_distance_of_64_bits(span: int, low: int) -> None:
    high = min(low + span, 2**63 - 1)
    start, width, bins = frequency_bins(low, high, "ns")
    assert -(2**63) <= start <= low
    assert high - start < 2**63
    assert (high - start) // width == bins - 1
    assert bins <= 201


def test_there_are_none_of_no_values() -> None:
    assert found([[]], fetched=10) == ({}, 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.integers(1, 60))
def test_the_smallest_enough_delay(delays: list[int], copies: int) -> None:
    """Against every delay, tried one after another."""
    every = delays * copies
    late = np.array([delay for delay in every if delay], np.int64)
    spread, places = Spread.of(late), enough_places(len(every), len(late))
    exact = exact_quantiles(spread, lambda f: [f(late)], places=places)
    for name, share in (("1 %", 100), ("0.1 %", 1000)):
        enough = [d for d in range(51) if share * sum(delay > d for delay in every) <= len(every)]
        assert exact.get(name, 0) == min(enough)
