"""JSON lines: values at paths, whatever the lines look like; and from a file to a stream, byte for byte."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import Mistakes
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Source, mistakes
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked
from streamgauge.streams.text import json_lines
from streamgauge.streams.text.fields import Lines, texts
from streamgauge.streams.text.json_lines import Values
from streamgauge.streams.text.parse import layout_of, parse
from tests.command import Call, run
from tests.spark.ingesting import bad, benchmark, rows
from tests.told import known

SECOND = 10**9


def fields(lines: list[bytes], *paths: str) -> tuple[list[list[str]], list[bool]]:
    values = Values(Lines(b"".join(line + b"\n" for line in lines)), paths)
    columns = [texts(values.buffer, *values.field(k)).to_pylist() for k in range(len(paths))]
    return [[text.decode(errors="replace") for text in row] for row in zip(*columns, strict=True)], values.bad.tolist()


def by_json(line: bytes, *paths: str) -> tuple[list[str], bool]:
    """The same of one line, by Python's json alone."""
    try:
        value = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        value = None
    return [shown(at(value, path)) for path in paths], not isinstance(value, dict)


def at(value: object, path: str) -> object:
    if isinstance(value, dict) and path in value:
        return value[path]
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = value if isinstance(value, str) else ""
    return re.sub(r"[\r\n]+", " ", text).encode(errors="replace").decode()


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.integers(-9, 9), st.floats(), st.booleans(), st.none(), st.text(max_size=2),
    st.just({"u": 1}),
)  # fmt: skip


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS) | st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 9)), max_size=3),
    st.sampled_from(["ps", "ns", "us", "s"]),
    st.sampled_from(["n", "t.u"]),
    st.booleans(),
)
def test_numbers_read_at_once_are_those_of_their_texts(
    values: list[tuple[object, object]], unit: str, other: str, with_lines: bool
) -> None:
    raw = {
        "files": "f.jsonl", "format": "jsonl", "time": {"column": "t", "unit": unit},
        "columns": {"n": {"path": other, "type": "int64"}},
    }  # fmt: skip
    source = mistakes.check(Source, raw, str)
    data = b"".join(json.dumps({"t": time, "n": number, "x": "1e3"}).encode() + b"\n" for time, number in values)
    data += b'{"t": 1.0, "n": 1e1}\n{"n": 3}\n' * with_lines
    layout = layout_of(source, json_lines.paths(source), "f")
    quick = parse(data, layout, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "numbers", lambda _: frozenset())
        slow = parse(data, layout, 0)
    assert quick.events.to_pydict() == slow.events.to_pydict()
    assert (quick.bad and quick.bad.to_pydict()) == (slow.bad and slow.bad.to_pydict())


def test_values_at_paths() -> None:
    lines = [
        b'{"t": 1512086400.250, "a": {"b": "x,\\"y\\""}}',
        b' {"a.b": "whole", "a": {"b": "nested"}, "t": true}\r',
        b'{"t": null, "a": ["b"]}',
        b'{"t": {"u": 1}, "a": {"b": "two\\nlines"}}',
        b'{"t": "\\ud800", "a": 1}',
    ]
    found, broken = fields(lines, "t", "a.b")
    assert found == [["1512086400.250", 'x,"y"'], ["true", "whole"], ["", ""], ["", "two lines"], ["?", ""]]
    assert broken == [False] * 5


@pytest.mark.parametrize("line", [b"", b"x", b"[1]", b"5", b'{"t": 1', b"\xff", b"[" * 200_000, b'{"t": 1}{"t": 2}'])
def test_lines_that_are_no_object_are_told_apart(line: bytes) -> None:
    assert fields([b'{"t": 1}', line, b'{"t": 3}'], "t")[1] == [False, True, False]


PATHS = ("t", "a", "a.b", "a.b.c")
KEYS = st.sampled_from(["t", "a", "b", "c", "a.b", 'q"', "é"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud800 \r\n")
OBJECTS = st.dictionaries(
    KEYS,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2)),
    max_size=4,
)
BYTES = st.sampled_from(b'{}[]",:\\u00eE+-.tfn 19\x1f\xff\r')


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """An object as some writer writes it, at times with a key twice, or with a byte that is lost or wrong."""
    given = draw(OBJECTS)
    line = json.dumps(given, separators=draw(st.sampled_from([(",", ":"), (" , ", ": ")]))).encode()
    if draw(st.booleans()):
        line = line.replace(b'"b"', b'"a"').replace(b'"c"', b'"\\u0062"')
    line += draw(st.sampled_from([b"", b"", b"", b" ", b"\r", b"{}"]))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(line) - 1))
        line = line[:place] + draw(st.sampled_from([b"", bytes([draw(BYTES)])])) + line[place + draw(st.booleans()) :]
    return line or b"{"


@settings(max_examples=200)
@given(st.lists(written(), max_size=6), st.sampled_from([PATHS, ("a.c", "t", 'q"')]))
def test_any_lines_are_read_as_json_reads_them(lines: list[bytes], paths: tuple[str, ...]) -> None:
    found, broken = fields(lines, *paths)
    skipped = Lines(b"".join(line + b"\n" for line in lines)).not_utf8()  # such a line is bad for that reason
    for line, *read, skip in zip(lines, found, broken, skipped, strict=True):
        assert skip or tuple(read) == by_json(line, *paths)


def test_numbers_stay_as_they_are_written() -> None:
    numbers = ["1700000000123456789", "1.7672256e12", "-0.10", "123456789012345678901234567890", "1E400", "NaN"]
    found, broken = fields([b'{"t": %s}' % number.encode() for number in numbers], "t")
    assert (found, broken) == ([[number] for number in numbers], [False] * 6)


@pytest.mark.parametrize("two", [b'{"t": 1}{"t": 2}', b'{"t": 1} {"t": 2}'])
def test_two_objects_in_a_line_do_not_make_up_for_none_in_another(two: bytes) -> None:
    assert fields([two, b"", b'{"t": ', b"3}", b'{"t": 4}'], "t") == (
        [[""], [""], [""], [""], ["4"]], [True, True, True, True, False],
    )  # fmt: skip


def test_from_lines_to_events(tmp_path: Path) -> None:
    lines = [
        b'{"at": {"t": 3}, "id": "a", "n": 5, "x": 1.5}',
        b"oops",
        b"",
        b'{"at": {"t": "1"}, "id": null, "n": 6}\r',
        b'{"at": {"t": "x"}}',
        b'{"at": {}}',
        b'{"at": {"t": null}, "b\\u0061": 1}',
        b'{"at": 5}',
    ]
    (tmp_path / "f.jsonl").write_bytes(b"\n".join(lines))
    wanted = benchmark(
        tmp_path / "f.jsonl",
        format="jsonl",
        time={"column": "at.t", "unit": "s"},
        columns={"id": "string", "n": "int64", "x": "float64"},
        max_bad_fraction=0.8,
    )
    artifact = ingest.run(Forked(), wanted, Store(tmp_path / "artifacts"))
    assert rows(artifact) == [
        {"seq": 0, "event_time": 3 * SECOND, "line": lines[0] + b"\n", "id": "a", "n": 5, "x": 1.5},
        {"seq": 3, "event_time": SECOND, "line": lines[3] + b"\n", "id": None, "n": 6, "x": None},
    ]
    assert bad(artifact) == [
        ("f.jsonl", 2, 1, "not a JSON object", b"oops"),
        ("f.jsonl", 3, 2, "empty line", b""),
        ("f.jsonl", 5, 4, "time is not a number of s", lines[4]),
        ("f.jsonl", 6, 5, "the path 'at.t' is not there", lines[5]),
        ("f.jsonl", 7, 6, "empty time", lines[6]),
        ("f.jsonl", 8, 7, "the path 'at.t' is not there", lines[7]),
    ]


def test_a_quote_within_a_text_is_one_quote_whatever_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_bytes(b'{"t": 1, "id": "a \\"b\\""}\n')
    for quote in ({}, {"quote": None}, {"quote": "'"}):
        wanted = benchmark(
            tmp_path / "f.jsonl", format="jsonl", time={"column": "t", "unit": "s"}, columns={"id": "string"}, **quote
        )
        artifact = ingest.run(Forked(), wanted, Store(tmp_path / f"artifacts{len(quote)}"))
        assert [row["id"] for row in rows(artifact)] == ['a "b"'], quote


def test_a_stream_of_json_lines_holds_each_line_byte_for_byte(tmp_path: Path) -> None:
    lines = [json.dumps({"time": f"2026-03-01T00:{i // 60:02}:{i % 60:02}Z", "v": "ä\t" * i}) for i in range(300)]
    (tmp_path / "f.jsonl.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    out = tmp_path / "out"
    options = ["--time", "time", "--target", "20", "--seed", "3", "--max", "30s", "--csv", "--out", str(out), "--json"]
    found = run(Call(["generate", str(tmp_path / "f.jsonl.gz"), *options])).json
    assert found["achieved_out_of_order"] == 60
    header, *written = (out / "stream.csv").read_text().splitlines()
    assert header == "ingestion_time\tevent_time\tjson"
    assert sorted(line.split("\t", 2)[2] for line in written) == sorted(lines)
    late = duckdb.sql(  # an oracle of its own: DuckDB reads the JSON
        f"""select count(*) filter (t < before) from (
              select t, max(t) over (order by n rows between unbounded preceding and 1 preceding) before from (
                select row_number() over () n, (json->>'time')::timestamptz t
                from read_csv('{out}/stream.csv', delim='\t', quote='', escape='', header=true)))"""
    )
    assert known(late).fetchall() == [(math.ceil(0.2 * 300),)]


def test_a_path_that_is_missing_names_the_keys(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"at": {"t": 3}, "id": 1}\n')
    run(Call(["analyze", str(tmp_path / "f.jsonl"), "--time", "at.time", "--unit", "s"])).refused(
        "f.jsonl: line 1: --time: no value at 'at.time'; found 'at.t', 'id'"
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"separator": ","}, "separator: not for JSON, nor header and column_names; leave them out"),
        ({"header": True}, "separator: not for JSON"),
        ({"time": {"column": 0}}, "time: found column 0, allowed for JSON: a path of keys, such as a.b"),
    ],
)
def test_what_json_lines_do_not_have_is_refused(more: dict[str, object], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        mistakes.check(Source, {"files": "f", "format": "jsonl", "time": {"column": "t"}} | more, lambda _: "source")
