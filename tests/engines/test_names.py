"""Columns may have any name that `check` takes: no query's own names clash with them, on Spark, Flink or DuckDB."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from streamgauge.base.schemas import RESERVED
from streamgauge.bench.engines.flink.flink_system import argument
from streamgauge.bench.engines.spark import queries as spark_queries
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.oracle.duck import ask
from streamgauge.bench.workloads import Spec, find
from streamgauge.bench.workloads.registry import REGISTRY
from streamgauge.descriptions.source import Source
from tests.engines.hand import row, table

S = 1_000_000
#: names that a query, an engine or the oracle gives to something else
CLASHING = [
    "key", "value", "number", "marked", "at_us", "window", "window_start", "window_end", "window_time", "rowtime",
    "proctime", "total", "mean", "events", "groups", "failures", "rank", "seq_", "first", "person",
    "at", "failure", "waiting", "left_key", "right_seq", "left_window", "window_from", "part", "frame0", "r", "step",
]  # fmt: skip
NASTY = [
    "from", "group", "timestamp", "order by", "a b", "it's", 'say "yes"', "straße", "日本", "*", "%s", "{key}",
    "1st", " x", "$", "x;y", "(a)", "a/b", "a\\b", "#", "--", "?", "@", "true", "null",
]  # fmt: skip
NAMES = [*CLASHING, *NASTY]


def taken_by_check(name: str) -> bool:
    about: dict[str, Any] = {"files": ["x.csv"], "time": {"column": "t", "unit": "ms"}, "columns": {name: "string"}}
    try:
        Source.model_validate(about)
    except ValidationError:
        return False
    return True


def test_check_takes_these_names_and_no_reserved_one() -> None:
    assert [name for name in NAMES if not taken_by_check(name)] == []
    assert [name for name in RESERVED if taken_by_check(name) or taken_by_check(name.upper())] == []


def specs(key: str, value: str) -> list[Spec]:
    """A question of each query, with these names."""
    marked = {"custom_windows": "7", "incremental_join": "7"}
    return [
        Spec(
            query.name, key, value if query.name != "deduplication" else None, window_us=10 * S,
            watermark_ms=10_000, mark=marked.get(query.name), top=2,
        )
        for query in REGISTRY
    ]  # fmt: skip


def events(key: str, value: str) -> pa.Table:
    rows = pa.Table.from_batches([table([row(n, n * 3, "abc"[n * n % 3], n % 9) for n in range(20)])])
    return rows.rename_columns([{"name": key, "amount": value}.get(name, name) for name in rows.column_names])


def plain(answer: pa.Table, spec: Spec) -> pa.Table:
    """An answer with the names of the plain question, as an event that passes keeps its own."""
    back = {spec.key: "name", spec.value: "amount"} if find(spec.query).line else {}
    return answer.rename_columns([back.get(name, name) for name in answer.column_names])


@cache
def ordinary_checksums() -> list[int]:
    rows = events("name", "amount")
    return [checksum(ask(spec, (rows,) * find(spec.query).streams)) for spec in specs("name", "amount")]


@settings(max_examples=5, deadline=None)
@given(st.permutations(NAMES))
def test_duckdb_s_answers_do_not_depend_on_names(names: list[str]) -> None:
    key, value = names[:2]
    for asked, wanted in zip(specs(key, value), ordinary_checksums(), strict=True):
        frames = find(asked.query).streams
        answer = plain(ask(asked, (events(key, value),) * frames), asked)
        assert checksum(answer) == wanted, asked


@given(st.permutations(NAMES))
def test_flink_s_sql_reads_no_column_by_the_name_of_a_workload(names: list[str]) -> None:
    from streamgauge.bench.engines.flink import queries as flink

    for spec, ordinary in zip(specs(*names[:2]), specs("name", "amount"), strict=True):
        assert flink.sql(spec) == flink.sql(ordinary)


@pytest.mark.spark
@pytest.mark.parametrize("shift", range(0, len(NAMES), 6))
def test_spark_s_answers_do_not_depend_on_names(spark: Any, shift: int) -> None:
    """Asks two queries for each pair of names, so that all names and all queries come up."""
    pairs = [(NAMES[n], NAMES[(n + 7) % len(NAMES)]) for n in range(shift, min(shift + 6, len(NAMES)))]
    for number, (key, value) in enumerate(pairs):
        chosen = specs(key, value)
        for spec in (chosen[(shift + number) % len(chosen)], chosen[(shift + number + 5) % len(chosen)]):
            if spec.query == "incremental_join":  # transformWithState runs in streaming alone
                spec = replace(chosen[2])
            rows = events(key, value)
            frames = [spark.createDataFrame(rows)] * find(spec.query).streams
            answer = spark_queries.run(frames, spec).toArrow()
            assert checksum(answer) == checksum(ask(spec, (rows,) * find(spec.query).streams)), spec


def test_the_names_of_an_event_that_passes_stay() -> None:
    spec = Spec("passthrough", "window", "key")
    assert ask(spec, (events("window", "key"),)).column_names == ["seq", "event_time", "window", "key"]


def test_flink_is_told_the_column_names_as_they_are(tmp_path: Any) -> None:
    from streamgauge.bench.driver.system import TrialSetup
    from streamgauge.config import Workload

    workload = Workload.model_validate({"name": "w", "query": "chained_windows", "key": "rowtime", "value": "at_us"})
    columns = {"rowtime": "string", "at_us": "int64"}
    setup = TrialSetup("a", (), workload, columns, "ns", tmp_path, 1.0)
    job = argument(Spec.of(workload, columns), setup)
    assert (job["key"], job["value"], job["columns"]) == ("rowtime", "at_us", ("rowtime", "at_us"))
    assert job["results"] == ("window_start", "window_end", "groups", "total")
