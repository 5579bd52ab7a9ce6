"""Event times of Nexmark's events: at a constant rate, or at one that changes between two rates in steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from streamgauge.base.arrow import Ints
from streamgauge.base.units import PS
from streamgauge.descriptions.nexmark import Nexmark

SINE_STEPS = 10
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Clock:
    """A cycle of steps of equal length, each with a rate of its own."""

    base_us: int
    rates: tuple[int, ...]  # events/s
    step_us: int

    @classmethod
    def of(cls, settings: Nexmark) -> Clock:
        first, second = settings.rate, settings.next_rate or settings.rate
        if first == second:
            rates: tuple[int, ...] = (first,)
        elif settings.rate_shape == "square":
            rates = (first, second)
        else:
            middle, swing = (first + second) / 2, (first - second) / 2
            turns = (math.cos(2 * math.pi * step / SINE_STEPS) for step in range(SINE_STEPS))
            rates = tuple(max(1, round(middle + swing * turn)) for turn in turns)
        base = (settings.base_time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        return cls(base, rates, max(SECOND_US, settings.rate_period.ps // PS["us"] // len(rates)))

    def times_us(self, number: Ints) -> Ints:
        """Event time (µs since the epoch) of each event, given by its number."""
        if len(self.rates) == 1:
            return self.base_us + number * SECOND_US // self.rates[0]
        rates = np.array(self.rates)
        first = np.cumsum([0, *(rate * self.step_us // SECOND_US for rate in self.rates)])
        period, rest = np.divmod(number, first[-1])
        step = np.searchsorted(first, rest, side="right") - 1
        within = (rest - first[step]) * SECOND_US // rates[step]
        times: Ints = self.base_us + (period * len(rates) + step) * self.step_us + within
        return times
