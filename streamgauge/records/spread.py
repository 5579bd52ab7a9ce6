"""A figure over the repeats of a measurement."""

from __future__ import annotations

from streamgauge.records.record import Part


class Spread(Part):
    """A figure over repeats: its geometric mean and 90 % interval, which two of them have."""

    value: float
    low: float | None = None
    high: float | None = None
    samples: int = 1

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)
