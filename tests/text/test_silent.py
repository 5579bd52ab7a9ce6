"""Inputs that could be read wrongly without a word: each is read rightly, doubted, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.config import Source
from streamgauge.descriptions.source import TimeColumn
from streamgauge.streams.text import beyond
from streamgauge.streams.text.parse import layout_of
from streamgauge.streams.text.patterns import pieces
from streamgauge.streams.text.sample import sample
from tests.command import Call, run
from tests.text.test_cases import BEGIN_S, events

TS = {"column": "ts", "unit": "s"}


def source(path: Path, text: str, **more: Any) -> Source:
    path.write_text(text)
    return Source.model_validate({"files": str(path), "time": TS, **more})


@pytest.mark.parametrize(
    ("more", "doubted"),
    [
        ({"time": {"column": 0, "unit": "s"}}, True),
        ({"column_names": ["ts", "u"]}, True),
        ({"column_names": ["ts", "u"], "header": False}, False),
    ],
)
def test_a_first_event_that_is_taken_for_names_is_doubted(tmp_path: Path, more: dict[str, Any], doubted: bool) -> None:
    looked = sample(source(tmp_path / "f.csv", "1700000000,a\n1700000001,b\n", **more))
    said = (
        "warning: source.header: '1700000000,a' is taken for names, but reads as an event; set header: false if it is"
    )
    assert [doubt.startswith(said) for doubt in looked.doubts] == [True] * doubted
    assert looked.lines == (1 if doubted else 2)


def test_names_are_no_event(tmp_path: Path) -> None:
    assert sample(source(tmp_path / "f.csv", "# made by x\nts,u\n1700000000,a\n", comment="#")).doubts == []


def test_a_line_of_more_fields_than_the_header_is_bad_as_its_columns_are_shifted(tmp_path: Path) -> None:
    rows = ["Smith,1", "Smith, John,3", '"Smith, John",3', "A,4,,"]
    text = "ts,name,n\n" + "".join(f"{BEGIN_S + n},{row}\n" for n, row in enumerate(rows))
    read = events(tmp_path / "f.csv", text, time=TS, columns={"name": "string", "n": "string"})
    assert [row if isinstance(row, str) else (row[0], *row[2:]) for row in read] == [
        (0.0, "Smith", "1"), (2.0, "Smith, John", "3"), (3.0, "A", "4"), "more than 3 fields",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["1,a,b\n", "1,a,b\n2,c,d\n", "1,a,,\n", "1,a,b\n2,c\n3,d,,e\n"])
def test_fields_beyond_the_header_s_are_told_by_any_mixture_of_lines(tmp_path: Path, text: str) -> None:
    """A line is bad if any text is behind its second field, as a brute force finds."""
    read = events(tmp_path / "f.csv", f"ts,u\n{text}", time=TS)
    assert sum(isinstance(row, str) for row in read) == sum(any(line.split(",")[2:]) for line in text.splitlines())


def test_without_a_header_s_names_later_fields_may_be_anything(tmp_path: Path) -> None:
    read = events(tmp_path / "f.csv", f"{BEGIN_S},a,b,c\n", header=False, time={"column": 0, "unit": "s"})
    assert [row[0] for row in read] == [0.0]


def test_too_many_longer_lines_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"line 2: more than 2 fields: '1,a,b'; 1 of 1 .* quote fields that hold a sep"):
        sample(source(tmp_path / "f.csv", "ts,u\n1,a,b\n"))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("dd/mm/yyyy", "minutes (%M, mm) without an hour; a month is %m or MM"),
        ("%m/%d/%Y %H:%M:%S %p", "AM or PM without an hour from 1 to 12, which is %I or hh"),
        ("%Y-%m-%d %j", "a day of the year beside a month or a day; give one"),
    ],
)
def test_patterns_that_no_time_has_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        pieces(pattern)
    assert str(refused.value) == f"format: found {pattern!r}, which has {why}"


def test_whole_numbers_of_a_parquet_file_may_have_a_pattern(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([20260102, 20260101], pa.int64())}), tmp_path / "f.parquet")
    time = {"column": "ts", "format": "%Y%m%d"}
    read = events(tmp_path / "f.parquet", format="parquet", time=time)
    assert [row[0] for row in read] == [86400.0, 0.0]


def test_a_parquet_file_may_begin_with_an_empty_row_group(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([1, 2], pa.int64())})
    with pq.ParquetWriter(tmp_path / "f.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    looked = sample(Source.model_validate({"files": str(tmp_path / "f.parquet"), "format": "parquet", "time": TS}))
    assert (looked.lines, looked.bad) == (2, [])


def test_bytes_of_each_kind_become_text(tmp_path: Path) -> None:
    kinds = {"a": pa.binary(), "b": pa.large_binary(), "c": pa.binary(2)}
    columns = {name: pa.array([b"\xff\x01", b"ok"], kind) for name, kind in kinds.items()}
    pq.write_table(pa.table({"ts": pa.array([BEGIN_S, BEGIN_S + 1]), **columns}), tmp_path / "f.parquet")
    read = events(tmp_path / "f.parquet", format="parquet", time=TS, columns=dict.fromkeys(kinds, "string"))
    assert [row[2:] for row in read] == [("ff01",) * 3, ("ok",) * 3]


def test_a_wrong_unit_beside_columns_of_records_is_a_hint() -> None:
    keys = {"bootstrap": "h:1", "topic": "t", "values": "json"}
    columns = {"part": {"path": "kafka.partition", "type": "int64"}}
    topic = Source.model_validate({"format": "kafka", "kafka": keys, "time": {"column": "t", "unit": "ms"},
                                   "columns": columns})  # fmt: skip
    layout = layout_of(topic, ["t"], "topic")
    (hint,) = beyond.hints(layout, [("topic", 7, b'{"t":1700000000000000000}')])
    assert (hint.kind, hint.lines) == ("two_units", (7,))


def test_quotes_far_apart_in_a_log_mean_nothing(tmp_path: Path) -> None:
    lines = [f"2026-01-01T00:{n // 60:02}:{n % 60:02} host app[{n}]:{' went on' * (n % 3)}" for n in range(600)]
    lines[0] += ' unexpected "abc'
    lines[501] += ' width 5" pipe'
    (tmp_path / "f.log").write_text("\n".join([*lines, ""]))
    told = run(Call(["init", str(tmp_path / "f.log"), "--out", str(tmp_path / "b.yaml")]))
    assert told.code == 0, told.err
    assert "quote: null" in (tmp_path / "b.yaml").read_text()


def test_a_pattern_that_reads_all_times_goes_before_one_that_reads_most(tmp_path: Path) -> None:
    """Reads a thousand days from the 1st to the 12th of a month, but for four, the 13th of January as in the US."""
    days = [f"0{1 + n % 9}/{1 + n % 12:02}/2026 00:{n % 60:02}" for n in range(1000)]
    for n in (3, 300, 600, 900):
        days[n] = "01/13/2026 00:00"
    (tmp_path / "f.csv").write_text("\n".join(["ts,u", *(f"{day},a" for day in days), ""]))
    told = run(Call(["init", str(tmp_path / "f.csv"), "--out", str(tmp_path / "b.yaml")]))
    assert "%m/%d/%Y %H:%M" in (tmp_path / "b.yaml").read_text()
    assert "which is meant?" not in told.out


def test_the_first_bad_line_is_no_comment(tmp_path: Path) -> None:
    text = "# made by x\n" + "1700000000,a\n" * 50
    given = source(tmp_path / "f.csv", text, comment="#", header=False, time={"column": 0})
    with pytest.raises(
        UserError, match=r"line 2: time is not ISO-8601: '1700000000,a'; 51 of 51 .* source\.time\.unit"
    ):
        sample(given)


@pytest.mark.parametrize(
    ("pattern", "is_local"),
    [
        ("yyyy-MM-dd HH:mm:ssXXX", False),
        ("yyyy-MM-dd'X' HH:mm", True),
        ("%Y-%m-%dT%H:%M:%SZ", True),
        ("%Y-%m-%d %H:%M:%S%z", False),
        (None, True),
    ],
)
def test_times_with_an_offset_are_of_no_zone(pattern: str | None, is_local: bool) -> None:
    assert TimeColumn(column="t", format=pattern, zone="Europe/Berlin").is_local is is_local
