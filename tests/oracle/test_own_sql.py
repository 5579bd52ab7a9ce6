"""Answers of a user's own job against the user's SQL: inline rows in, whole verdicts out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.oracle import locked
from streamgauge.bench.oracle.differences import Difference, Differences
from streamgauge.bench.oracle.own_sql import EARLIER, PARTITION, Answers, OwnCheck, tells_time

SQL = """
select key, count(*) as n, max(event_wall) as event_wall, max(offered_wall) as offered_wall from events group by key
"""
S = 1_000_000  # µs


def offered(*rows: tuple[str | None, int, int, str]) -> pa.Table:
    """(key, event time in s, offered_wall, kind); the event_wall is one less."""
    kinds = [row[3] for row in rows]
    return pa.table(
        {
            "seq": list(range(len(rows))),
            "event_time": [row[1] for row in rows],
            "event_ts": pa.array([row[1] * S for row in rows], pa.timestamp("us", "UTC")),
            "offered_wall": [row[2] for row in rows],
            "event_wall": [row[2] - 1 for row in rows],
            "sentinel": [kind == "sentinel" for kind in kinds],
            EARLIER: [kind == "warm" for kind in kinds],
            PARTITION: [0 for _ in kinds],
            "key": pa.array([row[0] for row in rows], pa.string()),
        }
    )


ORDERED = offered(("b", 9, 100, ""), ("a", 10, 110, ""), ("a", 11, 120, ""), (None, 99, 130, "sentinel"))
EVENTS = offered(("a", 10, 100, ""), ("b", 11, 110, ""), ("a", 9, 120, ""), (None, 99, 130, "sentinel"))


@pytest.fixture
def made() -> Iterator[list[Answers]]:
    kept: list[Answers] = []
    yield kept
    for one in kept:
        one.close()


def answers(made: list[Answers], *given: object, events: pa.Table = EVENTS) -> Answers:
    texts = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in given]
    made.append(Answers(texts, np.arange(1000, 1000 + len(texts), dtype=np.int64), events))
    return made[-1]


A, B = {"key": "a", "n": 2}, {"key": "b", "n": 1}


def test_right_answers_are_timed_by_their_largest_contributors(made: list[Answers]) -> None:
    found, timed = answers(made, B, A).compare(SQL, ["key"], None)
    assert found == OwnCheck(
        answers=2, expected_rows=2, reported_rows=2, delivery="exactly once", largest_delay_ms=2000.0
    )
    assert timed.appended.tolist() == [1000, 1001]
    assert timed.event_wall is not None
    assert timed.event_wall.tolist() == [109, 119]
    assert timed.offered_wall is not None
    assert timed.offered_wall.tolist() == [110, 120]


def test_copies_are_duplicates_and_the_first_one_is_timed(made: list[Answers]) -> None:
    found, timed = answers(made, A, B, A, A).compare(SQL, ["key"], None)
    assert (found.wrong, found.duplicates, found.delivery) == (None, 2, "at least once")
    assert timed.appended.tolist() == [1000, 1001]


def test_what_the_sentinel_answers_does_not_count(made: list[Answers]) -> None:
    found, _ = answers(made, A, B, {"key": None, "n": 1}).compare(SQL, ["key"], None)
    assert (found.answers, found.wrong) == (2, None)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ([A], "output wrong: 1 row, 2 expected; 1 missing, such as: expected key=b n=1, found none"),
        (
            [A, B, {"key": "c", "n": 1}],
            "output wrong: 3 rows, 2 expected; 1 in excess, such as: expected none, found key=c n=1",
        ),
        (
            [A, {"key": "b", "n": 7}],
            "output wrong: 2 rows, 2 expected; 1 with other values, such as: expected key=b n=1, found key=b n=7",
        ),
        (
            [A, {"key": "b", "n": "x"}],
            "output wrong: 2 rows, 2 expected; 1 with other values, such as: expected key=b n=1, found key=b n=null "
            "(n is x)",
        ),
        (
            [A, {"key": "b", "n": 1.4}],
            "output wrong: 2 rows, 2 expected; 1 with other values, such as: expected key=b n=1, found key=b n=null "
            "(n is 1.4)",
        ),
    ],
    ids=["missing", "in excess", "another value", "another type", "a value that the type would round"],
)
def test_wrong_answers_are_told_with_an_example(made: list[Answers], given: list[object], wrong: str) -> None:
    assert answers(made, *given, events=ORDERED).compare(SQL, ["key"], None)[0].wrong == wrong


@pytest.mark.parametrize(
    ("asked", "given", "is_right"),
    [
        ("3::bigint", 3, True), ("3::bigint", "3", True), ("3::bigint", 3.0, True), ("3::bigint", 2.6, False),
        ("3::integer", "3.49", False), ("null::bigint", None, True), ("null::bigint", "garbage", False),
        ("date '2013-01-01'", "2013-01-01", True), ("date '2013-01-01'", "2013-01-01T17:00:00", False),
        ("null::timestamp", 1357016400000, False), ("6.25::decimal(10, 2)", 6.2549, True), ("0.5", 0.5, True),
        ("sum(x) from (values (0.1::double), (0.2), (0.3)) t(x)", 0.6, False),
        ("sum(x)::decimal(18, 3) from (values (0.1::double), (0.2), (0.3)) t(x)", 0.6, True),
        ("timestamp '2013-01-01 05:00'", "2013-01-01T05:00:00", True),
        ("timestamp '2013-01-01 05:00'", "2013-01-01T07:00:00+02:00", True),
        ("timestamp '2013-01-01 05:00'", "2013-01-01T05:00:00+02:00", False),
        ("date '2013-01-01'", "2013-01-01T00:00:00+02:00", False),
    ],
)  # fmt: skip
def test_a_value_is_that_of_the_column_s_type_and_no_other_that_it_would_be_rounded_to(
    made: list[Answers], asked: str, given: object, is_right: bool
) -> None:
    sql = f"select *, 110::bigint as event_wall, 120::bigint as offered_wall from (select {asked}) t(v)"
    found, _ = answers(made, {"v": given}, events=ORDERED).compare(sql, [], None)
    assert (found.wrong is None) is is_right


@pytest.mark.parametrize("late", [pa.array(["12 min", "on time", "", None]), pa.array([12, 0, 0, 0])])
def test_columns_may_have_the_names_that_the_comparison_needs(made: list[Answers], late: pa.Array) -> None:
    sql = SQL.replace("as n,", "as n, count(*) + 4 as appended,")
    right = [{**A, "appended": 6}, {**B, "appended": 5}]
    events = ORDERED.append_column("late", late)
    assert answers(made, *right, events=events).compare(sql, ["key"], None)[0].wrong is None
    found, timed = answers(made, right[0], events=events).compare(sql, ["key"], None)
    assert (found.differences.each[0].answers, found.differences.cause) == (1, None)
    assert timed.appended.tolist() == [1000]


def test_texts_are_cut_around_their_first_difference(made: list[Answers]) -> None:
    key = "k" * 200
    found, _ = answers(made, {"key": key, "n": 7}, events=offered((key, 1, 100, ""))).compare(SQL, ["key"], None)
    [one] = found.differences.each
    assert (one.expected, one.actual) == (f"…{'k' * 37} n=1", f"…{'k' * 37} n=7")


def test_a_key_that_is_no_value_of_its_type_is_not_the_sentinel_s_answer(made: list[Answers]) -> None:
    sql = SQL.replace("select key,", "select try_cast(key as bigint) as key,").replace("group by key", "group by 1")
    events = offered(("1", 9, 100, ""), (None, 99, 130, "sentinel"))
    given = ({"key": 1, "n": 1}, {"key": None, "n": 1}, {"key": "total", "n": 5})
    found, _ = answers(made, *given, events=events).compare(sql, ["key"], None)
    assert found.answers == 2
    assert [(one.kind, one.answers) for one in found.differences.each] == [("in excess", 1)]


#: windows of ten seconds, each with two keys; the third window has a late event of the second one
WINDOWED = offered(
    ("a", 10, 100, ""), ("b", 12, 110, ""), ("a", 20, 120, ""), ("b", 25, 130, ""), ("a", 31, 140, ""),
    ("b", 24, 150, ""), ("b", 38, 160, ""), (None, 99, 170, "sentinel"),
)  # fmt: skip
WINDOWED = WINDOWED.set_column(4, "event_wall", pa.array([100, 110, 120, 130, 140, 130, 160, 170]))
WINDOWS = """
select event_time // 10 * 10 as at, key, count(*) as n, max(event_wall) as event_wall,
    max(offered_wall) as offered_wall from events group by all
"""


def windows(**changes: int) -> list[dict[str, object]]:
    """The right answers, but for those named: their n, 0 for none."""
    right = {"a10": 1, "b10": 1, "a20": 1, "b20": 2, "a30": 1, "b30": 1} | changes
    return [{"at": int(name[1:]), "key": name[0], "n": n} for name, n in right.items() if n]


@pytest.mark.parametrize(
    ("given", "kinds", "cause"),
    [
        (windows(), [], None),
        (windows(b20=1), [("with other values", 1)], "late"),
        (windows(b20=0), [("missing", 1)], "late"),
        (windows(a20=7), [("with other values", 1)], None),
        (windows(b20=1, a10=0), [("with other values", 1), ("missing", 1)], None),
        (windows(a30=0, b30=0), [("missing", 2)], "last"),
        ([*windows(), *windows(a10=0, b10=0, a20=0, a30=0, b30=0, b20=1)], [("in excess", 1)], "updates"),
        ([*windows(), {"at": 90, "key": "z", "n": 1}], [("in excess", 1)], None),
        ([*windows(), {"at": 40, "key": None, "n": 4}], [("in excess", 1)], "sentinel"),
    ],
    ids=["right", "dropped", "all dropped", "wrong", "two causes", "last", "updates", "in excess", "sentinel"],
)
def test_a_likely_cause_is_told_where_all_differences_look_like_it(
    made: list[Answers], given: list[object], kinds: list[tuple[str, int]], cause: str | None
) -> None:
    found = answers(made, *given, events=WINDOWED).compare(WINDOWS, ["at", "key"], None)[0].differences
    assert ([(one.kind, one.answers) for one in found.each], found.cause) == (kinds, cause)


@pytest.mark.parametrize(
    ("missing", "cause"), [({"a20": 0, "a30": 0}, "last"), ({"a10": 0, "a30": 0}, None), ({"a30": 0}, "last")]
)
def test_the_last_answers_of_a_partition_are_missing_where_others_went_on(
    made: list[Answers], missing: dict[str, int], cause: str | None
) -> None:
    given = [row | {"at": f"1970-01-01 00:00:{row['at']}"} for row in windows(**missing)]
    sql = WINDOWS.replace("event_time // 10 * 10 as at", "time_bucket(interval 10 second, event_ts)::timestamp as at")
    found = answers(made, *given, events=WINDOWED).compare(sql, ["at", "key"], None)[0].differences
    assert (sum(one.answers for one in found.each), found.cause) == (len(missing), cause)


def test_answers_to_what_came_before_the_trial_are_told_apart(made: list[Answers]) -> None:
    events = offered(("w", 1, 50, "warm"), ("v", 2, 60, "warm"), ("a", 10, 100, ""), (None, 99, 130, "sentinel"))
    warm = [{"key": "w", "n": 1}, {"key": "v", "n": 1}]
    found = answers(made, *warm, events=events).compare(SQL, ["key"], None)[0]
    assert found.differences == Differences((Difference("missing", False, 1, "key=a n=1", None),), "warm-up")
    assert found.wrong == (
        "output wrong: 2 rows, 3 expected; 1 missing, such as: expected key=a n=1, found none; the job answered what "
        "came before the trial and nothing of the trial: does it remember ids that replay.ids does not name?"
    )
    found = answers(made, warm[0], {"key": "a", "n": 1}, events=events).compare(SQL, ["key"], None)[0]
    assert found.differences == Differences((Difference("missing", True, 1, "key=v n=1", None),), None)


def test_a_job_that_may_drop_late_events_is_not_compared(made: list[Answers]) -> None:
    late, _ = answers(made, {"key": "a", "n": 1}, B).compare(SQL, ["key"], 1999)
    assert late.wrong is None
    assert late.unchecked == (
        "an event is 2 s late, and the job may drop what is later than 1.999 s: its answers are not compared"
    )
    assert answers(made, {"key": "a", "n": 1}, B).compare(SQL, ["key"], 2000)[0].wrong is not None


def test_rows_from_before_the_trial_are_checked_and_not_timed(made: list[Answers]) -> None:
    events = offered(("w", 1, 50, "warm"), ("a", 2, 60, "warm"), ("a", 10, 100, ""), (None, 99, 130, "sentinel"))
    found, timed = answers(made, {"key": "w", "n": 1}, A, events=events).compare(SQL, ["key"], None)
    assert (found.wrong, found.expected_rows) == (None, 2)
    assert timed.appended.tolist() == [1001]


def test_answers_that_carry_their_walls_need_no_sql(made: list[Answers]) -> None:
    given = [{"e": 90, "o": 91}, {"e": 130, "o": 130}]
    timed = answers(made, *given).carried({"event_wall": "e", "offered_wall": "o"})
    walls = (timed.event_wall, timed.offered_wall)
    assert [None if one is None else one.tolist() for one in (timed.appended, *walls)] == [[1000], [90], [91]]


@pytest.mark.parametrize(
    ("sql", "key", "problem"),
    [
        ("select nonsense", ["key"], "answer.sql: Binder Error: Referenced column"),
        ("select key from events", ["key"], "answer.sql: needs a bigint column event_wall"),
        (SQL, ["kee"], "answer.key: found 'kee', allowed: key, n"),
        (SQL.replace("as n", "as m"), ["key"], "answer.sql: the job's answers have no 'm', but key, n"),
        ("select 1 as n, event_wall, offered_wall from events", [], "answer.sql: its answer has equal rows"),
        (
            "select key, seq as n, event_wall, offered_wall from events",
            ["key"],
            "answer.key: right answers share a key",
        ),
    ],
)
def test_sql_that_cannot_be_used_is_told_in_one_line(
    made: list[Answers], sql: str, key: list[str], problem: str
) -> None:
    with pytest.raises(UserError) as told:
        answers(made, A, B).compare(sql, key, None)
    assert str(told.value).startswith(problem)


WALLS = "max(event_wall) as event_wall, max(offered_wall) as offered_wall from events group by all"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"select content, {WALLS.replace('events', 'read_text(SECRET), events')}", "file system operations are dis"),
        (f"select (select content::int from read_text(SECRET)) as key, {WALLS}", "file system operations are disabled"),
        (f"select key, {WALLS}; copy (select 1) to OUT", "found SELECT, COPY, allowed: one SELECT over the table ev"),
        ("copy (select 1) to OUT", "found COPY, allowed: one SELECT over the table events"),
        ("attach OUT", "found ATTACH, allowed: one SELECT"),
        ("set memory_limit = '1TB'", "found SET, allowed: one SELECT"),
        ("install httpfs", "found LOAD, allowed: one SELECT"),
        ("", "found nothing, allowed: one SELECT"),
        (f"select key, {WALLS.replace('events', 'kept_by_python, events')}", "kept_by_python does not exist"),
        (f"select 1 as key, {WALLS.replace('events', 'events, range(1000000000000)')}", "has not ended after 0.2 s"),
        (
            f"select string_agg(repeat('x', 1000), '') as key, {WALLS.replace('events', 'events, range(9000000)')}",
            "Out of Memory",
        ),
    ],
)
def test_sql_of_others_reads_and_writes_nothing_and_ends(
    made: list[Answers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, said: str
) -> None:
    kept_by_python = pa.table({"secret": ["hunter2"]})
    (tmp_path / "secret").write_text("hunter2")
    monkeypatch.setattr(locked, "LONGEST_S", 0.2 if "ended" in said else 20.0)
    monkeypatch.setattr(locked, "MEMORY_BYTES", 64 << 20)
    asked = sql.replace("SECRET", f"'{tmp_path}/secret'").replace("OUT", f"'{tmp_path}/out'")
    with pytest.raises(UserError) as problem:
        answers(made, A, B).compare(asked, ["key"], None)
    assert str(problem.value).startswith("answer.sql: ")
    assert said in str(problem.value)
    assert kept_by_python["secret"][0].as_py() not in str(problem.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert not tells_time(asked, ["key"], {"key": "string"}), "a check of the file asks what its columns are"
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_garbage_and_missing_columns_are_told_with_an_example(made: list[Answers]) -> None:
    assert answers(made, A, b"<xml/>").garbage() == "an answer is no JSON object: '<xml/>'"
    assert answers(made, A, b"[1]").garbage() == "an answer is no JSON object: '[1]'"
    assert answers(made, A, b"\xff").garbage() == r"an answer is no JSON object: '\\xff'"
    assert answers(made, A).garbage() is None
    with pytest.raises(UserError, match=r'^answer.carried: an answer has no whole number in e and o: {"key": "a"'):
        answers(made, A).carried({"event_wall": "e", "offered_wall": "o"})


@pytest.mark.parametrize(
    ("sql", "key", "said"),
    [
        (
            "select event_wall, offered_wall from events",
            [],
            "answer.sql: needs a column of the answers, beside ",
        ),
        (SQL, ["event_wall"], "answer.key: found 'event_wall', allowed: key, n "),
    ],
)
def test_walls_alone_are_no_answer(made: list[Answers], sql: str, key: list[str], said: str) -> None:
    with pytest.raises(UserError, match=f"^{said}"):
        answers(made, A, B).compare(sql, key, None)
