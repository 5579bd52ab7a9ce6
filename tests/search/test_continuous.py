"""Engines without micro-batches: only windows on the plateau tell the rate, and the warm-up finds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.continuous import FIRST_ROWS, carried, is_flat, near_the_top, warm_up_rows
from streamgauge.bench.search.simulate import calibrate
from streamgauge.config import Search
from streamgauge.records.measurement import Batch, Window


def window(held: int, rate: float, looks: int = 10) -> Window:
    """A window of one second in looks of 100 ms, in which so many rows per second were carried."""
    batches = tuple(Batch(0.1 * (n + 1), round(rate / 10), 0.1) for n in range(looks))
    return Window(1, "warm-up", held, batches)


def pipeline(held: int, capacity: float = 2e6, seconds: float = 0.4) -> Window:
    return window(held, min(held / seconds, capacity))


def test_the_backlog_grows_fourfold_until_no_more_is_carried() -> None:
    windows: list[Window] = []
    for _ in range(7):
        windows.append(pipeline(warm_up_rows(windows, 10, 1e9)))
    assert [w.held_rows for w in windows] == [20_000, 80_000, 320_000, 1_280_000, 5_120_000, 5_120_000, 5_120_000]
    assert [round(carried(w)) for w in near_the_top(windows)] == [2_000_000] * 3


def test_a_long_pipeline_is_told_from_a_slow_engine_by_a_larger_backlog() -> None:
    """Both carry 5,000 a second of 20,000 rows that wait: a job that commits after 4 s, and one of that capacity."""
    for capacity, expected in ((60_000, [20_000, 80_000, 320_000, 320_000]), (5_000, [20_000, 80_000, 80_000, 80_000])):
        windows: list[Window] = []
        for _ in expected:
            windows.append(pipeline(warm_up_rows(windows, 5, 1e9), capacity, 4.0))
        assert [w.held_rows for w in windows] == expected
    windows = [pipeline(FIRST_ROWS, 1_000)]
    assert warm_up_rows(windows, 5, 1e9) == FIRST_ROWS, "20 s of rows tell enough"


def test_half_of_the_allowed_age_is_enough_once_more_rows_bring_less() -> None:
    windows = [window(20_000, 50_000), window(80_000, 80_000)]  # 4^0.34
    assert warm_up_rows(windows, 3, 1e9) == 120_000
    assert warm_up_rows(windows, 3, 100_000) == 100_000, "nor more than the queues hold"


def test_a_plateau_needs_a_smaller_backlog_that_carried_as_much() -> None:
    assert not is_flat([])
    assert not is_flat([pipeline(5_000_000)])
    assert not is_flat([pipeline(100_000), pipeline(400_000)])
    assert is_flat([pipeline(1_000_000), pipeline(4_000_000)])


@given(held=st.lists(st.integers(1, 10**7), min_size=1, max_size=9))
def test_the_largest_backlog_is_near_the_top_and_none_is_smaller_than_two_fifths_of_it(held: list[int]) -> None:
    found = [w.held_rows for w in near_the_top([pipeline(rows) for rows in held])]
    assert max(held) in found
    assert sorted(found) == sorted(rows for rows in held if rows >= 0.4 * max(held))


@pytest.mark.parametrize("seconds", [0.0, 0.4, 7.0])
def test_a_search_finds_the_capacity_of_a_pipeline_however_long_it_is(seconds: float) -> None:
    behaviour = Behaviour(1e6, noise=0.1, between=0.05, compile_s=10, continuous=True, pipeline_s=seconds)
    found = calibrate(behaviour, Search(processes=3), 12)
    assert abs(found.bias) < 0.03
    assert found.coverage >= 0.7
    assert {done.outcome for done in found.searches} == {"found"}
