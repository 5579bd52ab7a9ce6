"""Finds how a job's answers differ from the right ones: how many, an example side by side, and the likely cause.

It reads the tables of `own_sql.Answers`: expected, firsts (the job's answers without copies), marks and offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import duckdb

from streamgauge.bench.oracle.locked import limited, quoted

Kind = Literal["missing", "with other values", "in excess"]
Cause = Literal["warm-up", "updates", "sentinel", "late", "last"]
#: what may have happened, by the signs that `Comparison` looks for
CAUSES: dict[Cause, str] = {
    "warm-up": "the job answered what came before the trial and nothing of the trial: does it remember ids that "
    "replay.ids does not name?",
    "updates": "the job revises its answers: it must write only the last one of each key, or answer.key is too short",
    "sentinel": "the job answers the sentinel, whose time is far in the future, in another way than answer.sql",
    "late": "an event came out of order in each of them: the job drops what is late; answer.lateness or answer.grace "
    "says from when it may",
    "last": "they are the last ones: the sentinel did not close the job's last windows, so the job ignores it or its "
    "time; the key sentinel sets its values",
}
#: a column of the job's answers: what they have that is no value of its column's type
ODD = "streamgauge_odd"
#: another one: when the broker took the answer
APPENDED = "streamgauge_appended"
_SHOWN = 120


@dataclass(frozen=True)
class Difference:
    """The number of answers that differ in one way, and the first of them: an expected one and the actual one."""

    kind: Kind
    before_trial: bool  # true for answers to what the job took before the trial, such as its warm-up
    answers: int
    expected: str | None
    actual: str | None

    def in_words(self) -> str:
        where = " before the trial" if self.before_trial else ""
        said = f"expected {self.expected or 'none'}, found {self.actual or 'none'}"
        return f"{self.answers:,} {self.kind}{where}, such as: {said}"


@dataclass(frozen=True)
class Differences:
    """Differences of a trial, those of the trial itself first, and the likely cause where it can be seen."""

    each: tuple[Difference, ...] = ()
    cause: Cause | None = None

    def in_words(self) -> str:
        """Returns them in one line."""
        return "; ".join([*(one.in_words() for one in self.each), *([CAUSES[self.cause]] if self.cause else [])])


class Comparison:
    """A comparison of the answers. kinds: types of their columns; key: columns by which answers are paired."""

    def __init__(self, base: duckdb.DuckDBPyConnection, kinds: Mapping[str, str], key: Sequence[str]) -> None:
        self._base, self._kinds, self._key = base, kinds, key
        same = _same("e", "a", kinds)
        lacks = f"from expected e where not exists (from firsts a where {same} and a.{ODD} is null)"
        has = f"from firsts e where e.{ODD} is not null or not exists (from expected a where {same})"
        base.execute(f"create or replace table lacks as {lacks}")
        base.execute(f"create or replace table has as {has}")
        expected, actual = _shown("e", kinds), f"{_shown('a', kinds)} || coalesce(a.{ODD}, '')"
        before = (
            "coalesce(e.offered_wall <= (select offered_wall from marks), "
            f"a.{APPENDED} < (select min(offered_wall) from offered where not streamgauge_earlier))"
        )
        base.execute(
            f"create or replace table pairs as select case when a.{APPENDED} is null then 'missing' "
            "when e.offered_wall is null then 'in excess' else 'with other values' end as kind, "
            f"{before} as before_trial, "
            f"case when e.offered_wall is not null then {expected} end as expected, "
            f"case when a.{APPENDED} is not null then {actual} end as actual, e.event_wall, "
            f"from lacks e full join has a on {_same('e', 'a', key)}"
        )

    def differences(self, late_sql: str | None) -> Differences:
        """Finds the differences. late_sql: asks for the answers to late events alone."""
        rows = self._base.execute(
            "select kind, before_trial, count(*), min_by(expected, event_wall), "
            "min_by(actual, coalesce(event_wall, 0)) from pairs group by all order by before_trial, kind desc"
        ).fetchall()
        if not rows:
            return Differences()
        each = [Difference(kind, before, count, *_cut(one, other)) for kind, before, count, one, other in rows]
        return Differences(tuple(each), self._cause(late_sql))

    def _cause(self, late_sql: str | None) -> Cause | None:
        every, key = _same("e", "a", self._kinds), _same("e", "a", self._key)
        none_of_trial = (
            "count(*) filter (kind = 'missing' and not before_trial) = (select count(*) from expected "
            "where offered_wall > (select offered_wall from marks))"
        )
        if self._is(f"select {none_of_trial} and count(*) = (select count(*) from lacks) from pairs") and self._is(
            "select count(*) > 0 from firsts"
        ):
            return "warm-up"
        others = f"from firsts e where {key} and not ({every})"
        if self._is(f"select count(*) > 0 from has a where exists ({others})"):
            return "updates"
        if self._is("select count(*) = 0 from lacks"):
            return "sentinel" if self._is(f"select bool_and({self._far()}) from has") else None
        right = f"from expected e where not exists (from lacks a where {every})"
        if self._is(
            f"select min(event_wall) > (select max(e.event_wall) {right}) and (select count(*) = 0 from has) from lacks"
        ):
            return "last"
        if late_sql is not None and self._late(late_sql):
            return "late"
        return "last" if self._last_of_each(right) else None

    def _last_of_each(self, right: str) -> bool:
        """True if what is missing comes after the right answers that differ from it in time alone.

        Partitions end at times of their own. right: the expected answers that are there.
        """
        same = _same("l", "e", [name for name in self._key if not _is_time(name, self._kinds[name])])
        earlier = f"exists ({right} and {same or True})"
        later = f"exists ({right} and {same or True} and e.event_wall >= l.event_wall)"
        return self._is(
            f"select not bool_or({later}) and 2 * count(*) filter ({earlier}) > count(*) "
            "and (select count(*) = 0 from has) from lacks l"
        )

    def _late(self, sql: str) -> bool:
        """True if each missing answer has a late event, not each expected one has, and each excess one has its pair."""
        with limited(self._base, sql):
            self._base.execute(f"create or replace table of_late as {sql}")
        same = _same("e", "a", self._key)
        return self._is(
            f"select bool_and(exists (from of_late e where {same})) and (select count(*) from of_late) < "
            f"(select count(*) from expected) from lacks a"
        ) and self._is(f"select count(*) = 0 from has a where not exists (from lacks e where {same})")

    def _far(self) -> str:
        """Condition that a column is null, or later in time, as it is in no expected answer."""
        each = [
            f"({quoted(name)} is null and not exists (from expected e where e.{quoted(name)} is null))"
            + (f" or {quoted(name)} > (select max({quoted(name)}) from expected)" if _is_time(name, kind) else "")
            for name, kind in self._kinds.items()
        ]
        return " or ".join(each)

    def _is(self, sql: str) -> bool:
        row = self._base.execute(sql).fetchone()
        return bool(row and row[0])


def _same(one: str, other: str, names: Sequence[str] | Mapping[str, str]) -> str:
    return " and ".join(f"{one}.{quoted(name)} is not distinct from {other}.{quoted(name)}" for name in names)


def _shown(table: str, names: Mapping[str, str]) -> str:
    """Expression of the row as text, such as `key=a n=2`."""
    return " || ' ' || ".join(
        f"'{name.replace(chr(39), chr(39) * 2)}=' || coalesce({table}.{quoted(name)}::varchar, 'null')"
        for name in names
    )


def _is_time(name: str, kind: str) -> bool:
    return name == "event_time" or kind.startswith(("TIMESTAMP", "DATE"))


def _cut(one: str | None, other: str | None) -> tuple[str | None, str | None]:
    """Cuts both texts at their end, or around their first difference where that lies further back."""
    same = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(one or "", other or "", strict=False)))
    first = same - _SHOWN // 3 if same > _SHOWN * 2 // 3 else 0

    def cut(text: str) -> str:
        return "…" * (first > 0) + text[first : first + _SHOWN] + "…" * (len(text) > first + _SHOWN)

    return one and cut(one), other and cut(other)
