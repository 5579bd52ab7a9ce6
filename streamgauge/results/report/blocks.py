"""The blocks of a page, which sections build and the template only lays out, and the formatting of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from streamgauge.base.units import Tick, show_ticks
from streamgauge.records.claim import mark_of
from streamgauge.records.profile import Delays

State = Literal["good", "bad", "open", "plain"]
MISSING = "—"
#: a browser drops blanks and control characters before a scheme, so a link has none of them
_LINK = re.compile(r"https?://[^\s\x00-\x20\\]+|(?![/\\]{2})[^\s\x00-\x20:\\]+([/?#][^\s\x00-\x20\\]*)?", re.IGNORECASE)
_NUMERIC = re.compile(r"[-+−]?\d[\d.,\u202f]*([\u00a0\u202f ]\S{1,4})?$|—$")


@dataclass(frozen=True)
class Text:
    """A cell that is more than its text: a state (mark and colour), a link, or a monospaced value."""

    text: str
    state: State = "plain"
    href: str | None = None
    code: bool = False
    hint: str = ""
    id: str = ""


@dataclass(frozen=True)
class Spark:
    """A sparkline: values oldest first, None for a gap; marks: indices of values to mark."""

    values: tuple[float | None, ...]
    marks: tuple[int, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Polylines of 100 × 20 units, one for each stretch without a gap."""
        stretches: list[list[str]] = [[]]
        for number, value in enumerate(self.values):
            if value is None:
                stretches.append([])
            else:
                stretches[-1].append(self._at(number, value))
        return [" ".join(one) for one in stretches if one]

    @property
    def points(self) -> list[list[str]]:
        return [self._at(n, value).split(",") for n in self.marks if (value := self.values[n]) is not None]

    def _at(self, number: int, value: float) -> str:
        known = [one for one in self.values if one is not None]
        low, span = min(known), max(known) - min(known)
        x = 2 + 96 * number / max(1, len(self.values) - 1)
        return f"{x:.1f},{18 - 16 * ((value - low) / span if span else 0.5):.1f}"


def linked(href: str | None) -> bool:
    """True for a link within the pages, or to http or https; other schemes may run code or open files."""
    return href is not None and _LINK.fullmatch(href) is not None


Cell = str | int | float | None | Text | Spark


@dataclass(frozen=True)
class Table:
    """Rows under columns. cards: rows become cards on a phone. folded: if set, only this line is shown at first."""

    columns: list[str]
    rows: list[list[Cell]]
    caption: str = ""
    cards: bool = False
    folded: str = ""
    kind: str = "table"

    @property
    def numeric(self) -> list[bool]:
        """Flags of the columns: True if all cells are numbers, with or without a unit."""
        return [all(_NUMERIC.match(plain(row[i])) for row in self.rows) for i in range(len(self.columns))]


@dataclass(frozen=True)
class Chart:
    """A plotly figure (plain data) and a table of the same numbers."""

    title: str
    figure: dict[str, Any]
    table: Table
    note: str = ""
    kind: str = "chart"


@dataclass(frozen=True)
class Tiles:
    """A few figures in large type: (label, value, remark)."""

    tiles: list[tuple[str, str, str]]
    kind: str = "tiles"


@dataclass(frozen=True)
class Code:
    """Text for a program, such as a command, with a button that copies it. folded: as in Table."""

    text: str
    folded: str = ""
    kind: str = "code"


@dataclass(frozen=True)
class Note:
    text: str
    href: str | None = None
    kind: str = "note"


@dataclass(frozen=True)
class Hole:
    """A placeholder for something that is missing, with the reason."""

    what: str
    why: str
    kind: str = "hole"


Block = Table | Chart | Tiles | Code | Note | Hole


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    lead: str = ""
    blocks: list[Block] = field(default_factory=list)
    parts: list[Section] = field(default_factory=list)
    folded: str = ""
    """of a part: if set, all but its first block stand below this line, which a phone shows closed"""


@dataclass(frozen=True)
class Outcome:
    """The head of a page: a state, a sentence, and the problems."""

    state: State
    sentence: str
    problems: list[tuple[State, str, str]]  # state, what, reason


def plain(cell: Cell) -> str:
    """The text of a cell; of a sparkline, its first and last value."""
    if isinstance(cell, Spark):
        known = [one for one in cell.values if one is not None]
        return f"{number(known[0])} → {number(known[-1])}" if known else MISSING
    return MISSING if cell is None else cell.text if isinstance(cell, Text) else str(cell)


def attempt(what: str, make: Callable[..., Block], *args: Any, **more: Any) -> Block:
    """Returns what `make` builds, or a Hole if it fails: a damaged record must not cost the whole page."""
    try:
        return make(*args, **more)
    except Exception as problem:
        return Hole(what, f"the record is incomplete or damaged: {type(problem).__name__} {problem}")


# -- formatting of numbers


def count(value: float | None) -> str:
    """Formats as 1 234 567, with narrow no-break spaces."""
    return MISSING if value is None else f"{value:,.0f}".replace(",", "\u202f")


def number(value: float | None, unit: str = "") -> str:
    """Formats with four significant digits; from 1000 on like a count."""
    if value is None:
        return MISSING
    text = count(value) if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text}\u00a0{unit}" if unit else text


def marked(value: float | None, claim: str, unit: str = "") -> str:
    """The figure with its unit, and the mark of one in doubt before it."""
    return f"{mark_of(claim)} {number(value, unit)}".lstrip()


def between(interval: tuple[float | None, float | None]) -> str:
    """Formats both ends of an interval so that they stay on one line."""
    low, high = interval
    return MISSING if low is None or high is None else f"{number(low)}\u00a0–\u2060\u00a0{number(high)}"


def percent(part: float | None, whole: float | None) -> str:
    """Formats part ÷ whole in percent, with up to four decimals."""
    if part is None or not whole:
        return MISSING
    return f"{100 * part / whole:.4f}".rstrip("0").rstrip(".") + "\u202f%"


def share(fraction: float | None) -> str:
    return MISSING if fraction is None else f"{100 * fraction:g}\u202f%"


def seconds(value: float | None) -> str:
    if value is None:
        return MISSING
    if value < 120:
        return f"{value:.1f}\u00a0s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}\u00a0h {minutes:02d}\u00a0min" if hours else f"{minutes}\u00a0min {rest:02d}\u00a0s"


QUANTILES = ("min", "p50", "p90", "p99", "max", "mean")


def ticks(value: float | None, tick: Tick) -> str:
    return MISSING if value is None else show_ticks(value, tick)


def quantile_cells(delay: Delays, tick: Tick) -> list[Cell]:
    return [ticks(value, tick) for value in delay.values]


def sentence(delay: Delays, tick: Tick) -> str:
    if delay.max is None:
        return ""
    _, p50, p90, p99, largest, mean = quantile_cells(delay, tick)
    return f"Median {p50}, p90 {p90}, p99 {p99}, largest {largest}; mean {mean}."


def bin_rows(bins: Iterable[tuple[int, int, int]], tick: Tick, whole: int) -> list[list[Cell]]:
    """Turns bins [low, high, count] into table rows: from, to, events, share of `whole`."""
    return [
        [show_ticks(low, tick), show_ticks(high, tick), count(events), percent(events, whole)]
        for low, high, events in bins
    ]
