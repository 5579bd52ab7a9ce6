"""The table of long runs says what their records say."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.long_runs import row

RATED: dict[str, Any] = {"sustainable_rate_events_per_s": 1000.0, "interval": [900.0, 1100.0]}
NONE: dict[str, Any] = {"sustainable_rate_events_per_s": None, "interval": None}
OF_SEARCH: dict[str, Any] = {"name": "late20", "constraint": "max_age", "outcome": "found", "seconds": 61.2}


@pytest.mark.parametrize(
    ("outcome", "grows"), [("unsustainable", "yes"), ("sustainable", "NO"), ("inconclusive", "unclear")]
)
def test_a_run_above_the_rate_grows_if_it_was_not_sustained(outcome: str, grows: str) -> None:
    runs = [
        {"fraction": 0.9, "age_s": 1.1, "predicted_age_s": 1.0, "correct": True},
        {"fraction": 1.1, "age_s": None, "predicted_age_s": None, "correct": None, "last_age_s": 12.34}
        | {"outcome": outcome},
    ]
    cells = row({**OF_SEARCH, **RATED, "long_runs": runs}, None)
    assert cells == [
        "late20", "1,000", "900 to 1,100", "", "max_age", "found", "61", "1.00", "1.10", "yes", "right", "12.3", grows,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "overlaps"),
    [
        (RATED, RATED, "yes"),
        (RATED, RATED | {"interval": [1200.0, 1300.0]}, "NO"),
        (NONE, RATED, ""),
        (RATED, NONE, ""),
    ],
)
def test_a_search_without_a_rate_is_compared_with_none(
    first: dict[str, Any], second: dict[str, Any], overlaps: str
) -> None:
    cells = row(OF_SEARCH | second, OF_SEARCH | first)
    assert cells[3] == overlaps
    assert cells[1:3] == (["none", ""] if second is NONE else cells[1:3])
