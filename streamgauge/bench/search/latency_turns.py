"""Compares latencies of streams that take turns in one process, all at one rate: the order, and the ratios.

The blocks are those of the shared search: A B B A, or B A A B, in a seeded order. A quantile is that of all answers of
a turn, and the ratio to the first stream's is formed within the block (`stats.paired`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from streamgauge.base.histogram import Histogram
from streamgauge.bench.search.shared import block_order
from streamgauge.stats.paired import FAVOUR, Ratio, ratio_of

QUANTILES = {"p50": 0.5, "p99": 0.99}
#: the rate is at most this part of the lowest one: a stream then settles within a few batches of its turn
MOST_LOAD = 0.5
#: how much a process favours a stream in its latency: at most twice as much as in what a row costs, as a batch that
#: takes longer lets more rows wait for the next one
_FAVOUR = FAVOUR / (1 - MOST_LOAD)
#: answers of a turn above a quantile, at least
_LEAST_ABOVE = 2


def common_rate(sustainable: Sequence[float], fractions: Sequence[float], rates: Sequence[float]) -> float:
    """Returns the rate in events/s of all streams: the lowest of those asked for, else part of the lowest one found."""
    return min(rates) if rates else min(sustainable) * min((*fractions, MOST_LOAD))


def order(process: int, blocks: int, cells: int) -> list[int]:
    """The number of the cell of each turn, block after block."""
    return [cell for block in range(blocks) for cell in block_order(process, block, cells)]


def ratio(turns: Sequence[int], latencies: Sequence[Histogram], cell: int, quantile: float) -> Ratio | None:
    """Returns the quantile of a cell's latencies over that of the first cell; None for too few blocks.

    A block counts if all turns of both have answers enough. The logarithm of its ratio is the difference of the means
    over both turns, in which a steady drift of the machine or the process cancels.
    """
    size, logs = 2 * len(set(turns)), list[float]()
    least = math.ceil(_LEAST_ABOVE / (1 - quantile))
    for begin in range(0, len(latencies) // size * size, size):
        block = list(zip(turns[begin : begin + size], latencies[begin : begin + size], strict=True))
        if all(one.count >= least for number, one in block if number in (0, cell)):
            own, base = (
                [math.log(one.quantile(quantile) or 1) for n, one in block if n == number] for number in (cell, 0)
            )
            logs.append((sum(own) - sum(base)) / 2)
    return ratio_of([logs], _FAVOUR)
