"""Tests the text formats of a stream that the command generate writes, and which columns it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command import Answer, Call, run

CLICKS = ["user;ts;amount", "ü1;1000;3.5", "u2;1001;-", "u\t3;1003;7", "u4;1002;0.25"]


def generate(file: Path, *more: str) -> Answer:
    out = file.parent / "out"
    return run(Call(["generate", str(file), "--target", "0", "--seed", "1", "--out", str(out), *more]))


def clicks(folder: Path) -> Path:
    file = folder / "clicks.csv"
    file.write_bytes("".join(f"{line}\r\n" for line in CLICKS).encode())
    return file


TEXT = ("--time", "ts", "--unit", "ms", "--separator", ";", "--order", "event_time")


def objects(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_json_lines_have_times_columns_and_the_line_in_the_stream_s_order(tmp_path: Path) -> None:
    answer = generate(clicks(tmp_path), *TEXT, "--jsonl", "--columns", "user,amount")
    assert f"written       {tmp_path / 'out' / 'stream.jsonl'}" in answer.out
    assert objects(tmp_path / "out" / "stream.jsonl") == [
        {"ingestion_time": ms * 10**6, "seq": seq, "event_time": ms * 10**6, "line": CLICKS[line], "user": user,
         "amount": amount}
        for seq, (line, ms, user, amount) in enumerate((
            (1, 1000, "ü1", "3.5"), (2, 1001, "u2", "-"), (4, 1002, "u4", "0.25"), (3, 1003, "u\t3", "7"),
        ))
    ]  # fmt: skip


def test_lines_for_kafka_s_producer_have_the_first_column_as_their_key(tmp_path: Path) -> None:
    generate(clicks(tmp_path), *TEXT, "--kafka", "--columns", "ts")
    assert (tmp_path / "out" / "stream.tsv").read_bytes().decode().split("\r\n") == [
        f"{CLICKS[n].split(';')[1]}\t{CLICKS[n]}" for n in (1, 2, 4, 3)
    ] + [""]


def test_a_stream_lies_where_a_file_s_uri_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    answer = generate(clicks(tmp_path), *TEXT, "--kafka", "--out", f"file://{tmp_path}/there")
    assert f"written       {tmp_path}/there/stream.tsv" in answer.out
    assert (tmp_path / "there" / "manifest.json").is_file()
    assert list((tmp_path / "work").iterdir()) == []


def test_without_a_column_the_key_is_empty(tmp_path: Path) -> None:
    generate(clicks(tmp_path), *TEXT, "--kafka")
    assert (tmp_path / "out" / "stream.tsv").read_bytes().startswith(b"\t")


def test_an_object_of_json_lines_stays_an_object(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text('{"u": 1, "at": {"ms": 5}}\n{"u": [2, "x"], "at": {"ms": 6}}\n')
    generate(file, "--time", "at.ms", "--unit", "ms", "--jsonl")
    told = objects(tmp_path / "out" / "stream.jsonl")
    assert [one["line"] for one in told] == [{"u": 1, "at": {"ms": 5}}, {"u": [2, "x"], "at": {"ms": 6}}]


def test_columns_of_parquet_keep_their_types(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    table = {"id": [1, 2], "at": pa.array([1000, 2000], pa.timestamp("ms")), "v": [0.5, None], "n": ["x", "y"]}
    pq.write_table(pa.table(table), file)
    generate(file, "--time", "at", "--jsonl")
    kept = pq.read_table(tmp_path / "out" / "part-00000.parquet")
    assert {name: str(kept.schema.field(name).type) for name in ("id", "v", "n")} == {
        "id": "int64", "v": "double", "n": "string",
    }  # fmt: skip
    assert kept.select(["id", "v", "n"]).to_pylist() == [{"id": 1, "v": 0.5, "n": "x"}, {"id": 2, "v": None, "n": "y"}]
    assert [(one["id"], one["v"], one["n"]) for one in objects(tmp_path / "out" / "stream.jsonl")] == [
        (1, 0.5, "x"), (2, None, "y"),
    ]  # fmt: skip


@pytest.mark.parametrize("wanted", ["none", "user,", "user;amount"])
def test_an_unknown_column_is_one_line_with_those_that_there_are(tmp_path: Path, wanted: str) -> None:
    generate(clicks(tmp_path), *TEXT, "--columns", wanted).refused(
        "--columns: found", "allowed: all, or some of user, ts"
    )
    assert not (tmp_path / "out").exists()


def test_types_of_parquet_come_from_its_schema_and_no_value_makes_an_event_bad(tmp_path: Path) -> None:
    """The first thousand rows look like other types."""
    file, rows = tmp_path / "rows.parquet", 1_500
    late = [n >= 1_200 for n in range(rows)]
    tips = [2.5 if one else 0.0 for one in late]
    table = {
        "at": pa.array(range(rows), pa.timestamp("ms")),
        "tip": pa.array(tips, pa.float64()),
        "code": [f"A{n}" if one else f"{n}" for n, one in enumerate(late)],
        "hash": pa.array([2**64 - 1 - n if one else n for n, one in enumerate(late)], pa.uint64()),
    }
    table |= {f"more{n}": pa.array(range(rows), pa.int32()) for n in range(9)}
    pq.write_table(pa.table(table), file)
    answer = generate(file, "--time", "at")
    assert "left out" not in answer.out
    kept = pq.read_table(tmp_path / "out" / "part-00000.parquet")
    kinds = {name: str(kept.schema.field(name).type) for name in table if name != "at"}
    assert kinds == {"tip": "double", "code": "string", "hash": "string"} | {f"more{n}": "int64" for n in range(9)}
    assert kept.num_rows == rows
    assert kept.column("tip").to_pylist() == tips


def test_columns_are_those_that_the_options_describe(tmp_path: Path) -> None:
    file = tmp_path / "e.txt"
    file.write_text(
        "when|" + "|".join(f"c{n}" for n in range(12)) + "\n" + ("Mar-05-2024 10:00|" + "7|" * 11 + "7\n") * 3
    )
    given = ("--time", "when", "--format", "%b-%d-%Y %H:%M", "--separator", "pipe")
    generate(file, *given, "--columns", "c11,c3:string,c4:float64", "--jsonl")
    (first, *_) = objects(tmp_path / "out" / "stream.jsonl")
    assert {name: first[name] for name in ("c11", "c3", "c4")} == {"c11": 7, "c3": "7", "c4": 7.0}
    generate(file, *given, "--no-header", "--columns", "all").refused("found the name 'when'", "the file has no header")
    (tmp_path / "out").rename(tmp_path / "done")
    generate(file, *given, "--columns", "c1:text").refused("columns.c1: found 'text'")


def test_what_json_and_kafka_cannot_take_is_null_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_text("t,v,k\n1,nan,a\n2,inf,b\n3,2.5,c\td\n")
    given = ("--time", "t", "--unit", "s")
    generate(file, *given, "--columns", "v:float64", "--jsonl")
    assert [one["v"] for one in objects(tmp_path / "out" / "stream.jsonl")] == [None, None, 2.5]
    (tmp_path / "out").rename(tmp_path / "done")
    generate(file, *given, "--columns", "k", "--kafka").refused("--kafka: a value of the key, the column k, has a tab")
    assert not (tmp_path / "out").exists()


def test_a_generation_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    clicks(tmp_path)
    before = {*tmp_path.rglob("*")}
    out = tmp_path / "a" / "b" / "c"
    wrong = ["generate", str(tmp_path / "clicks.csv"), "--target", "99.9", "--seed", "1", "--out", str(out), *TEXT]
    assert run(Call(wrong)).code == 2
    assert {*tmp_path.rglob("*")} == before
