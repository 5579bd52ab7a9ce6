"""Summarises a closed-loop window in a few numbers, and finds its hiccups."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamgauge.records.measurement import Window

#: relative difference of windows of one process beyond the noise of their batches
FLOOR = 0.01
#: a batch that takes more than so many medians of its window is a hiccup
HICCUP = 2.0
#: a batch that takes this part of the held rows at most has met the engine's own cap
_CAPPED = 0.9
#: relative deviation of a batch that is assumed, and the number of batches that the assumption counts for
_NOISE, _NOISE_WEIGHT = 0.08, 4


@dataclass(frozen=True)
class Point:
    """A window in a few numbers. A hiccup is a batch that took over twice what is expected; it is kept apart."""

    held_rows: int
    rows: float  # mean of a batch
    seconds: float  # mean of a batch that was no hiccup
    at_s: float  # mean end of its batches, since the process began
    count: int
    deviation: float  # of a batch, relative
    hiccup_s: tuple[float, ...]  # what each hiccup took beyond the mean
    capped: bool  # most batches had one and the same size, though more was waiting

    @classmethod
    def of(cls, window: Window, expected_s: float | None = None) -> Point:
        """The point of a window with at least one batch; the lower median is expected where nothing else is.

        Most of a short window can be hiccups, which its median does not show and the fit of all windows does. Where
        all batches take that long, it is the fit that errs.
        """
        seconds = np.array([batch.seconds for batch in window.batches])
        late = seconds > HICCUP * np.sort(seconds)[(len(seconds) - 1) // 2]
        if expected_s is not None and not (seconds > HICCUP * expected_s).all():
            late = seconds > HICCUP * expected_s
        ordinary = seconds[~late]
        mean, count = float(ordinary.mean()), len(seconds)
        own = float(((ordinary / mean - 1) ** 2).sum()) if mean > 0 else 0.0
        deviation = math.sqrt((own + _NOISE_WEIGHT * _NOISE**2) / (len(ordinary) - 1 + _NOISE_WEIGHT))
        at = float(np.mean([batch.at_s for batch in window.batches]))
        beyond = tuple(float(s) for s in seconds[late] - mean)
        rows = np.array([batch.rows for batch in window.batches])
        equal = float((rows >= 0.99 * rows.max()).mean()) > 0.5
        capped = bool(equal and rows.max() < _CAPPED * window.held_rows)
        return cls(window.held_rows, window.rows / count, mean, at, count, deviation, beyond, capped)

    @property
    def error(self) -> float:
        """Relative standard error of its mean."""
        return math.hypot(self.deviation / math.sqrt(self.count), FLOOR)
