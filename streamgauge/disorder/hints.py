"""Hints: what in the events' times makes a figure of disorder say something else than how events travelled.

A clock that stood at 1970, a second unit in the column, an event two hours ahead: the figure stays as defined, and the
hint says which lines it is due to, and what it is without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

Kind = Literal[
    "beyond_range",  # times that 64 bits do not hold, such as the year 9999
    "two_units",  # a column has times of two units
    "unit",  # the whole column has another unit
    "clock_at_1970",  # a clock that was not set, or zero for none
    "far_behind",  # few events, years before all others
    "far_ahead",  # few events, years after all others
    "ahead",  # a few events, after which many are late
    "newest_first",  # the file begins with its latest event
    "hour_twice",  # local times of the hour that a zone has twice
    "hour_skipped",  # local times of the hour that a zone does not have
    "constant_time",  # all events at one instant
    "whole_days",  # dates without a time of day
]


#: most lines that a hint lists
LISTED = 5
UNIT_NAMES = {"ps": "picoseconds", "ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


class Hint(BaseModel):
    """A peculiarity of some events' times."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    text: str
    lines: tuple[int, ...] = ()
    """1-based lines (rows of Parquet) of the first events that it is about"""
    files: tuple[str, ...] = ()
    """the file of each line, where the source has several"""
    events: int
    """number of events that it is about"""
    without: int | None = None
    """events out of order when these, and those of the hints before, are left out"""
    part: str | None = None
    """the part of the stream that it is about; none: all of it"""


class Place(BaseModel):
    """The beginning of a file: the seq of its first event, and the 1-based line of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    first_seq: int
    first_line: int


class Skipped(BaseModel):
    """Events whose local time does not exist, as clocks were put forward: their number, and the first seqs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: int = 0
    seqs: tuple[int, ...] = ()

    def and_then(self, more: Skipped) -> Skipped:
        return Skipped(events=self.events + more.events, seqs=(*self.seqs, *more.seqs)[:LISTED])


NONE_SKIPPED = Skipped()


class InFile(BaseModel):
    """Disorder of the events as they are in their files, whatever order they are given afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: int
    out_of_order: int
    hints: tuple[Hint, ...] = ()


def named(lines: Sequence[tuple[str, int]], events: int, word: str, *, several: bool) -> str:
    """Words for the first lines, each with its file, of those that so many events have. several: of several files."""
    files = dict(lines)
    shown = [f"{n:,} of {file}" if several and len(files) > 1 else f"{n:,}" for file, n in lines]
    more = f" and {events - len(lines):,} more" if events > len(lines) else ""
    of = f" of {next(iter(files))}" if several and len(files) == 1 else ""
    return f"{word}{'' if events == 1 else 's'} {', '.join(shown)}{more}{of}"
