"""Describes a query apart from its code: how it is asked, what it reads, when it drops, how its answers compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib.resources import files
from typing import Literal

from streamgauge.base.errors import UserError

#: columns that the oracle and Flink's SQL make of the workload's key and value
_MADE = {"key", "value", "number", "marked"}


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
    reads: tuple[Mapping[str, tuple[str | int, ...]], ...] = ()
    # for each frame, by how many windows an engine's watermark may lie behind at the operator that takes it
    lags: tuple[int, ...] = ()
    groups_first: bool = False  # events are grouped before late ones are dropped
    own_state: bool = False  # its state is kept by code (Spark's transformWithState), not by an operator of the engine
    of_winners: bool = False  # its question is about the winning bid of each auction
    by_clock: bool = False  # its windows are those of the engine's clock
    by_day: bool = False  # its windows are days, as its question says
    to_files: bool = False  # its answer is a folder of files
    multiple: int = 0  # the largest multiple of a bid's price that it forms in 64 bits
    rule: Rule = Rule()
    features: tuple[str, ...] = ()
    differs: str = ""  # how it differs from the question as it is asked elsewhere
    # of a query that a package registers: the package that holds its texts, the file of its question, and by engine its
    # code, which is package.module:function for Spark and a file of SQL for Flink
    package: str = "streamgauge.bench.workloads"
    question: str = ""
    code: Mapping[str, str] = field(default_factory=dict)
    results: tuple[str, ...] = ()  # columns of its answer, besides the wall times

    def __post_init__(self) -> None:
        if not self.reads and (clash := _MADE & set(self.columns)):
            raise ValueError(f"{self.name}: columns: found {min(clash)}, which is made of the workload's key or value")

    def asked(self) -> str:
        """Reads the question in SQL, with its parameters in braces."""
        return self.text(self.question or f"{self.name.replace('.', '/')}.sql")

    def text(self, file: str) -> str:
        """Reads a text of the package that holds the query. Raises UserError if there is none."""
        try:
            return files(self.package).joinpath(file).read_text(encoding="utf-8")
        except (OSError, ImportError) as problem:
            raise UserError(f"query {self.name}: the package {self.package} has no text {file}: {problem}") from None

    def code_for(self, engine: str, built_in: str) -> str:
        """Returns where an engine finds its code; built_in: for a query of this project. Raises UserError for none."""
        if not self.question:
            return built_in
        if engine not in self.code:
            others = ", ".join(self.code) or "none"
            raise UserError(f"query {self.name}: {self.package} has code for {others}, and not for {engine}")
        return self.code[engine]

    def counts(self, value: str | None) -> bool:
        """True if the query calculates with the value, which must then be a number."""
        return value is not None and "value" in self.needs and "mark" not in self.needs
