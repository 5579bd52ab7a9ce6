"""Names the columns that are ids in a trial, and its round. Systems need no more; ids.py changes the values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Marking:
    """The columns that are ids in a trial, and the number of its round. A round of 0 has the values of the stream."""

    columns: tuple[str, ...] = ()
    round: int = 0


UNMARKED = Marking()
