"""JSON lines: values at paths, whatever the lines look like; and from a file to a stream, byte for byte."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.errors import Mistakes
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Source, mistakes
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked
from streamgauge.streams.text import json_lines
from tests.command import Call, run
from tests.spark.ingesting import bad, benchmark, rows

SECOND = 10**9


def fields(lines: list[bytes], *paths: str) -> tuple[list[list[str]], list[bool]]:
    data, broken = json_lines.values(b"".join(line + b"\n" for line in lines), list(paths))
    return list(csv.reader(io.StringIO(data.decode()))), broken.tolist()


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


@given(st.lists(st.dictionaries(st.sampled_from("abt"), st.text() | st.integers() | st.booleans() | st.none())))
def test_any_values_come_out_as_json_reads_them(objects: list[dict[str, object]]) -> None:
    data, broken = json_lines.values("".join(json.dumps(o) + "\n" for o in objects).encode(), ["t", "a"])
    assert data.count(b"\n") == len(objects) == len(broken)
    assert not broken.any()
    for line, value in zip(data.decode().split("\n"), objects, strict=False):
        (read,) = list(csv.reader([line])) or [["", ""]]
        wanted = [value.get("t"), value.get("a")]
        shown = [str(v).lower() if isinstance(v, bool) else "" if v is None else str(v) for v in wanted]
        assert read == [re.sub(r"[\r\n]+", " ", text) for text in shown]


def test_from_lines_to_events(tmp_path: Path) -> None:
    lines = [
        b'{"at": {"t": 3}, "id": "a", "n": 5, "x": 1.5}',
        b"oops",
        b"",
        b'{"at": {"t": "1"}, "id": null, "n": 6}\r',
        b'{"at": {"t": "x"}}',
        b'{"at": {}}',
    ]
    (tmp_path / "f.jsonl").write_bytes(b"\n".join(lines))
    wanted = benchmark(
        tmp_path / "f.jsonl",
        format="jsonl",
        time={"column": "at.t", "unit": "s"},
        columns={"id": "string", "n": "int64", "x": "float64"},
        max_bad_fraction=0.7,
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
        ("f.jsonl", 6, 5, "empty time", lines[5]),
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
    (late,) = duckdb.sql(  # an oracle of its own: DuckDB reads the JSON
        f"""select count(*) filter (t < before) from (
              select t, max(t) over (order by n rows between unbounded preceding and 1 preceding) before from (
                select row_number() over () n, (json->>'time')::timestamptz t
                from read_csv('{out}/stream.csv', delim='\t', quote='', escape='', header=true)))"""
    ).fetchall()[0]
    assert late == math.ceil(0.2 * 300)


def test_a_path_that_is_missing_names_the_keys(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"at": {"t": 3}, "id": 1}\n')
    run(Call(["analyze", str(tmp_path / "f.jsonl"), "--time", "at.time", "--unit", "s"])).refused(
        "f.jsonl: line 1: --time: no value at 'at.time'; found 'at.t', 'id'"
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"separator": ","}, "separator: not for format jsonl, nor header and column_names; leave them out"),
        ({"header": True}, "separator: not for format jsonl"),
        ({"time": {"column": 0}}, "time: found column 0, allowed for jsonl: a path of keys, such as a.b"),
    ],
)
def test_what_json_lines_do_not_have_is_refused(more: dict[str, object], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        mistakes.check(Source, {"files": "f", "format": "jsonl", "time": {"column": "t"}} | more, lambda _: "source")
