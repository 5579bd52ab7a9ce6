"""An answer that changed is found at once, by its own configuration; what got better is no error."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.bench.answers.functional import broken, said
from streamgauge.records.series import Point


def points(*values: tuple[float | None, str] | tuple[float | None, str, bool]) -> list[Point]:
    """Points of a value and a configuration, valid unless a third item says otherwise."""
    return [
        Point("r", n, "k", str(n), one[0], None, None, 1, one[2] if len(one) > 2 else True, "", one[1], {}, "")
        for n, one in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("metric", "values", "wanted"),
    [
        ("output_rows", [(5, "c"), (5, "c"), (5, "c")], []),
        ("output_rows", [(5, "c"), (6, "c"), (6, "c")], [("0", "1")]),
        ("output_rows", [(5, "c"), (9, "d"), (5, "c"), (9, "d")], []),  # two questions
        ("output_rows", [(5, "c"), (9, "d"), (4, "c")], [("0", "2")]),
        ("output_rows", [(5, "c"), (None, "c"), (6, "c", False), (6, "c")], [("0", "3")]),  # gaps and void figures
        ("output_hash", [(1.0, "c"), (2.0, "c")], [("0", "1")]),
        ("output_supported", [(1, "c"), (0, "c"), (1, "c")], [("0", "1")]),
        ("output_correct", [(0, "c"), (1, "c")], []),
        ("output_rows", [], []),
    ],
)
def test_changes_of_an_answer(metric: str, values: list[Any], wanted: list[tuple[str, str]]) -> None:
    assert [(a.at, b.at) for a, b in broken(metric, points(*values))] == wanted


def test_in_words() -> None:
    before, after = points((12345, "c"), (12344, "c"))
    assert said("output_rows", before, after) == "output changed from 12\u202f345 to 12\u202f344"
    assert said("output_supported", before, after) == "no longer supported"
    assert said("output_correct", before, after) == "no longer correct"
    assert said("output_hash", before, after) == "output changed: other values"
