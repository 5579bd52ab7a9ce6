"""Values and headers of records: whole rows in, whole records out."""

from __future__ import annotations

import json
import math
import re
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.base.units import Tick
from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.publish.publisher import nothing
from streamgauge.streams.kafka.avro_writer import writer
from streamgauge.streams.kafka.records import Form, headers, lines, objects, sentinel_line
from streamgauge.streams.kafka.schemas import avro_schema
from tests.conftest import ROOT

DAY = 1_356_998_400_000_000_000  # 2013-01-01, ns


def rows(columns: dict[str, str], line: bool, *given: dict[str, object]) -> pa.RecordBatch:
    own = {"ingestion_time": DAY, "offered_wall": 7, "event_wall": 5, "sentinel": False, "line": b""}
    full = [{**own, "event_ts": int(str(row["event_time"])) // 1000, **row} for row in given]
    return pa.RecordBatch.from_pylist(full, wire_schema(columns, line=line))


def test_an_object_has_the_event_time_twice_and_the_declared_columns() -> None:
    columns = {"name": "string", "n": "int64", "x": "float64"}
    given = rows(
        columns, False,
        {"seq": 4, "event_time": DAY + 1234, "name": "a", "n": -3, "x": 0.5},
        {"seq": 5, "event_time": DAY, "name": 'q"\\\n\x01é', "n": None, "x": math.nan},
        {"seq": -1, "event_time": 2**62, "name": None, "n": 2**62, "x": None, "sentinel": True},
    )  # fmt: skip
    assert [json.loads(value) for value in objects(given)] == [
        {"event_time": DAY + 1234, "event_ts": "2013-01-01T00:00:00.000001Z", "name": "a", "n": -3, "x": 0.5},
        {"event_time": DAY, "event_ts": "2013-01-01T00:00:00.000000Z", "name": 'q"\\\n\x01é', "n": None, "x": None},
        {"event_time": 2**62, "event_ts": "2116-02-20T23:53:38.427387Z", "name": None, "n": 2**62, "x": None},
    ]
    assert objects(nothing(given.schema)) == []


def test_avro_has_the_same_fields_by_the_schema_of_the_docs() -> None:
    given = rows(
        {"name": "string", "n": "int64", "x": "float64"}, False,
        {"seq": 4, "event_time": DAY + 1234, "name": "é", "n": -3, "x": 0.5},
        {"seq": -1, "event_time": 2**62, "name": None, "n": None, "x": None, "sentinel": True},
    )  # fmt: skip
    schema = fastavro.parse_schema(avro_schema(given.schema))
    decoded: list[Any] = [fastavro.schemaless_reader(BytesIO(value), schema) for value in writer(given.schema)(given)]
    assert [row.pop("event_ts").isoformat() for row in decoded] == [
        "2013-01-01T00:00:00.000001+00:00", "2116-02-20T23:53:38.427387+00:00",
    ]  # fmt: skip
    assert decoded == [
        {"event_time": DAY + 1234, "name": "é", "n": -3, "x": 0.5},
        {"event_time": 2**62, "name": None, "n": None, "x": None},
    ]
    documented = re.search("```json\n(.*?)```", (ROOT / "docs" / "kafka.md").read_text(), re.DOTALL)
    assert documented is not None
    assert json.loads(documented[1]) == avro_schema(rows({"carrier": "string", "flight": "int64"}, False).schema)
    with pytest.raises(UserError, match=r"^format avro: found the column 'a-b', allowed: letters, digits and _"):
        writer(rows({"a-b": "string"}, False).schema)


@drawn(
    st.lists(
        st.fixed_dictionaries(
            {
                "event_time": st.integers(-(2**63), 2**63 - 1),
                "event_ts": st.integers(-(2**63), 2**63 - 1),
                "name": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
                "n": st.none() | st.integers(-(2**63), 2**63 - 1),
                "x": st.none() | st.floats(allow_nan=False),
            }
        ),
        max_size=9,
    )
)
def test_what_is_written_is_what_fastavro_writes(events: list[dict[str, object]]) -> None:
    schema = wire_schema({"name": "string", "n": "int64", "x": "float64"}, line=False)
    own = {"seq": 1, "ingestion_time": 1, "offered_wall": 1, "event_wall": 1, "sentinel": False}
    batch = pa.RecordBatch.from_pylist([own | event for event in events], schema)
    plain = avro_schema(schema)
    plain["fields"][1]["type"] = "long"  # fastavro takes no number for a timestamp that no date can have
    parsed = fastavro.parse_schema(plain)
    wanted = []
    for event in events:
        out = BytesIO()
        fastavro.schemaless_writer(out, parsed, event)
        wanted.append(out.getvalue())
    assert writer(schema)(batch) == wanted


def test_a_long_text_among_many_rows_is_written() -> None:
    long = "c" * 100_000
    given = rows({"name": "string"}, False, *({"seq": n, "event_time": n, "name": "ab"} for n in range(999)),
                 {"seq": 999, "event_time": 999, "name": long})  # fmt: skip
    schema = fastavro.parse_schema(avro_schema(given.schema))
    read: list[Any] = [fastavro.schemaless_reader(BytesIO(value), schema) for value in writer(given.schema)(given)]
    assert [(one["event_time"], one["name"]) for one in read] == [
        *((n, "ab") for n in range(999)),
        (999, "c" * 100_000),
    ]


def test_headers_are_decimal_text_and_mark_the_sentinel() -> None:
    given = rows({}, False, {"seq": 4, "event_time": 1}, {"seq": -1, "event_time": 2, "sentinel": True})
    first = [("seq", "4"), ("offered_wall", "7"), ("event_wall", "5"), ("attempt", "a")]
    last = [("seq", "-1"), ("offered_wall", "7"), ("event_wall", "5"), ("attempt", "a"), ("sentinel", "1")]
    assert headers(given, "a") == [first, last]
    made = Form("json", headers=False).records(given.schema)(given, "a")
    assert [record[3] for record in made] == [None, None]


def test_lines_lose_their_ends_and_the_sentinel_is_made_of_the_template() -> None:
    given = rows(
        {}, True,
        {"seq": 0, "event_time": DAY, "line": b"2013-01-01,AA\r\n"},
        {"seq": -1, "event_time": DAY + 10**9, "sentinel": True},
    )  # fmt: skip
    assert lines(given, "{time:%Y-%m-%d %H:%M:%S},", "ns") == [b"2013-01-01,AA", b"2013-01-01 00:00:01,"]


@pytest.mark.parametrize(
    ("template", "tick", "line"),
    [
        ("{ticks}|{s}|{ms}|{us}|{ns}", "ns", "1356998400000000000|1356998400|1356998400000|1356998400000000|{}"),
        ("{ns}", "ps", "1356998400000000"),
    ],
)
def test_a_template_takes_the_time_in_any_unit(template: str, tick: Tick, line: str) -> None:
    assert sentinel_line(template, DAY, tick) == line.format(DAY)


def test_a_sentinel_beyond_the_last_year_has_the_last_second_of_it() -> None:
    assert sentinel_line("{time:%Y-%m-%d}", 1000 * (2**63 - 1), "ns") == "9999-12-31"
