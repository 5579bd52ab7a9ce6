"""Estimates a ratio from blocks, in each of which both sides were measured next to each other.

A block gives one logarithm of a ratio, so whatever slows both sides cancels in it. The estimate over the blocks of a
process is that of Hodges and Lehmann ("Estimates of Location Based on Rank Tests", 1963): the median of all means of
two, which one slow window in six hardly moves. Its interval inverts the exact signed-rank test of Wilcoxon (1945). Over
several processes it is the mean of their estimates with Student's t, as a process can favour one side: a random effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

CONFIDENCE = 0.90
#: standard deviation of how much a process favours one side, in logarithms. One process does not show it, so it is
#: assumed; `python -m benchmarks.same_stream` compares a stream with itself on a real engine
FAVOUR = 0.005
#: from so many blocks on, an interval of 90 % is possible
LEAST_BLOCKS = 5
#: from so many processes on, their spread is estimated rather than assumed
LEAST_PROCESSES = 3


@dataclass(frozen=True)
class Ratio:
    """A ratio with its 90 % interval, from so many blocks of so many processes."""

    ratio: float
    low: float
    high: float
    blocks: int
    processes: int

    @property
    def half_width(self) -> float:
        """Half the interval's width, relative to the ratio."""
        return math.sqrt(self.high / self.low) - 1

    def beyond(self, power: float) -> float:
        """Returns how far the truth must lie from a bound, on logarithms, so that the interval leaves it out so often.

        Infinite with fewer than three processes, whose spread is not known.
        """
        from scipy.special import nctdtrinc, stdtrit

        if self.processes < LEAST_PROCESSES:
            return math.inf
        freedom = self.processes - 1
        quantile = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
        error = math.log(self.high / self.low) / 2 / quantile
        return float(nctdtrinc(freedom, 1 - power, quantile)) * error


def ratio_of(processes: Sequence[Sequence[float]], favour: float = FAVOUR) -> Ratio | None:
    """Returns the ratio from the logarithm of each block, process by process; None for too few blocks.

    With fewer than three processes the interval is that of all blocks, widened by `favour`; from three on it is the t
    interval over the processes' own estimates.
    """
    from scipy.special import ndtri, stdtrit  # whoever reads a ratio needs none of it

    logs = [np.asarray(blocks, dtype=float) for blocks in processes if len(blocks)]
    count = sum(len(blocks) for blocks in logs)
    if count < LEAST_BLOCKS and len(logs) < LEAST_PROCESSES:
        return None
    if len(logs) >= LEAST_PROCESSES:
        own = np.array([np.median(_walsh(blocks)) for blocks in logs])
        middle = float(own.mean())
        half = float(stdtrit(len(own) - 1, (1 + CONFIDENCE) / 2)) * float(own.std(ddof=1)) / math.sqrt(len(own))
        low, high = middle - half, middle + half
    else:
        walsh = _walsh(np.concatenate(logs))
        middle, left = float(np.median(walsh)), outside(count)
        wider = float(ndtri((1 + CONFIDENCE) / 2)) * favour / math.sqrt(len(logs))
        low = middle - math.hypot(middle - float(walsh[left]), wider)
        high = middle + math.hypot(float(walsh[-1 - left]) - middle, wider)
    return Ratio(math.exp(middle), math.exp(low), math.exp(high), count, len(logs))


@lru_cache
def outside(count: int) -> int:
    """Number of the smallest, and of the largest, means of two of `count` values that the interval leaves out.

    The coverage is the nearest to CONFIDENCE that ranks allow.
    """
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        ways[rank:] += ways[:-rank].copy()
    covered = 1 - 2 * np.cumsum(ways / 2.0**count)
    return int(np.argmin(np.abs(covered - CONFIDENCE)))


def _walsh(values: np.ndarray) -> np.ndarray:
    """Means of all pairs of values, each with itself included, ascending."""
    first, second = np.triu_indices(len(values))
    return np.sort((values[first] + values[second]) / 2)
