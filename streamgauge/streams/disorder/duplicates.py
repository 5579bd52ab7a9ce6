"""Duplicates: events that come twice, as a producer without idempotence writes them when it tries again.

Events are cut into blocks by their number. Exact quotas of the blocks add up to the exact count of all, and a block's
duplicated events are those with the least hashes. So a task knows its own without a pass over all.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamgauge.base.arrow import Ints, Mask
from streamgauge.streams.disorder.delays import splitmix
from streamgauge.streams.disorder.output import Output

BLOCK = 1024
#: duplicates are drawn apart from delays, with the same seed
_APART = 0x5D0B1E
_HALF = Fraction(1, 2)


def total(events: int, share: Fraction) -> int:
    """Number of duplicates of so many events; a half is rounded up."""
    return int(events * share + _HALF)


def are_duplicated(numbers: Ints, events: int, share: Fraction, seed: int) -> Mask:
    """Tells which events come twice: a pure function of the seed and of an event's number among all of them, from 0."""
    blocks, block = np.unique(numbers // BLOCK, return_inverse=True)
    begins = (blocks * BLOCK).tolist()
    quotas = [total(min(begin + BLOCK, events), share) - total(begin, share) for begin in begins]
    own = np.add.outer(blocks * BLOCK, np.arange(BLOCK))
    hashes = splitmix(seed ^ _APART, own.ravel()).reshape(own.shape)
    hashes[own >= events] = np.uint64(2**64 - 1)
    order = np.argsort(hashes, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(BLOCK), order.shape), axis=1)
    chosen: Mask = ranks[block, numbers % BLOCK] < np.array(quotas, np.int64)[block]
    return chosen


def with_duplicates(output: Output, duplicated: Mask) -> Output:
    """Returns the rows of a chunk with a second one right behind each that is duplicated, the same in all columns."""
    times = 1 + duplicated
    return replace(
        output,
        ingestion=np.repeat(output.ingestion, times),
        seq=np.repeat(output.seq, times),
        time=np.repeat(output.time, times),
        order=np.repeat(output.order, times),
    )
