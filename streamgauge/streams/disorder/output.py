"""The rows of a chunk of the stream, computed on numpy arrays in bounded memory (see generation.py for its terms)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.base.arrow import Ints, Mask
from streamgauge.records.manifests import Selection
from streamgauge.streams.disorder.arrays import stable_order
from streamgauge.streams.disorder.chunks import FIRST, LAST, Border, Chunk, Window
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times
from streamgauge.streams.disorder.generation import Rest, delayed_rows
from streamgauge.streams.disorder.outages import Delays
from streamgauge.streams.disorder.row_groups import RowGroup

#: rows of the output that a task may hold at a time, besides a piece; more than a usual chunk has
HELD_ROWS = 2_000_000


@dataclass(frozen=True)
class Output:
    """The rows of one chunk of the stream, in (ingestion time, seq) order."""

    ingestion: Times
    seq: Ints
    time: Times
    rows: npt.NDArray[np.intp]  # sorted positions in the row groups below, for fetching further columns
    order: npt.NDArray[np.intp]  # rows[order] are the positions in stream order
    groups: list[RowGroup]
    first: int  # number of the groups' first row among all
    running_before: int  # largest event time of all earlier chunks' rows
    delayed: Ints  # delays of newly delayed rows, ticks


def generate_chunk(
    groups: Sequence[RowGroup], chunk: Chunk, delay: Delays, seed: int, selection: Selection
) -> Iterator[Output]:
    """Yields the stream's rows with ingestion time in the chunk, in order, at most HELD_ROWS and a piece at a time.

    Delays may bring any number of rows to one time. The rest is then computed by reading the source once more.
    """
    low = chunk.low
    while low < chunk.high:
        output, low = _first_rows(groups, Chunk(low, chunk.high), delay, seed, selection)
        if output is not None:
            yield output


def _first_rows(
    groups: Sequence[RowGroup], chunk: Chunk, delay: Delays, seed: int, selection: Selection
) -> tuple[Output | None, Border]:
    """Returns the first rows of a chunk by ingestion time, None if it has none, and the border after them."""
    window = Window.of(groups, chunk, delay, back=True)
    rest: Rest | None = None
    running_before, high, held = BEFORE_ALL, chunk.high, list[list[Ints]]()
    for piece in window.backwards():
        late, drawn, rest = delayed_rows(piece, delay, seed, selection, rest)
        events = piece.index(chunk.high)
        added = np.zeros(len(piece.base), np.int64)
        added[late] = drawn
        added = added[:events]
        ingestion = piece.base[:events] + added
        here = _is_before(high, ingestion, piece.first)
        if chunk.low != FIRST:
            earlier = _is_before(chunk.low, ingestion, piece.first)
            running_before = max(running_before, int(piece.time[:events][earlier].max(initial=BEFORE_ALL)))
            here &= ~earlier
        rows = np.flatnonzero(here)
        places = rows + (piece.first - window.first)
        held.insert(0, [ingestion[rows], piece.seq[rows], piece.time[rows], places, added[rows]])
        before = piece.base_before
        if sum(len(part[0]) for part in held) > HELD_ROWS:
            kept, high = _earliest_half(held, window.first)
            held = [kept]
    if not any(len(part[0]) for part in held):
        return None, high
    ingestion, seq, time, places, added = _joined(held)
    order = stable_order(ingestion)
    running_before = max(running_before, before)
    columns = (ingestion[order], seq[order], time[order], places, order)
    return Output(*columns, window.groups, window.first, running_before, added[added > 0]), high


def _earliest_half(held: list[list[Ints]], first: int) -> tuple[list[Ints], Border]:
    """Keeps HELD_ROWS / 2 rows that come first by ingestion time; returns them and the border after them."""
    columns = _joined(held)
    ingestion, places = columns[0], columns[3]
    order = stable_order(ingestion)
    next_row = order[HELD_ROWS // 2]
    border = Border(int(ingestion[next_row]), first + int(places[next_row]))
    kept = np.sort(order[: HELD_ROWS // 2])
    return [column[kept] for column in columns], border


def _joined(held: list[list[Ints]]) -> list[Ints]:
    return held[0] if len(held) == 1 else [np.concatenate(parts) for parts in zip(*held, strict=True)]


def _is_before(border: Border, ingestion: Times, first: int) -> Mask:
    """Tells which rows are before a border by ingestion time. first: row of the first."""
    if border == LAST:
        return np.ones(len(ingestion), np.bool_)
    earlier: Mask = ingestion < border.base
    if border.row > first:
        earlier[: border.row - first] |= ingestion[: border.row - first] == border.base
    return earlier
