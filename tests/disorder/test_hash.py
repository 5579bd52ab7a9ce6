"""The stream's hash does not depend on how the rows were cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.streams.disorder.hash import StreamHash, join

N = 20_000
RNG = np.random.default_rng(7)
INGESTION, SEQ, TIME = RNG.integers(0, 99, N), RNG.permutation(N), RNG.integers(-99, 99, N)
LINE = pa.array([b"x" * int(n) + b"\n" for n in RNG.integers(0, 9, N)], pa.binary())


def hash_of(cuts: list[int], pieces: int) -> str:
    """Chunks at the cuts, dealt to some pieces."""
    borders = sorted({0, N, *cuts})
    chunks = list(pairwise(borders))
    found = []
    for i in range(pieces):
        piece = StreamHash()
        for a, b in chunks[len(chunks) * i // pieces : len(chunks) * (i + 1) // pieces]:
            piece.add(INGESTION[a:b], SEQ[a:b], TIME[a:b], LINE.slice(a, b - a))
        found.append(piece)
    return join(found)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, N), max_size=12), st.integers(1, 5))
def test_any_cut_gives_the_same_hash(cuts: list[int], pieces: int) -> None:
    assert hash_of(cuts, pieces) == hash_of([], 1)


def test_any_change_gives_another() -> None:
    def changed(column: int) -> str:
        columns = [INGESTION.copy(), SEQ.copy(), TIME.copy()]
        columns[column][N // 2] += 1
        piece = StreamHash()
        ingestion, seq, time = columns
        piece.add(ingestion, seq, time, LINE)
        return join([piece])

    assert len({hash_of([], 1), changed(0), changed(1), changed(2)}) == 4
