"""A delay distribution, and the description of a data set."""

from __future__ import annotations


def triangle(quantile: float, low: int, high: int) -> float:
    """The inverse CDF of a density that falls in a straight line from low to high."""
    return high - (high - low) * (1 - quantile) ** 0.5


BUSES = {
    "description": "positions of buses, one a line",
    "source": {
        "time": {"column": "recorded", "unit": "s"},
        "columns": {"route": "string", "speed": "int64"},
    },
}
