"""Tests each workload's SQL against answers worked out by hand, and against Spark in batch, on difficult values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench import workloads
from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.engine import PROVIDER, ROCKSDB, settings
from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.oracle.checksum import checksum, result_columns
from streamgauge.bench.oracle.duck import ask, asked, size_and_checksum
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Spec

S = 1_000_000
Event = tuple[float, Any, Any]  # second, name, amount; seq is its number


def events(given: list[Event], kinds: tuple[str, str] = ("string", "int64")) -> pa.Table:
    schema = wire_schema(dict(zip(("name", "amount"), kinds, strict=True)), line=False)
    us = [round(second * S) for second, _, _ in given]
    columns = {name: [0] * len(given) for name in schema.names}
    columns |= {"seq": list(range(len(given))), "event_time": [1000 * at for at in us], "event_ts": us}
    columns |= {"name": [name for _, name, _ in given], "amount": [amount for _, _, amount in given]}
    return pa.Table.from_arrays([pa.array(columns[f.name]).cast(f.type) for f in schema], schema=schema)


def answers(spec: Spec, given: list[Event], kinds: tuple[str, str] = ("string", "int64")) -> list[tuple[Any, ...]]:
    """Sorted rows, as the SQL orders its columns; times in seconds."""
    rows = events(given, kinds)
    found = ask(spec, (rows,) * workloads.find(spec.query).streams)
    for name in ("window_start", "window_end"):
        if name in found.column_names:
            place, seconds = found.column_names.index(name), found[name].cast(pa.int64()).to_numpy() / S
            found = found.set_column(place, name, pa.array(seconds))
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


TUMBLING = Spec("windowed_aggregation", "name", "amount", window_us=10 * S)
SOME: list[Event] = [(0, "a", 3), (9.999999, "a", 4), (10, "a", None), (12, None, 7), (-1, "b", 5)]
BY_HAND: dict[str, tuple[Spec, list[Event], list[tuple[Any, ...]]]] = {
    "discard": (Spec("discard", None, None), [(1, "a", 1)], []),
    "passthrough": (
        Spec("passthrough", "name", "amount"),
        [(0, "a", 3), (1.5, None, None)],
        [(0, 0, "a", 3), (1, 1_500_000_000, None, None)],
    ),
    "windowed_aggregation": (
        TUMBLING,
        SOME,
        [(-10, 0, "b", 1, 5, 5.0), (0, 10, "a", 2, 7, 3.5), (10, 20, "a", 1, None, None), (10, 20, None, 1, 7, 7.0)],
    ),
    "sliding": (
        replace(TUMBLING, slide_us=5 * S),
        [(0, "a", 1), (7, "a", 2)],
        [(-5, 5, "a", 1, 1, 1.0), (0, 10, "a", 2, 3, 1.5), (5, 15, "a", 1, 2, 2.0)],
    ),
    "windowed_join": (  # even seq + microseconds: left
        Spec("windowed_join", "name", "amount", window_us=10 * S),
        [(1, "a", 1), (2, "a", 2), (3, "a", 3), (9.999999, "a", 4), (10, "a", 5), (4, None, 6), (5, None, 7)],
        [(0, 10, "a", 0, 1, 1, 2), (0, 10, "a", 2, 3, 1, 2), (0, 10, "a", 3, 4, 1, 2)],
    ),
    "outer_join": (
        Spec("outer_join", "name", None, window_us=10 * S),
        [(1, "a", 1), (2, "a", 2), (3, "b", 3), (4, None, 4), (5, None, 5)],
        [(0, 10, "a", 0, 1), (0, 10, "b", 2, None), (0, 10, None, 4, None)],
    ),
    "top_n": (
        Spec("top_n", "name", "amount", window_us=10 * S, top=2),
        [(1, "a", 5), (2, "a", 9), (3, "a", 9), (4, "b", None), (5, "b", -1)],
        [(0, 10, "a", 1, 9, 1), (0, 10, "a", 2, 9, 2), (0, 10, "b", 1, -1, 4), (0, 10, "b", 2, None, 3)],
    ),
    "sessions": (
        Spec("sessions", "name", "amount", window_us=3 * S),
        [(0, "a", 1), (3, "a", 2), (6.000001, "a", 4), (1, None, 8), (1, None, None)],
        [(0, 6, "a", 2, 3), (1, 4, None, 2, 8), (6.000001, 9.000001, "a", 1, 4)],
    ),
    "deduplication": (
        Spec("deduplication", "name", None, window_us=10 * S),
        [(0, "a", 1), (9, "a", 2), (10, "a", 3), (3, None, 4), (4, None, 5)],
        [(0, 10, "a"), (0, 10, None), (10, 20, "a")],
    ),
    "custom_windows": (
        Spec("custom_windows", "name", "amount", window_us=600 * S, mark="7"),
        [(300, "a", 1), (720, "a", 7), (800, "a", None)],
        [(0, 600, "a", 1, 0), (1200, 1800, "a", 1, 1), (1800, 2400, "a", 1, 1), (2400, 3000, "a", 1, 1),
         (600, 1200, "a", 2, 1)],
    ),
    "chained_windows": (
        Spec("chained_windows", "name", "amount", window_us=3 * S, offset_us=S),
        [(1, "a", 6), (2, "a", 4), (3, "a", 5), (4, "a", 7), (4, "b", 1), (-5, "a", 2), (8, "a", None)],
        [(-5, 1, 1, 2), (1, 7, 3, 14), (7, 13, 1, None)],
    ),
    "incremental_join": (
        Spec("incremental_join", "name", "amount", window_us=10 * S, mark="7"),
        [(100, "a", 0), (105, "a", 7), (114.999999, "a", None), (115, "a", 0), (105, "b", 0), (1, None, 7),
         (2, None, 0)],
        [("a", 1, 0), ("a", 1, 2), (None, 5, 6)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_an_answer_is_as_worked_out_by_hand(name: str) -> None:
    spec, given, wanted = BY_HAND[name]
    assert answers(spec, given) == sorted(wanted, key=repr)


def test_every_workload_has_its_question_and_its_answer_by_hand() -> None:
    assert {query.name for query in workloads.REGISTRY} == set(BY_HAND) - {"sliding"}


def test_floats_are_summed_in_millionths_half_away_from_zero_and_what_is_no_number_is_left_out() -> None:
    floats: list[Any] = [0.1, 0.2, 0.0000005, -0.0000015, float("nan"), float("inf"), None]
    found = answers(TUMBLING, [(n, "a", value) for n, value in enumerate(floats)], ("string", "float64"))
    assert found == [(0, 10, "a", 7, 299_999, 299_999 / 7)]


def test_names_may_be_anything_and_so_may_a_mark() -> None:
    rows = events([(1, "a", "it's"), (2, "a", "b")], ("string", "string"))
    renamed = {"name": 'a "key"', "amount": "select"}
    rows = rows.rename_columns([renamed.get(name, name) for name in rows.column_names])
    spec = Spec("incremental_join", 'a "key"', "select", mark="it's")
    assert ask(spec, (rows,)).to_pylist() == [{"key": "a", "person_seq": 0, "auction_seq": 1}]
    (passed, _) = ask(replace(spec, query="passthrough"), (rows,)).to_pylist()
    assert passed == {"seq": 0, "event_time": 10**9, 'a "key"': "a", "select": "it's"}


def test_whole_sums_have_the_64_bits_of_engines() -> None:
    with asked(TUMBLING, (events([(1, "a", 3)]),), "select sum(value) as total, min(key) as k from events") as relation:
        assert [str(kind) for kind in relation.types] == ["BIGINT", "VARCHAR"]
        assert relation.fetchall() == [(3, "a")]


@pytest.mark.parametrize("sql", ["select keyy from events", "select {oops} from events"])
def test_a_faulty_question_of_a_package_is_one_line(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    query = replace(workloads.find("windowed_aggregation"), question="theirs.sql")
    monkeypatch.setattr(workloads, "find", lambda _: query)
    refused = pytest.raises(UserError, match=r"^query windowed_aggregation: theirs\.sql: ")
    with refused as problem, asked(TUMBLING, (events([(1, "a", 3)]),), sql):
        pass
    assert len(str(problem.value).splitlines()) == 1


def test_a_sum_beyond_64_bits_is_told() -> None:
    rows = events([(1, "a", 2**62), (2, "a", 2**62)])
    for name, values in {"partition": [0, 0], "row": [0, 1]}.items():
        rows = rows.append_column(name, pa.array(values, pa.int64()))
    with pytest.raises(ValueError, match="windowed_aggregation: "):
        size_and_checksum(expectation(rows, [BatchLog(0, ({0: 2},), 0)], TUMBLING, queries.rules(TUMBLING)))


NAN, INF = float("nan"), float("inf")
#: 2^63 in millionths passes the engine's range as a float, and comes out cut
LARGEST = 2**63 / 1e6
AWKWARD: dict[str, tuple[tuple[str, str], list[Event]]] = {
    "integers": (
        ("string", "int64"),
        [(1, "a", 7), (2, "a", None), (3, None, 7), (4, None, 0), (4, "", 7), (5, "é", 2**53 + 1), (6, "é", 2),
         (11, "a", 0),
         (-3, "a", 7), (-3.5, "a", 1), (12, "a", -1), (13, "a", -1), (13, None, None), (21, "b", 2**62), (14, "a", 7)],
    ),
    "floats": (
        ("float64", "float64"),
        [(1, 0.0, 0.1), (2, -0.0, 0.2), (3, NAN, NAN), (4, NAN, INF), (5, None, -INF), (6, None, None),
         (7, 0.0, 0.0000005),
         (8, -0.0, -0.0000015), (50, INF, LARGEST), (21, INF, 1e300), (12, 1.5, 2.5e-6), (13, 1.5, 1 / 3),
         (14, 1.5, -0.0), (31, INF, -LARGEST)],
    ),
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("kind", AWKWARD)
def test_the_engine_answers_alike_where_values_are_awkward(spark: Any, kind: str) -> None:
    kinds, given = AWKWARD[kind]
    rows = events(given, kinds)
    differ = []
    for name, (spec, _, _) in BY_HAND.items():
        if kind == "floats" and spec.mark is not None:
            continue  # no float is a mark
        streams = workloads.find(spec.query).streams
        with settings(spark, {PROVIDER: ROCKSDB}):
            found = queries.run([spark.createDataFrame(rows)] * streams, spec).toArrow()
        wanted = ask(spec, (rows,) * streams)
        assert set(result_columns(found.column_names)) == set(wanted.column_names), name
        if (found.num_rows, checksum(found)) != (wanted.num_rows, checksum(wanted)):
            differ.append((name, found.select(wanted.column_names).to_pylist(), wanted.to_pylist()))
    assert not differ
