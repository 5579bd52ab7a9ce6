"""Finds which events shared a session in a run, by the run's own batches and watermarks. Pure.

A late event may still be taken, as its own session had not ended at the watermark, although the session that it would
have joined was already emitted. Then a second session overlaps the first, and a single batch query cannot find both. So
the events are divided into groups (deals) whose sessions never touch, and a batch query answers each deal.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints

Session = tuple[int, int, int]  # start and end in µs, and the number of its last part, which is the root of the others


def deals(keys: pa.ChunkedArray, event_us: Ints, batch: Ints, late_us: Ints, gap_us: int) -> Ints:
    """Returns the number of each taken event's deal; 0 for all unless sessions touch.

    batch: the micro-batch that took each event; late_us: the watermark with which sessions had ended before it, µs.
    """
    if not len(event_us):
        return np.zeros(0, np.int64)
    codes = numbered(keys)
    order = np.lexsort((event_us, codes, batch))
    sorted_us, sorted_codes, sorted_batch = event_us[order], codes[order], batch[order]
    begins = np.ones(len(order), bool)
    apart = sorted_us[1:] > sorted_us[:-1] + gap_us  # sessions that touch are one
    begins[1:] = (sorted_codes[1:] != sorted_codes[:-1]) | (sorted_batch[1:] != sorted_batch[:-1]) | apart
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(order)) - 1
    joined = _join(
        sorted_codes[first].tolist(),
        sorted_us[first].tolist(),
        (sorted_us[last] + gap_us).tolist(),
        late_us[order][first].tolist(),
    )
    deal_of = np.empty(len(order), np.int64)
    deal_of[order] = np.repeat(joined, np.diff(np.append(first, len(order))))
    return deal_of


def plain_zeros(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """The keys with 0.0 for -0.0: to every engine they are one key."""
    return pc.add(keys, 0.0) if pa.types.is_floating(keys.type) else keys


def numbered(keys: pa.ChunkedArray) -> Ints:
    """A number for each key; null is a key of its own."""
    codes: Ints = pc.dictionary_encode(plain_zeros(keys), null_encoding="encode").combine_chunks().indices.to_numpy()
    return codes


def _join(keys: list[int], starts: list[int], ends: list[int], late_us: list[int]) -> list[int]:
    """Returns the deal of each part of a session; the parts are in the order of their batches."""
    parent = list(range(len(keys)))
    live: dict[int, list[Session]] = {}
    done: dict[int, list[Session]] = {}
    for part, (key, start, end, late) in enumerate(zip(keys, starts, ends, late_us, strict=True)):
        stay = []
        for other in live.get(key, []):
            if other[1] <= late:
                done.setdefault(key, []).append(other)
            elif start <= other[1] and other[0] <= end:
                start, end, parent[other[2]] = min(start, other[0]), max(end, other[1]), part
            else:
                stay.append(other)
        live[key] = [*stay, (start, end, part)]
    deal: dict[int, int] = {}
    for key, sessions in live.items():
        free: list[int] = []  # for each deal, the end of its last session
        for start, end, part in sorted(sessions + done.get(key, [])):
            number = next((n for n, until in enumerate(free) if until < start), len(free))
            free[number : number + 1] = [end]
            deal[part] = number
    return [deal[_root(parent, part)] for part in range(len(keys))]


def _root(parent: list[int], part: int) -> int:
    while parent[part] != part:
        parent[part] = part = parent[parent[part]]
    return part
