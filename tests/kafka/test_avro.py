"""Values of Avro as lines of JSON: against fastavro's own reader, and by hand where JSON has no such type."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.streams.kafka.avro import reader
from streamgauge.streams.kafka.encoded import Encoded

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "x", "type": "double"},
        {"name": "text", "type": ["null", "string", "long"]},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["red", "green"]}},
        {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "on", "type": "boolean"}]}},
        {"name": "many", "type": {"type": "array", "items": ["Inner", "int"]}},
        {"name": "map", "type": {"type": "map", "values": "float"}},
    ],
}
INNER = st.fixed_dictionaries({"on": st.booleans()})
EVENTS = st.fixed_dictionaries(
    {
        "n": LONGS,
        "x": st.floats(),
        "text": st.none() | TEXTS | LONGS,
        "color": st.sampled_from(["red", "green"]),
        "inner": INNER,
        "many": st.lists(INNER | st.integers(-(2**31), 2**31 - 1), max_size=3),
        "map": st.dictionaries(TEXTS, st.floats(width=32), max_size=3),
    }
)


def encoded(schema: Any, value: object) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@given(EVENTS)
def test_a_line_has_what_fastavro_reads_and_null_for_what_json_has_no_number_for(event: dict[str, Any]) -> None:
    value = encoded(SCHEMA, event)
    read = fastavro.schemaless_reader(BytesIO(value), fastavro.parse_schema(SCHEMA), None)
    line = reader(json.dumps(SCHEMA))(value)
    assert b"\n" not in line
    assert json.loads(line) == without_nan(read)


@given(EVENTS, st.data())
def test_what_is_cut_or_followed_by_bytes_is_no_value(event: dict[str, Any], data: st.DataObject) -> None:
    value, read = encoded(SCHEMA, event), reader(json.dumps(SCHEMA))
    cut = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(ValueError, match=r"ends too early|does not follow"):
        read(value[:cut])
    with pytest.raises(ValueError, match=r"^1 byte behind the value"):
        read(value + b"\0")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_reason(value: bytes) -> None:
    lines, reasons = Encoded(reader(json.dumps(SCHEMA))).lines([value])
    if reasons:
        assert lines == [value.hex().encode()]
        assert "\n" not in reasons[0]
    else:
        assert json.loads(lines[0])


def logical(kind: str, name: str, **more: int) -> dict[str, object]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("kind", "given", "line"),
    [
        (logical("long", "timestamp-millis"), datetime(2013, 1, 1, 5, tzinfo=UTC), '"2013-01-01T05:00:00Z"'),
        (logical("long", "timestamp-micros"), -1, '"1969-12-31T23:59:59.999999Z"'),
        (logical("long", "timestamp-micros"), 2**63 - 1, "9223372036854775807"),
        (logical("long", "timestamp-nanos"), 2**62, "4611686018427387904"),
        (logical("long", "local-timestamp-millis"), 1, '"1970-01-01T00:00:00.001000"'),
        (logical("int", "date"), date(2013, 1, 1), '"2013-01-01"'),
        (logical("int", "time-millis"), time(1, 2, 3), '"01:02:03"'),
        (logical("bytes", "decimal", precision=20, scale=2), Decimal("12345678901234567.80"), "12345678901234567.80"),
        (logical("string", "uuid"), "No UUID at all", '"No UUID at all"'),
        ("bytes", b"\xff\0", '"/wA="'),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", '"YWI="'),
        ("string", "a\nb\u2028", '"a\\nb\u2028"'),
        ("double", -0.1, "-0.1"),
        ("null", None, "null"),
    ],
)  # fmt: skip
def test_a_type_that_json_lacks_becomes_a_text_or_a_number(kind: object, given: Any, line: str) -> None:
    plain = {**kind, "logicalType": ""} if isinstance(kind, dict) and isinstance(given, int) else kind
    schema = {"type": "record", "name": "E", "fields": [{"name": "v", "type": plain}]}
    value = encoded(schema, {"v": given})
    schema["fields"] = [{"name": "v", "type": kind}]
    assert reader(json.dumps(schema))(value).decode() == f'{{"v":{line}}}'


@pytest.mark.parametrize("precision", [{"precision": 4}, {}])
def test_a_decimal_of_more_digits_than_its_schema_allows_loses_none(precision: dict[str, int]) -> None:
    value = encoded(logical("bytes", "decimal", precision=6, scale=2), Decimal("-1234.56"))
    assert reader(json.dumps(logical("bytes", "decimal", scale=2, **precision)))(value) == b"-1234.56"


def test_a_schema_uses_names_of_others() -> None:
    inner = {"type": "record", "name": "a.Inner", "fields": [{"name": "n", "type": "long"}]}
    outer = {"type": "record", "name": "b.Outer", "fields": [{"name": "one", "type": "a.Inner"}]}
    middle = {"type": "record", "name": "Middle", "fields": [{"name": "of", "type": ["null", "b.Outer"]}]}
    value = encoded(
        {**middle, "fields": [{"name": "of", "type": ["null", {**outer, "fields": [{"name": "one", "type": inner}]}]}]},
        {"of": {"one": {"n": -5}}},
    )
    assert reader(json.dumps(middle), [json.dumps(inner), json.dumps(outer)])(value) == b'{"of":{"one":{"n":-5}}}'


@pytest.mark.parametrize("levels", [100, 1_000, 100_000])
def test_a_value_of_many_levels_is_read_or_has_a_reason_and_ends_no_process(levels: int) -> None:
    schema = {"type": "record", "name": "Tree", "fields": [{"name": "of", "type": ["null", "Tree"]}]}
    lines, reasons = Encoded(reader(json.dumps(schema))).lines([b"\2" * levels + b"\0", b"\2\0"])
    assert lines[1] == b'{"of":{"of":null}}'
    assert [reason.split("(")[0] for reason in reasons.values()] == ["does not follow its schema "] * (levels > 100)


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "{",
        "5",
        "{}",
        '"nothing"',
        '{"type": "record"}',
        json.dumps({**SCHEMA, "fields": [{"name": "a", "type": "B"}]}),
    ],
)
def test_what_is_no_schema_is_refused_in_a_line(schema: str) -> None:
    with pytest.raises(ValueError, match=r"^no schema of Avro: [^\n]+$"):
        reader(schema)
