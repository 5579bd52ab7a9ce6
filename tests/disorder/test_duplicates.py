"""Tests which events come twice: by the definition in plain Python, whatever part of them is asked for."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.streams.disorder.duplicates import BLOCK, are_duplicated, total
from tests.disorder.test_delays import splitmix_of


def in_python(events: int, share: Fraction, seed: int) -> set[int]:
    """The duplicated numbers, from the description on docs/generation.md alone."""
    chosen: set[int] = set()
    for begin in range(0, events, 1024):
        end = min(begin + 1024, events)
        quota = int(end * share + Fraction(1, 2)) - int(begin * share + Fraction(1, 2))
        ranked = sorted(range(begin, end), key=lambda number: (splitmix_of(seed ^ 0x5D0B1E, number), number))
        chosen |= set(ranked[:quota])
    return chosen


@given(
    st.integers(1, 3 * BLOCK),
    st.decimals(0, 100, places=3),
    st.integers(0, 2**63 - 1),
    st.randoms(use_true_random=False),
)
def test_as_many_as_asked_and_the_same_for_any_part(events: int, percent: object, seed: int, random: Random) -> None:
    share = Fraction(str(percent)) / 100
    wanted = in_python(events, share, seed)
    assert len(wanted) == total(events, share)
    numbers = np.array(random.sample(range(events), random.randint(1, events)), np.int64)
    duplicated = are_duplicated(numbers, events, share, seed)
    assert set(numbers[duplicated].tolist()) == wanted & set(numbers.tolist())


@pytest.mark.parametrize(("events", "percent", "count"), [(10, "5", 1), (9, "5", 0), (26_475, "5", 1324)])
def test_a_half_is_rounded_up(events: int, percent: str, count: int) -> None:
    assert total(events, Fraction(percent) / 100) == count
