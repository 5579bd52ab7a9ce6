"""Times that are looked at for hints, in blocks and as a file, and a count of late ones by brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from streamgauge.config import TimeColumn
from streamgauge.records.profile import InFile
from streamgauge.streams.disorder.blocks import Blocks
from streamgauge.streams.disorder.definitions import BEFORE_ALL
from streamgauge.streams.disorder.hints import Place
from streamgauge.streams.disorder.looking import Origin, in_file
from streamgauge.streams.disorder.row_groups import RowGroup

NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
NOW = 1_767_225_600  # 2026-01-01
DAY = 86_400


def blocks(times: list[int], sizes: list[int] | None = None) -> Blocks:
    """The times, in blocks of those sizes in turn."""
    array, seqs = np.array(times, np.int64), np.arange(len(times))
    if not sizes:
        return Blocks.of(array, seqs)
    cuts, before = [0], BEFORE_ALL
    while cuts[-1] < len(times):
        cuts.append(min(len(times), cuts[-1] + sizes[(len(cuts) - 1) % len(sizes)]))
    extents: list[RowGroup] = []
    for low, high in pairwise(cuts):
        part = array[low:high]
        extents.append(RowGroup("", len(extents), high - low, int(part.min()), int(part.max()), before))
        before = max(before, int(part.max()))
    return Blocks(
        extents,
        lambda k: array[cuts[k] : cuts[k + 1]],
        lambda k: seqs[cuts[k] : cuts[k + 1]],
        lambda work, numbers: [work(k) for k in numbers],
    )


def look(times: list[int], sizes: list[int] | None = None, unit: Any = "s", **time: Any) -> InFile:
    """The times are numbers of the unit, in a file with a header."""
    column = TimeColumn(column="t", **(time or {"unit": unit}))
    places = (Place(file="f.csv", first_seq=0, first_line=2),)
    return in_file(blocks([at * NS[unit] for at in times], sizes), Origin("ns", column, places))


def late(times: list[int]) -> int:
    """Number of times below one before them."""
    return sum(any(earlier > time for earlier in times[:n]) for n, time in enumerate(times))
