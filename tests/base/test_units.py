"""Lengths of time as text."""

from __future__ import annotations

import pytest

from streamgauge.base.units import PS, show_about, show_enough


@pytest.mark.parametrize(
    ("seconds", "about"),
    [(500, "8.3 min"), (3590, "60 min"), (119.6, "120 s"), (0.0123, "12 ms"), (26 * 3600, "26 h"), (0, "0 s")],
)
def test_about_has_two_digits_of_the_unit_in_which_it_is_shown(seconds: float, about: str) -> None:
    assert show_about(seconds * 1e9, "ns") == about


@pytest.mark.parametrize("ns", [1, 999, 12_345_678, 7_507_603_000_001, 10_000_000_000_001, 4_123_456_789_012_345_678])
def test_enough_is_never_less(ns: int) -> None:
    number, unit = show_enough(ns, "ns").split()
    shown = float(number) * PS[unit] / PS["ns"]
    assert ns * (1 - 1e-15) <= shown <= 1.001 * ns + 1e-6
