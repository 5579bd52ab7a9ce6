"""Hints: what in the events' times makes a figure of disorder say something else than how events travelled.

A clock that stood at 1970, a second unit in the column, an event two hours ahead: the figure stays as defined, and the
hint says which lines it is due to, and what it is without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: most lines that a hint lists
LISTED = 5
UNIT_NAMES = {"ps": "picoseconds", "ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


@dataclass(frozen=True)
class Place:
    """The beginning of a file: the seq of its first event, and the 1-based line of it."""

    file: str
    first_seq: int
    first_line: int


@dataclass(frozen=True)
class Skipped:
    """Events whose local time does not exist, as clocks were put forward: their number, and the first seqs."""

    events: int = 0
    seqs: tuple[int, ...] = ()

    def and_then(self, more: Skipped) -> Skipped:
        return Skipped(events=self.events + more.events, seqs=(*self.seqs, *more.seqs)[:LISTED])


NONE_SKIPPED = Skipped()


def named(lines: Sequence[tuple[str, int]], events: int, word: str, *, several: bool) -> str:
    """Words for the first lines, each with its file, of those that so many events have. several: of several files."""
    files = dict(lines)
    shown = [f"{n:,} of {file}" if several and len(files) > 1 else f"{n:,}" for file, n in lines]
    more = f" and {events - len(lines):,} more" if events > len(lines) else ""
    of = f" of {next(iter(files))}" if several and len(files) == 1 else ""
    return f"{word}{'' if events == 1 else 's'} {', '.join(shown)}{of}{more}"
