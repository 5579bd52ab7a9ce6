"""Judges a slowdown while its pairs are still being measured.

A pair is two fresh processes, one of each side, measured next to each other. It gives one logarithm: what the second
side costs over what the first one costs. Somebody looks at the pairs again and again, and stops once they are clear.
Whoever looks often errs more often than whoever looks once, so the allowed error is dealt out over the looks
(Bonferroni): a half to the last one, a quarter to the first, an eighth to the second … Each look has the interval of
Student's t. `python -m benchmarks.gate` counts how often judgements err.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: numbers of pairs after which somebody looks before the end
LOOKS = (3, 4, 6, 8, 12, 16, 24, 32)
#: from so many pairs on, their spread is estimated
LEAST = 3
#: part of the judgements in which a slowdown of the detectable size is seen
POWER = 0.9


@dataclass(frozen=True)
class Look:
    """The slowdown after so many pairs, on logarithms. low and high: bounds that hold together with earlier looks'."""

    pairs: int
    middle: float
    low: float
    high: float
    spread: float  # standard deviation of a pair
    detectable: float  # the slowdown whose lower bound lies above 0 in POWER of such looks

    @property
    def ratio(self) -> float:
        return math.exp(self.middle)

    @property
    def interval(self) -> tuple[float, float]:
        return math.exp(self.low), math.exp(self.high)


def share(pairs: int, error: float, *, last: bool) -> float:
    """The part of the allowed error that a look may spend; 0 if nobody looks after so many pairs."""
    if pairs < LEAST:
        return 0.0
    if last:
        return error / 2
    return error / 2 / 2 ** (1 + LOOKS.index(pairs)) if pairs in LOOKS else 0.0


def look(logs: Sequence[float], error: float, *, miss: float | None = None, last: bool) -> Look | None:
    """Looks at the pairs so far; None if nobody looks after so many.

    error: how often the lower bound may lie above the truth, in any look. miss: the same of the upper bound below it.
    last: no further pair comes.
    """
    above, below = (share(len(logs), one, last=last) for one in (error, error if miss is None else miss))
    if not above or not below:
        return None
    from scipy.special import nctdtrinc, stdtrit  # whoever reads a verdict needs none of it

    values = np.asarray(logs, dtype=float)
    count = len(values)
    middle, spread = float(values.mean()), float(values.std(ddof=1))
    deviation = spread / math.sqrt(count)
    up, down = (float(stdtrit(count - 1, 1 - one)) for one in (above, below))
    seen = float(nctdtrinc(count - 1, 1 - POWER, up)) * deviation
    return Look(count, middle, middle - up * deviation, middle + down * deviation, spread, seen)
