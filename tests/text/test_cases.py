"""Files that were read wrongly, or refused without need, each in a few rows."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.config import Source
from streamgauge.streams.text.parse import parse
from streamgauge.streams.text.splits import header, source_splits
from tests.command import Call, run

ISO = "%Y-%m-%dT%H:%M:%S"
SECOND = 10**9
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN_S = int(BEGIN.timestamp())


def events(path: Path, data: bytes | str | None = None, split_bytes: int = 1 << 20, **source: Any) -> list[Any]:
    """Rows (event time in s from BEGIN on, line, columns), and reasons of bad lines, as the stage ingest reads them."""
    if data is not None:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    wanted = Source.model_validate({"files": str(path), **source})
    rows: list[Any] = []
    for split in source_splits(wanted, split_bytes):
        for block, beside, known in split.pieces(1 << 20):
            parsed = parse(block, split.layout, 0, beside, known)
            for _, time, line, *others in (tuple(row.values()) for row in parsed.events.to_pylist()):
                rows.append((time / SECOND - BEGIN_S, line.decode().rstrip("\r\n"), *others))
            rows += [bad["reason"] for bad in parsed.bad.to_pylist()] if parsed.bad else []
    return rows


def seconds(count: int, gap_s: int = 1) -> list[datetime]:
    return [BEGIN.replace(tzinfo=None) + timedelta(seconds=gap_s * i) for i in range(count)]


# -- Parquet


@pytest.mark.parametrize("deprecated", [True, False])
@pytest.mark.parametrize("far", [datetime(9999, 12, 31, 23, 59, 59), datetime(2262, 4, 12), datetime(1, 1, 1)])
def test_a_parquet_time_beyond_64_bits_is_a_bad_line(tmp_path: Path, deprecated: bool, far: datetime) -> None:
    """An INT96, in which Spark and Impala write times, holds any year, and wraps where it is read as nanoseconds."""
    table = pa.table({"ts": pa.array([*seconds(2), far, None, *seconds(1)], pa.timestamp("us")), "v": range(5)})
    pq.write_table(table, tmp_path / "f.parquet", use_deprecated_int96_timestamps=deprecated)
    found = events(tmp_path / "f.parquet", format="parquet", time={"column": "ts"}, columns={"v": "int64"})
    bad = "time does not fit into 64-bit ns"
    assert [row if isinstance(row, str) else (row[0], row[2]) for row in found] == [
        (0, 0), (1, 1), (0, 4), bad, "empty time"
    ]  # fmt: skip


def test_int96_keeps_its_nanoseconds(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([1767225600123456789, -1, -(10**9) - 1, None], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
    source = Source.model_validate(
        {"files": str(tmp_path / "f.parquet"), "format": "parquet", "time": {"column": "ts"}}
    )
    (split,) = source_splits(source, 1)
    ((block, beside, known),) = split.pieces(1 << 20)
    assert parse(block, split.layout, 0, beside, known).events["event_time"].to_pylist() == [
        1767225600123456789,
        -1,
        -(10**9) - 1,
    ]


def test_other_parquet_times_that_overflow(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([2**62, BEGIN_S], pa.timestamp("ms"))}), tmp_path / "f.parquet")
    assert isinstance(events(tmp_path / "f.parquet", format="parquet", time={"column": "ts"})[-1], str)
    days = pa.array([2_000_000, 20454], pa.date32())
    pq.write_table(pa.table({"ts": days}), tmp_path / "d.parquet")
    assert events(tmp_path / "d.parquet", format="parquet", time={"column": "ts"}) == [
        (0, "2026-01-01"), "time does not fit into 64-bit ns"
    ]  # fmt: skip
    numbers = pa.array([2**64 - 1, BEGIN_S * 10**9], pa.uint64())
    pq.write_table(pa.table({"ts": numbers}), tmp_path / "u.parquet")
    assert events(tmp_path / "u.parquet", format="parquet", time={"column": "ts", "unit": "ns"}) == [
        (0, str(BEGIN_S * 10**9)), "time does not fit into 64-bit ns"
    ]  # fmt: skip


def test_of_a_parquet_file_only_the_needed_columns_matter(tmp_path: Path) -> None:
    """A line holds the columns that have a text form, and those that are named."""
    table = pa.table({
        "tags": [[1], [2, 3]],
        "raw": pa.array([b"\xff\x00", b"ok"], pa.binary()),
        "price": pa.array([b"\xff" * 8, b"12345678"], pa.binary(8)),
        "s": pa.array([{"at": 1, "more": [1]}, {"at": 2, "more": []}]),
        "m": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "ts": pa.array(seconds(2), pa.timestamp("us")),
        "id": pa.array([b"\xff", b"k"], pa.binary()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "f.parquet")
    plain: dict[str, Any] = {"format": "parquet", "time": {"column": "ts"}}
    assert events(tmp_path / "f.parquet", **plain) == [
        (0, "1,2026-01-01 00:00:00.000000"),
        (1, "2,2026-01-01 00:00:01.000000"),
    ]
    named = {**plain, "columns": {"id": "string", "at": {"path": "s.at", "type": "int64"}}}
    assert events(tmp_path / "f.parquet", **named) == [
        (0, "1,2026-01-01 00:00:00.000000,ff", "ff", 1), (1, "2,2026-01-01 00:00:01.000000,k", "k", 2)
    ]  # fmt: skip
    by_index = {**plain, "time": {"column": 6}}
    assert events(tmp_path / "f.parquet", **by_index)[0][0] == 0
    source = Source.model_validate({"files": str(tmp_path / "f.parquet"), **plain})
    assert header(source) == b"s.at,ts\n"
    with pytest.raises(UserError, match=r"column tags \(list<.*\) has no text form; name another column"):
        events(tmp_path / "f.parquet", **{**plain, "time": {"column": "tags"}})


# -- records, lines, blanks


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "note", ['"first{}9,2031-01-01T00:00:00Z,a row{}last"', '"says ""hi""{}{}bye ""x"""', '"{}{}"']
)
def test_a_record_over_several_lines_is_refused_by_its_line(tmp_path: Path, end: str, note: str) -> None:
    rows = [f"{i},{at:{ISO}}Z,ok" for i, at in enumerate(seconds(400))]
    rows[200] = rows[200].removesuffix("ok") + note.format(end, end)
    (tmp_path / "f.csv").write_bytes(end.join(["id,ts,note", *rows, ""]).encode())
    for command in ("analyze", "init"):
        more = ["--time", "ts"] if command == "analyze" else ["--out", str(tmp_path / "b.yaml")]
        told = run(Call([command, str(tmp_path / "f.csv"), *more]))
        told.refused("f.csv: line 202: a quoted field goes on to line 204, allowed: a record a line")


def test_quotes_that_no_other_line_closes_are_bad_lines(tmp_path: Path) -> None:
    rows = [f"{at:{ISO}},x" for at in seconds(400)]
    rows[7], rows[9], rows[300], rows[301] = '2026-01-01T00:00:07,5" pipe', '1,"a', '2,"b', '3,4" pipe'
    (tmp_path / "f.csv").write_text("\n".join(["ts,note", *rows, ""]))
    found = run(Call(["analyze", str(tmp_path / "f.csv"), "--time", "ts", "--max-bad-fraction", "0.1", "--json"])).json
    assert found["events"] == 396


@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_of_carriage_returns_alone_are_named(tmp_path: Path, packed: bool) -> None:
    data = b"ts,v\r2026-01-01T00:00:00Z,1\r2026-01-01T00:00:01Z,2\r"
    (tmp_path / "f.csv").write_bytes(gzip.compress(data) if packed else data)
    for call in (
        ["init", str(tmp_path / "f.csv"), "--out", str(tmp_path / "b")],
        ["analyze", str(tmp_path / "f.csv"), "--time", "ts"],
    ):
        run(Call(call)).refused("f.csv: line 1: its lines end in a carriage return (CR) alone, allowed: a newline (LF)")


def test_blanks_around_values_are_left_out_as_around_names(tmp_path: Path) -> None:
    data = 'v, ts ,k\n 0 ,  2026-01-01 00:00:00, a b \n1,"2026-01-01 00:00:01"\t, " c"\n,2026-01-01 00:00:02,  \n'
    found = events(tmp_path / "f.csv", data, time={"column": "ts"}, columns={"v": "int64", "k": "string"})
    assert found == [
        (0, " 0 ,  2026-01-01 00:00:00, a b ", 0, "a b"),
        (1, '1,"2026-01-01 00:00:01"\t, " c"', 1, " c"),
        (2, ",2026-01-01 00:00:02,  ", None, None),
    ]


def test_numbers_with_exponents_and_decimal_commas(tmp_path: Path) -> None:
    data = "ts;x;n\n1767225600,25;1,5;7\n1,767225601E9;-0,5e3;1e3\n1.767.225.602;1,0;1\n1767225603;1.5;1\n"
    columns = {"x": "float64", "n": "int64"}
    time = {"column": "ts", "unit": "s"}
    found = events(tmp_path / "f.csv", data, separator=";", decimal="comma", time=time, columns=columns)
    assert found == [
        (0.25, "1767225600,25;1,5;7", 1.5, 7), (1, "1,767225601E9;-0,5e3;1e3", -500.0, 1000),
        "time is not a number of s", "x is not a number",
    ]  # fmt: skip
    data = '{"ts":1.767225600123e+18,"n":2.0e1}\n{"ts":1767225600124000000}\n{"ts":1.767225600125E18}\n'
    found = events(
        tmp_path / "f.jsonl", data, format="jsonl", time={"column": "ts", "unit": "ns"}, columns={"n": "int64"}
    )
    assert [(round(row[0], 3), row[2]) for row in found] == [(0.123, 20), (0.124, None), (0.125, None)]


# -- times


@pytest.mark.parametrize("gap", ["\u202f", "\u00a0", " ", "\u2009", "  "])
def test_blanks_of_unicode_before_pm(tmp_path: Path, gap: str) -> None:
    data = f'ts,v\n"1/1/2026, 3:04:05{gap}PM",1\n'
    found = events(tmp_path / "f.csv", data, time={"column": "ts", "format": "%m/%d/%Y, %I:%M:%S %p"})
    assert [row[0] for row in found] == [15 * 3600 + 245]


def test_two_columns_make_a_time(tmp_path: Path) -> None:
    data = "d,t,v\n01/01/2026,00.00.01,1\n02/01/2026,00.00.00,2\n,,3\n"
    time = {"columns": ["d", "t"], "format": "%d/%m/%Y %H.%M.%S"}
    assert [row if isinstance(row, str) else row[0] for row in events(tmp_path / "f.csv", data, time=time)] == [
        1, 86400, "empty time"
    ]  # fmt: skip
    log = "2026-01-01 00:00:05,250 INFO a b\n2026-01-01 00:00:06,000 INFO c\n"
    found = events(tmp_path / "f.log", log, separator=" ", header=False, time={"columns": [0, 1]})
    assert [row[0] for row in found] == [5.25, 6]
    table = {"d": pa.array([20454], pa.date32()), "t": pa.array([7_000_000], pa.time64("us"))}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    found = events(tmp_path / "f.parquet", format="parquet", time={"columns": ["d", "t"]})
    assert [row[0] for row in found] == [7]
    objects = '{"at":{"d":"2026-01-01","t":"00:00:09"}}\n'
    found = events(tmp_path / "f.jsonl", objects, format="jsonl", time={"columns": ["at.d", "at.t"]})
    assert [row[0] for row in found] == [9]


@settings(deadline=None, max_examples=30)
@given(
    start=st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)),
    hours=st.lists(st.integers(-30 * 24, 330 * 24), max_size=6),
)
def test_times_without_a_year_move_on_at_new_year(
    tmp_path_factory: pytest.TempPathFactory, start: datetime, hours: list[int]
) -> None:
    """Brute force: all years are tried in the oracle's stead, as the times are made from dates with their years."""
    start = start.replace(microsecond=0)
    moments = [start, *(start + timedelta(hours=hour) for hour in hours)]
    path = tmp_path_factory.getbasetemp() / "year.csv"
    data = "".join(f"{at:%b %d %H:%M:%S}\n" for at in moments)
    time = {"column": 0, "format": "%b %d %H:%M:%S", "year": start.year}
    found = events(path, data, header=False, time=time)
    assert [row[0] + BEGIN_S for row in found] == [int(at.replace(tzinfo=UTC).timestamp()) for at in moments]


def test_without_a_year_the_order_is_right_and_the_first_year_is_1970(tmp_path: Path) -> None:
    data = "Dec 31 23:59:58\ta\nJan  1 00:00:00\tb\nDec 31 23:59:59\tc\n"
    source: dict[str, Any] = {
        "separator": "\t", "header": False, "time": {"column": 0, "format": "%b %d %H:%M:%S"},
    }  # fmt: skip
    found = events(tmp_path / "f.tsv", data, **source)
    assert np.diff([row[0] for row in found]).tolist() == [2, -1]
    split_up = events(tmp_path / "f.tsv", None, split_bytes=1, **source)
    assert split_up == found


# -- JSON


@pytest.mark.parametrize("begin", ["", "\n\n", "\ufeff", "\ufeff \n"])
@pytest.mark.parametrize("name", ["f.json", "f.json.gz", "f.txt", "f.log.gz"])
def test_json_lines_are_told_by_their_content(tmp_path: Path, begin: str, name: str) -> None:
    data = (begin + "".join(f'{{ "ts": {BEGIN_S + i} }}\n' for i in range(9))).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    options = ["--time", "ts", "--unit", "s", "--max-bad-fraction", "0.5", "--json"]
    found = run(Call(["analyze", str(tmp_path / name), *options])).json
    assert (found["events"], found["out_of_order"]) == (9, 0)


@pytest.mark.parametrize("data", ['[{"ts": 1}, {"ts": 2}]', '\n[\n  {"ts": 1}\n]\n', "\ufeff[" + '{"ts":1},' * 10**6])
def test_a_json_array_is_told_at_once(tmp_path: Path, data: str) -> None:
    (tmp_path / "f.json").write_text(data)
    for call in (
        ["init", str(tmp_path / "f.json"), "--out", str(tmp_path / "b")],
        ["analyze", str(tmp_path / "f.json"), "--time", "ts"],
    ):
        run(Call(call)).refused(
            "f.json: found a JSON array, allowed: JSON lines, an object a line; convert it, as by: jq"
        )


def test_options_for_arrivals_years_commas_and_columns(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(
        "d;t;came;x\nDec 31;23:59:59;2026-01-01T00:00:00Z;1,5\nJan 1;00:00:00;2026-01-01T00:00:02Z;2\n"
    )
    reading = [
        "--separator",
        ";",
        "--time",
        "d,t",
        "--format",
        "%b %d %H:%M:%S",
        "--year",
        "2025",
        "--decimal",
        "comma",
    ]
    arrival = ["--arrival", "came", "--arrival-iso"]
    found = run(Call(["analyze", str(tmp_path / "f.csv"), *reading, *arrival, "--json"]))
    assert (found.json["events"], found.json["out_of_order"]) == (2, 0)
    assert "no year" not in found.err
    columns = ["--columns", "price=x:float64,came"]
    made = ["--target", "0", "--seed", "1", "--out", str(tmp_path / "o")]
    run(Call(["generate", str(tmp_path / "f.csv"), *reading, *arrival, *columns, *made]))
    (part,) = (tmp_path / "o").glob("*.parquet")
    assert pq.read_table(part).select(["event_time", "arrival_time", "price", "came"]).to_pylist() == [
        {
            "event_time": (BEGIN_S + i - 1) * SECOND,
            "arrival_time": (BEGIN_S + 2 * i) * SECOND,
            "price": price,
            "came": came,
        }
        for i, (price, came) in enumerate([(1.5, "2026-01-01T00:00:00Z"), (2.0, "2026-01-01T00:00:02Z")])
    ]
    told = run(Call(["analyze", str(tmp_path / "f.csv"), *reading[:6]]))
    assert "--format has no year: the first time is taken for one of 1970; give --year" in told.err
    run(Call(["analyze", str(tmp_path / "f.csv"), *reading, "--arrival-iso"])).refused(
        "--arrival: this option is missing"
    )


def test_comments_are_no_events_and_do_not_count_as_bad(tmp_path: Path) -> None:
    (tmp_path / "f.log").write_text(
        "#Version: 1\n#Fields: date time v\n2026-01-01 00:00:01 a\n#Date: x\n2026-01-01 00:00:00 b\n"
    )
    reading = ["--separator", "blanks", "--no-header", "--time", "0,1", "--comment", "#", "--json"]
    found = run(Call(["analyze", str(tmp_path / "f.log"), *reading])).json
    assert (found["events"], found["out_of_order"], found["quarantined"]) == (2, 1, 3)
    run(Call(["analyze", str(tmp_path / "f.log"), *reading[:5]])).refused("line 1: ", "lines are bad")
