"""Computes the SHA-256 of a stream's ordered rows, in pieces and by any number of tasks.

Rows are grouped into blocks. A pure function of seq decides after which rows a block ends (about one in 4,096), so
blocks do not depend on how the work was cut. A block's digest is the SHA-256 of its ingestion times, seqs and event
times (each int64, little-endian, one array after the other) and then its lines. The stream's hash is the SHA-256 of
its blocks' digests in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamgauge.base.arrow import Ints

_BLOCK_BITS = 12
_MIX = np.uint64(0x9E3779B97F4A7C15)
Rows = tuple[Ints, Ints, Ints, bytes | memoryview]


@dataclass
class StreamHash:
    """Digests of whole blocks, and the rows at both ends whose blocks reach beyond this piece."""

    head: list[Rows] = field(default_factory=list)  # before the first end of a block
    digests: list[bytes] = field(default_factory=list)
    tail: list[Rows] = field(default_factory=list)  # after the last end of a block
    ended: bool = False  # whether any block ended in this piece

    def add(self, ingestion: Ints, seq: Ints, time: Ints, line: pa.Array | pa.ChunkedArray) -> None:
        """Adds the next rows in stream order; all arrays have the same length."""
        values = line.combine_chunks() if isinstance(line, pa.ChunkedArray) else line
        if isinstance(values, pa.ChunkedArray):  # more than 2 GiB of text stays chunked
            values = pa.concat_arrays(values.cast(pa.large_binary()).chunks)
        width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
        size = np.dtype(width).itemsize
        offsets = np.frombuffer(values.buffers()[1], width, len(values) + 1, values.offset * size)
        text = memoryview(values.buffers()[2] or b"")
        ends = np.flatnonzero(seq.astype(np.uint64) * _MIX >> np.uint64(64 - _BLOCK_BITS) == 0) + 1
        start = 0
        for end in [*ends.tolist(), len(seq)]:
            part = slice(start, end)
            rows: Rows = (ingestion[part], seq[part], time[part], text[offsets[start] : offsets[end]])
            if end == len(seq) and (not len(ends) or end != ends[-1]):
                if end > start:
                    self._hold(rows)
            elif end > start:
                self._end(rows)
            start = end

    def _hold(self, rows: Rows) -> None:
        # copies: the block outlives the chunk, and may travel to the driver
        ingestion, seq, time, lines = rows
        (self.tail if self.ended else self.head).append((ingestion.copy(), seq.copy(), time.copy(), bytes(lines)))

    def _end(self, rows: Rows) -> None:
        if self.ended:
            self.digests.append(_digest([*self.tail, rows]))
            self.tail = []
        else:
            self._hold(rows)
            self.ended = True


def join(pieces: Iterable[StreamHash]) -> str:
    """The stream's SHA-256, hexadecimal, from all its pieces in order."""
    whole = hashlib.sha256()
    open_block: list[Rows] = []
    for piece in pieces:
        open_block += piece.head
        if piece.ended:
            whole.update(_digest(open_block))
            for digest in piece.digests:
                whole.update(digest)
            open_block = piece.tail
    if open_block:
        whole.update(_digest(open_block))
    return whole.hexdigest()


def _digest(parts: list[Rows]) -> bytes:
    block = hashlib.sha256()
    for column in (0, 1, 2):
        for part in parts:
            block.update(np.ascontiguousarray(part[column]).data)
    for part in parts:
        block.update(part[3])
    return block.digest()
