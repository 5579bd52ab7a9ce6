"""Describes a query apart from its code: how it is asked, what it reads, when it drops, how its answers compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Rule:
    """Rule by which an answer is compared with the oracle's, by number and hash of its rows.

    exact compares all rows. last per key compares, of rows with equal key, the one with the largest `by`, without the
    column revision. bounded is exact, for a query that was bounded in time. invariant compares sums of `by` per key.
    """

    kind: Literal["exact", "last per key", "bounded", "invariant"] = "exact"
    key: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query:
    name: str
    title: str
    asks: str
    contributors: str  # whose latest time a result row's latency counts from
    _: KW_ONLY
    needs: tuple[str, ...] = ()
    streams: int = 1  # frames that it takes, each the whole stream
    late: Literal["never", "window", "event", "session"] = "window"  # when an event is dropped: see oracle/late_rows.py
    # for each frame, the columns by which it groups, besides the window; none: key
    groups: tuple[tuple[str, ...], ...] = ()
    slides: bool = False  # may have sliding windows
    spans: int = 1  # length of the engine's windows, in windows of the query
    needs_watermark: bool = False  # its watermark delay must be at least its window
    marked: str = ""  # what the events of the second kind are
    line: bool = False  # it passes the whole line on
    columns: tuple[str, ...] = ()  # columns of the source that it reads, besides key and value
    # for each frame, the rows that it reads, as column -> values; none: all
    reads: tuple[Mapping[str, tuple[Any, ...]], ...] = ()
    lag: int = 0  # by how many windows an engine's watermark may lie behind at its last operator
    multiple: int = 0  # the largest multiple of a bid's price that it forms in 64 bits
    rule: Rule = Rule()
    features: tuple[str, ...] = ()
    differs: str = ""  # how it differs from the question as it is asked elsewhere

    def counts(self, value: str | None) -> bool:
        """True if it calculates with the value, which must then be a number."""
        return value is not None and "value" in self.needs and "mark" not in self.needs
