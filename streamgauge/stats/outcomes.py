"""The outcomes of comparisons and of searches for changes, which need no library to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["better", "worse", "same", "inconclusive"]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison. ratio: candidate/baseline. All effects are relative, and for these sample sizes."""

    ratio: float
    interval: tuple[float, float] | None  # None: too few values
    verdict: Verdict
    reason: str
    noise: float | None  # relative standard deviation of one repetition; None: not known from single values
    noise_floor: float | None  # 95 % of comparisons of a system with itself stay below this change
    detectable_effect: float | None  # seen in 80 % of comparisons; None: no effect is detectable
    smallest_effect: float  # the smallest change that matters
    n_baseline: int
    n_candidate: int
    confidence: float = CONFIDENCE


@dataclass(frozen=True)
class Change:
    """A change of level: from values[index] on, the series has another one."""

    index: int
    magnitude: float  # relative: +0.1 is 10 % up
    interval: tuple[float, float] | None  # of the magnitude, 95 %
    confidence: float  # 1 − p, where p is corrected for the number of candidate positions
    before: float  # medians of the two levels
    after: float
    begin: int = 0  # index of the first value of the level before


@dataclass(frozen=True)
class Found:
    """Changes in order. noise: relative, within levels. detectable: least step that `segment` more values show."""

    changes: list[Change]
    noise: float | None
    detectable: float | None
    weekly_pattern: bool
    n: int
    reason: str = ""
