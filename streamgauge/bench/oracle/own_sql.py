"""Compares the answers that a user's own job has written with those of the user's SQL over the offered rows.

The SQL reads the table `events`: seq, event_time, event_ts, event_wall, offered_wall and the declared columns. It
yields the columns of an answer, and the largest event_wall and offered_wall among the events that contributed to it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from streamgauge.base.arrow import Ints
from streamgauge.base.errors import UserError
from streamgauge.base.words import counted
from streamgauge.bench.oracle.differences import APPENDED, ODD, Comparison, Differences
from streamgauge.bench.oracle.locked import limited, literal, locked, quoted

WALLS = ("event_wall", "offered_wall")
#: a column of the offered rows: true for those that the job took before the trial
EARLIER = "streamgauge_earlier"
#: another one: the partition of the row
PARTITION = "streamgauge_partition"
_OURS = f"sentinel, {EARLIER}, {PARTITION}"
_LATE, _ODD_KEY = "streamgauge_late", "streamgauge_odd_key"
_SHOWN = 120
_LOOK_S = 5.0
_ORDER = "order by offered_wall, seq rows between unbounded preceding and current row"
#: the table `events` without its declared columns
OFFERED = (
    "0::bigint as seq",
    "0::bigint as event_time",
    "now() as event_ts",
    "0::bigint as event_wall",
    "0::bigint as offered_wall",
)
#: types to which DuckDB rounds a number, and a type that keeps all of it
_ROUNDED = {
    **{f"{sign}{size}INT": "double" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")},
    **dict.fromkeys(("INTEGER", "UINTEGER"), "double"),
    "DATE": "timestamptz",
}
_SQL_TYPES = {"string": "varchar", "int64": "bigint", "float64": "double"}  # DuckDB's names, for declared columns


@dataclass
class OwnCheck:
    """Comparison of what came out with what was expected; `wrong` and `unchecked` say why in one line."""

    answers: int = 0
    duplicates: int = 0  # further rows of an answer that was there already
    expected_rows: int | None = None
    reported_rows: int | None = None  # without duplicates
    delivery: str | None = None  # exactly once, at least once
    wrong: str | None = None
    differences: Differences = field(default_factory=Differences)
    unchecked: str | None = None
    largest_delay_ms: float | None = None

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass
class Timed:
    """Append time and largest walls of an answer's contributors, ns, for each answer, in order of the append times."""

    appended: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    event_wall: Ints | None = None
    offered_wall: Ints | None = None


def tells_time(sql: str | None, key: Sequence[str], columns: Mapping[str, str]) -> bool:
    """True if a column of the key is a time of the event, such as a window: then answers to later loops differ.

    sql: over rows of these columns. A date is none, as events of many loops may share it.
    """
    kinds = dict.fromkeys(key, "")
    if sql is not None:
        names = [*OFFERED, *(f"null::{_SQL_TYPES.get(kind, kind)} as {quoted(name)}" for name, kind in columns.items())]
        with suppress(UserError), locked() as base:  # the first use of the SQL says what is wrong with it
            base.execute(f"create view events as select {', '.join(names)} limit 0")
            with limited(base, sql, _LOOK_S):
                described = base.execute(f"describe {sql}").fetchall()
            kinds |= {name: kind for name, kind, *_ in described}
    return any(name in ("event_time", "event_ts") or kinds[name].startswith("TIMESTAMP") for name in key)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns any other error of the database, such as that of a full disk, into a UserError."""
    try:
        yield
    except duckdb.Error as problem:
        raise UserError(f"the answers cannot be compared: {str(problem).splitlines()[0]}") from None


class Answers:
    """The values of an output topic, with the instants at which they were appended, and the offered rows."""

    def __init__(self, values: Sequence[bytes], appended_ns: Ints, events: pa.Table | None) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="streamgauge-duck-")
        self._base = locked(self._scratch.name)
        try:
            texts = pa.array(values, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:  # not all is UTF-8; the rest counts as garbage
            texts = pa.array([value.decode(errors="backslashreplace") for value in values], pa.string())
        self._base.register("given", pa.table({"value": texts, "appended": pa.array(appended_ns)}))
        self._base.execute("create table raw as select value, appended from given")
        if events is not None:
            self._base.register("offered", events)
            last = "coalesce(max(offered_wall), 0) as offered_wall"
            self._base.execute(f"create table marks as select {last} from offered where {EARLIER}")

    def close(self) -> None:
        self._base.close()
        self._scratch.cleanup()

    def garbage(self) -> str | None:
        """Tells of the first value that is no JSON object; None if all are."""
        row = self._base.execute(
            "select value from raw where not json_valid(value) or json_type(value) <> 'OBJECT' limit 1"
        ).fetchone()
        return None if row is None else f"an answer is no JSON object: {str(row[0])[:_SHOWN]!r}"

    def counted(self) -> Timed:
        """Instants of all answers, without their contributors."""
        return Timed(self._ints("select appended from raw order by appended")[0])

    def carried(self, columns: dict[str, str]) -> Timed:
        """Walls that the answers carry, but for the sentinel's and earlier rows'. Raises UserError if one has none."""
        picked = ", ".join(f"try_cast({_at(columns[wall])} as bigint) as {wall}" for wall in WALLS)
        self._base.execute(f"create or replace table timed as select {picked}, appended, value from raw")
        odd = self._base.execute("select value from timed where event_wall is null or offered_wall is null").fetchone()
        if odd is not None:
            names = " and ".join(dict.fromkeys(columns[wall] for wall in WALLS))
            raise UserError(f"answer.carried: an answer has no whole number in {names}: {str(odd[0])[:_SHOWN]}")
        return self._timed(
            f"timed where event_wall not in (select offered_wall from offered where sentinel or {EARLIER})"
        )

    def compare(self, sql: str, key: Sequence[str], lateness_ms: float | None) -> tuple[OwnCheck, Timed]:
        """Compares with the SQL's answer; the timed answers are the first of each key. Raises UserError for bad SQL."""
        plain = f"create or replace view events as select * exclude ({_OURS}) from offered"
        self._base.execute(f"{plain} where not sentinel")
        columns = self._asked(sql, "expected")
        names = [name for name in columns if name not in WALLS]
        if not names:
            raise UserError("answer.sql: needs a column of the answers, beside those of the contributors")
        for name in key:
            if name not in names:
                raise UserError(f"answer.key: found {name!r}, allowed: {', '.join(names)} (columns of answer.sql)")
        outcome = OwnCheck()
        if missing := self._missing(names):
            raise UserError(f"answer.sql: the job's answers have no {missing[0]!r}, but {missing[1]}")
        key = list(key) or names
        # what the sentinel alone answers is none of the stream's answers
        self._base.execute(f"{plain} where sentinel")
        self._asked(sql, "of_sentinel")
        values = {name: _value(name, columns[name]) for name in names}
        cast = ", ".join(f"{value} as {quoted(name)}" for name, value in values.items())
        odds = {
            name: f"case when {value} is null then {literal(f' ({name} is ')} || {_at(name)} || ')' end"
            for name, value in values.items()
        }
        odd, odd_key = f"coalesce({', '.join(odds.values())})", f"coalesce({', '.join(odds[name] for name in key)})"
        same = " and ".join(f"e.{quoted(name)} is not distinct from a.{quoted(name)}" for name in key)
        self._base.execute(
            f"create table typed as select {cast}, {odd} as {ODD}, {odd_key} is not null as {_ODD_KEY}, "
            f"appended as {APPENDED} from raw"
        )
        self._base.execute(
            f"create table mine as from typed a where {_ODD_KEY} or exists (from expected e where {same})"
            f" or not exists (from of_sentinel e where {same})"
        )
        every = ", ".join(map(quoted, names))
        self._base.execute(
            "create table firsts as from mine "
            f"qualify row_number() over (partition by {every}, {ODD} order by {APPENDED}) = 1"
        )
        outcome.answers = self._count("from mine")
        outcome.expected_rows = self._count("from expected")
        copies = self._count(f"select distinct {every} from expected")
        if copies != outcome.expected_rows:
            raise UserError("answer.sql: its answer has equal rows, so duplicates cannot be seen; add a column")
        if self._count(f"select distinct {', '.join(map(quoted, key))} from expected") != outcome.expected_rows:
            raise UserError("answer.key: right answers share a key; name all columns that tell answers apart")
        outcome.reported_rows = self._count("from firsts")
        outcome.duplicates = outcome.answers - outcome.reported_rows
        outcome.delivery = "exactly once" if not outcome.duplicates else "at least once"
        outcome.largest_delay_ms = self._largest_delay()
        if lateness_ms is not None and outcome.largest_delay_ms > lateness_ms:
            outcome.unchecked = (
                f"an event is {outcome.largest_delay_ms / 1000:g} s late, and the job may drop what is later than "
                f"{lateness_ms / 1000:g} s: its answers are not compared"
            )
        else:
            kinds = {name: columns[name] for name in names}
            outcome.differences = Comparison(self._base, kinds, key).differences(self._late(plain, sql))
            if outcome.differences.each:
                rows = f"{counted(outcome.reported_rows, 'row')}, {outcome.expected_rows} expected"
                outcome.wrong = f"output wrong: {rows}; {outcome.differences.in_words()}"
        self._base.execute(
            f"create or replace table timed as select e.event_wall, e.offered_wall, min(a.{APPENDED}) as appended "
            f"from firsts a join expected e on {same} group by e.event_wall, e.offered_wall, {self._of('e', key)}"
        )
        # an answer is timed unless only rows from before the trial contributed to it
        return outcome, self._timed("timed where offered_wall > (select max(offered_wall) from marks)")

    def _late(self, plain: str, sql: str) -> str | None:
        """Makes `events` of those that came out of order alone; returns the SQL over them, None if there are none."""
        late = f"select *, epoch_us(event_ts) < max(epoch_us(event_ts)) over ({_ORDER}) as {_LATE} from offered"
        plain = plain.replace("from offered", f"from ({late} where not sentinel)").replace(_OURS, f"{_OURS}, {_LATE}")
        self._base.execute(f"{plain} where {_LATE}")
        return sql if self._count("from events") else None

    def _asked(self, sql: str, table: str) -> dict[str, str]:
        """Makes a table of the SQL's answer; returns its columns with their types."""
        with limited(self._base, sql):
            self._base.execute(f"create or replace table {table} as {sql}")
        columns = {name: kind for name, kind, *_ in self._base.execute(f"describe {table}").fetchall()}
        for wall in WALLS:
            if columns.get(wall) != "BIGINT":
                raise UserError(f"answer.sql: needs a bigint column {wall}: the largest among the answer's events")
        return columns

    def _missing(self, names: Sequence[str]) -> tuple[str, str] | None:
        """The first column that no answer has, and those that the first answer has."""
        first = self._base.execute("select list_sort(json_keys(value)) from raw limit 1").fetchone()
        if first is None:
            return None
        for name in names:
            if not self._count(f"from raw where list_contains(json_keys(value), {literal(name)}) limit 1"):
                return name, ", ".join(first[0])
        return None

    def _largest_delay(self) -> float:
        """Largest delay of an event behind the running maximum, in the order of offering, ms of the stream."""
        row = self._base.execute(
            "select max(latest - own) from (select epoch_us(event_ts) as own, max(epoch_us(event_ts)) over "
            f"({_ORDER}) as latest "
            "from offered where not sentinel)"
        ).fetchone()
        return float(row[0] or 0) / 1000 if row else 0.0

    def _timed(self, table: str) -> Timed:
        appended, event_wall, offered_wall = self._ints(
            f"select appended, event_wall, offered_wall from {table} order by appended"
        )
        return Timed(appended, event_wall, offered_wall)

    def _ints(self, sql: str) -> list[Ints]:
        return [np.asarray(column, np.int64) for column in self._base.execute(sql).fetchnumpy().values()]

    def _count(self, sql: str) -> int:
        row = self._base.execute(f"select count(*) from ({sql})").fetchone()
        return int(row[0]) if row else 0

    @staticmethod
    def _of(table: str, names: Sequence[str]) -> str:
        return ", ".join(f"{table}.{quoted(name)}" for name in names)


def _value(name: str, kind: str) -> str:
    """An answer's column as that type; null for a text that is none, or that the type would round or cut."""
    if kind == "TIMESTAMP":  # by itself DuckDB leaves out the offset of a text
        return f"try_cast(try_cast({_at(name)} as timestamptz) as timestamp)"
    value, whole = f"try_cast({_at(name)} as {kind})", _ROUNDED.get(kind)
    return value if whole is None else f"case when try_cast({_at(name)} as {whole}) = {value}::{whole} then {value} end"


def _at(name: str) -> str:
    return f"json_extract_string(value, {literal('$.' + quoted(name))})"
