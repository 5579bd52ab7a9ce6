"""Counts and cuts blocks of lines."""

from __future__ import annotations

import numpy as np


def line_count(data: bytes) -> int:
    """Number of lines; the last one may lack its end."""
    return data.count(b"\n") + (data[-1:] not in (b"\n", b""))


def first_lines(data: bytes, count: int) -> bytes:
    """Returns the first `count` lines of data, which must hold as many."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    return data[: int(ends[count - 1]) + 1]
