"""The blocks of a page, which sections build and the template only lays out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from streamgauge.results.report.formatting import MISSING, number

State = Literal["good", "bad", "open", "plain"]
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
        for place, value in enumerate(self.values):
            if value is None:
                stretches.append([])
            else:
                stretches[-1].append(self._at(place, value))
        return [" ".join(one) for one in stretches if one]

    @property
    def points(self) -> list[list[str]]:
        return [self._at(n, value).split(",") for n in self.marks if (value := self.values[n]) is not None]

    def _at(self, place: int, value: float) -> str:
        known = [one for one in self.values if one is not None]
        low, span = min(known), max(known) - min(known)
        x = 2 + 96 * place / max(1, len(self.values) - 1)
        return f"{x:.1f},{18 - 16 * ((value - low) / span if span else 0.5):.1f}"


def linked(href: str | None) -> bool:
    """True for a link within the pages, or to http or https; other schemes may run code or open files."""
    return href is not None and _LINK.fullmatch(href) is not None


Cell = str | int | float | None | Text | Spark
#: column -> its cell in a row
Row = Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """Rows under columns. cards: rows become cards on a phone. folded: if set, only this line is shown at first."""

    columns: list[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    cards: bool = False
    folded: str = ""
    kind: str = "table"

    @classmethod
    def of(cls, rows: Sequence[Row], caption: str = "", *, cards: bool = False, folded: str = "") -> Table:
        """Table of rows that name the column of each cell, all the same ones; without a row it has no column."""
        columns = list(rows[0]) if rows else []
        return cls(columns, [[row[name] for name in columns] for row in rows], caption, cards, folded)

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
    folded: str = ""  # of a part: if set, all but its first block stand below this line, which a phone shows closed


@dataclass(frozen=True)
class Outcome:
    """The head of a page: a state, a sentence, and the problems."""

    state: State
    sentence: str
    problems: list[tuple[State, str, str]]  # state, what, reason


def blocks_in(sections: Iterable[Section]) -> Iterator[tuple[Section, Block]]:
    """Yields all blocks in the order of the page, each with the section or part in which it stands."""
    for section in sections:
        yield from ((section, block) for block in section.blocks)
        yield from blocks_in(section.parts)


def plain(cell: Cell) -> str:
    """The text of a cell; of a sparkline, its first and last value."""
    if isinstance(cell, Spark):
        known = [one for one in cell.values if one is not None]
        return f"{number(known[0])} → {number(known[-1])}" if known else MISSING
    return MISSING if cell is None else cell.text if isinstance(cell, Text) else str(cell)


def attempt(what: str, make: Callable[..., Block], *args: Any, **more: Any) -> Block:
    """Returns what `make` builds, or a Hole if it fails: a damaged record must not cost the whole page."""
    [block] = attempt_all(what, make, *args, **more)
    return block


def attempt_all(what: str, make: Callable[..., Block | list[Block]], *args: Any, **more: Any) -> list[Block]:
    """Returns the block or blocks that `make` builds, or one Hole if it fails."""
    try:
        made = make(*args, **more)
    except Exception as problem:
        made = Hole(what, f"the record is incomplete or damaged: {type(problem).__name__} {problem}")
    return made if isinstance(made, list) else [made]
