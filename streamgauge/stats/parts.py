"""Tells how many more CPUs one stream needs than another at a common rate, from rates on parts of the machine.

Between two measured parts the rate is taken for a power of the CPUs; beyond them nothing is claimed. Each stream has a
process of its own, so nothing is paired: the interval holds the blocks of both, and how much fresh processes differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.stats.scalability import CONFIDENCE, Refused


@dataclass(frozen=True)
class Curve:
    """Rates in events/s on the same parts of the machine, ascending, in each block of a process.

    differ: part by which the speed of a process differs from the middle of all, with 90 %.
    """

    cpus: Sequence[float]
    blocks: Sequence[Sequence[float]]
    differ: float = 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest rate that lie between the parts in all blocks."""
        return max(rates[0] for rates in self.blocks), min(max(rates) for rates in self.blocks)

    def needed(self, rate: float) -> np.ndarray:
        """Rows with a block's CPUs for a rate between the ends, and with how many more a rate needs, relative to it."""
        return np.array([_needed(self.cpus, rates, rate) for rates in self.blocks])


@dataclass(frozen=True)
class MoreCpus:
    """CPUs that the one stream needs at a rate, those that the other needs, and the 90 % interval of the difference."""

    rate_events_per_s: float
    cpus: float
    other: float
    interval: tuple[float, float]


def more_cpus(curve: Curve, other: Curve, rate: float | None) -> MoreCpus | Refused:
    """Compares two streams, at that rate if the parts carry it of both, or else in the middle of what they carry."""
    from scipy.special import stdtrit  # whoever reads a figure needs none of it

    (low, high), (other_low, other_high) = curve.ends, other.ends
    least, most = max(low, other_low), min(high, other_high)
    if least > most:
        ranges = f"{low:,.6g} to {high:,.6g} events/s of the one, {other_low:,.6g} to {other_high:,.6g} of the other"
        return Refused(f"the parts carry no common rate: {ranges}")
    at = rate if rate is not None and least <= rate <= most else math.sqrt(least * most)
    own, others = curve.needed(at), other.needed(at)
    (cpus, slope), (base, base_slope) = own.mean(axis=0), others.mean(axis=0)
    blocks = (
        float(stdtrit(each.size - 1, (1 + CONFIDENCE) / 2)) * float(each.std(ddof=1)) / math.sqrt(each.size)
        for each in (own[:, 0], others[:, 0])
    )
    half = math.hypot(*blocks, curve.differ * slope, other.differ * base_slope)
    return MoreCpus(at, float(cpus), float(base), (float(cpus - base) - half, float(cpus - base) + half))


def _needed(cpus: Sequence[float], rates: Sequence[float], rate: float) -> tuple[float, float]:
    after = next(place for place in range(1, len(rates)) if rates[place] >= rate)
    before = after - 1
    steps = math.log(cpus[after] / cpus[before]) / max(1e-9, math.log(rates[after] / rates[before]))
    needed = cpus[before] * (rate / rates[before]) ** steps
    return needed, steps * needed
