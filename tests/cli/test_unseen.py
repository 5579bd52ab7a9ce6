"""Small files of every kind, as people have them: what `init` writes of them, or its one line of refusal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import Call, run

BEGIN = datetime(2026, 3, 25, 9, tzinfo=UTC)


def rows(show: str, count: int = 30) -> str:
    """Lines, one a second; show: with {at}, {s} (seconds since the epoch), {i}."""
    moments = [BEGIN + timedelta(seconds=i) for i in range(count)]
    return "".join(show.format(at=at, s=int(at.timestamp()), i=i) for i, at in enumerate(moments))


def read(folder: Path, data: str, *more: str) -> tuple[dict[str, Any], str, str]:
    """(the keys of `source`, the first event's time, all that is printed) of init; check accepts the file, too."""
    (folder / "f.log").write_text(data)
    out = folder / "b.yaml"
    told = run(Call(["init", str(folder / "f.log"), "--out", str(out), *more]))
    assert told.code == 0, told.err
    plan = run(Call(["check", str(out), "--artifacts", str(folder / "a")]))
    assert plan.code == 0, plan.err
    source = yaml.safe_load(out.read_text())["source"]
    return source, told.out.split("\n")[2].split()[0], told.out


@pytest.mark.parametrize(
    ("data", "time", "first"),
    [
        ("t;v\n" + rows("{at:%d/%m/%Y %I:%M:%S} a.\u00a0m.;{i}\n"), "%d/%m/%Y %I:%M:%S %p", "09:00:00Z"),
        ("t,v\n" + rows("{at:%m/%d/%Y %I:%M:%S%p},{i}\n"), "%m/%d/%Y %I:%M:%S%p", "09:00:00Z"),
        ("t,v\n" + rows("25-MAR-26 09.00.{i:02}.000000 PM,{i}\n"), "%d-%b-%y %I.%M.%S.%f %p", "21:00:00Z"),
        ("t,v\n" + rows("{at:%Y-%m-%d %H:%M:%S}.5 +0530,{i}\n"), "%Y-%m-%d %H:%M:%S.%f %z", "03:30:00.5Z"),
        ("t,v\n" + rows("{at:%Y/%m/%d %H:%M:%S} +0000 UTC,{i}\n"), "%Y/%m/%d %H:%M:%S %z %Z", "09:00:00Z"),
        ("t;v\n" + rows("{at:%A, %d %B %Y %H:%M:%S};{i}\n"), "%A, %d %B %Y %H:%M:%S", "09:00:00Z"),
        ("t;v\n" + rows("{at:%a, %d %b %Y %H:%M:%S} GMT;{i}\n"), "%a, %d %b %Y %H:%M:%S %Z", "09:00:00Z"),
        ("t,v\n" + rows("{at:%Y%m%d%H%M%S}123,{i}\n"), "%Y%m%d%H%M%S%f", "09:00:00.123Z"),
        (rows("[{at:%Y-%m-%d %H:%M:%S},5] a, b\n", 9) + "[2026-03-25 09:00:09,5] c\n",
         "[%Y-%m-%d %H:%M:%S,%f]", "09:00:00.5Z"),
        (rows("[{at:%a %b %d %H:%M:%S}.5 2026] [core:error] x\n", 9) + rows("[{at:%a %b %d %H:%M:%S}.5 2026] y z\n", 9),
         "[%a %b %d %H:%M:%S.%f %Y]", "09:00:00.5Z"),
        (rows("1.2.3.4 - - [{at:%d/%b/%Y:%H:%M:%S} +0530] \"GET / HTTP/1.1\" 200 {i}\n"),
         "[%d/%b/%Y:%H:%M:%S %z]", "03:30:00Z"),
        ("Datum;Wert;Uhrzeit\n" + rows("{at:%d.%m.%Y};{i},5;{at:%H:%M:%S}\n"), "%d.%m.%Y %H:%M:%S", "09:00:00Z"),
        ("year,month,day,hour,min,sec,v\n" + rows("2026,3,25,9,0,{i},1\n"), "%Y %m %d %H %M %S", "09:00:00Z"),
        ("date,time,v\n" + rows("{at:%Y%m%d},{at:%H%M%S},{i}\n"), None, "09:00:00Z"),
        (rows("<34>1 {at:%Y-%m-%dT%H:%M:%S}Z host app - x\n") + "<34>1 2026-03-25T09:00:31Z host app - y z\n",
         None, "09:00:00Z"),
        ("t^v\n" + rows("{at:%Y-%m-%d %H:%M:%S}^{i}\n"), None, "09:00:00Z"),
    ],
)  # fmt: skip
def test_times_are_found_and_read(tmp_path: Path, data: str, time: str | None, first: str) -> None:
    source, at, said = read(tmp_path, data)
    assert source["time"].get("format") == time
    assert at == f"2026-03-25T{first}"
    assert "doubt     also possible" not in said


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ("# made by\n# a tool\nts,v\n", {"comment": "#", "columns": {"v": "int64"}}),
        ("-- made by a tool\nts,v\n", {"comment": "--", "columns": {"v": "int64"}}),
        ("#ts,v\n", {"time": {"column": "#ts", "unit": "s"}, "columns": {"v": "int64"}}),
        ("ts,2025\n", {"columns": {"column_1": {"path": "2025", "type": "int64"}}}),
        ("ts,\n", {"columns": {"column_1": {"path": 1, "type": "int64"}}}),
        ("", {"header": False, "time": {"column": 0, "unit": "s"},
              "columns": {"column_1": {"path": 1, "type": "int64"}}}),
    ],
)  # fmt: skip
def test_the_first_lines_are_told_apart(tmp_path: Path, data: str, keys: dict[str, Any]) -> None:
    source, at, said = read(tmp_path, data + rows("{s},{i}\n"))
    assert source == {"files": "f.log", "time": {"column": "ts", "unit": "s"}} | keys
    assert at == "2026-03-25T09:00:00Z"
    assert "doubt" not in said


def test_lines_are_numbered_from_the_beginning_whatever_stands_before_the_header(tmp_path: Path) -> None:
    data = "# a\n# b\nts,v\n" + rows("{s},{i}\n") + "0,1\n" + rows("{s},{i}\n", 1)
    _, _, said = read(tmp_path, data)
    assert "hint      1 event (line 34) is at 1970" in said
    (tmp_path / "f.log").write_text(data)
    found = run(
        Call(["analyze", str(tmp_path / "f.log"), "--time", "ts", "--unit", "s", "--comment", "#", "--json"])
    ).json
    assert [hint["lines"] for hint in found["hints"]] == [[34]]


def test_zone_and_year_hold_for_a_guessed_time(tmp_path: Path) -> None:
    source, at, _ = read(tmp_path, "t,v\n" + rows("{at:%Y-%m-%d %H:%M:%S},{i}\n"), "--zone", "Asia/Tokyo")
    assert (source["time"], at) == ({"column": "t", "zone": "Asia/Tokyo"}, "2026-03-25T00:00:00Z")
    (tmp_path / "b.yaml").unlink()
    source, at, said = read(tmp_path, "t,v\n" + rows("{at:%b %d %H:%M:%S},{i}\n"), "--year", "1999")
    assert (source["time"]["year"], at, "doubt" in said) == (1999, "1999-03-25T09:00:00Z", False)
    (tmp_path / "b.yaml").unlink()
    _, _, said = read(tmp_path, "t,v\n" + rows("{s},{i}\n"), "--zone", "Asia/Tokyo")
    assert "doubt     --zone has no effect" in said


def test_kinds_of_ids_and_numbers(tmp_path: Path) -> None:
    source, _, _ = read(tmp_path, "ts,phone,big,gain\n" + rows("{s},+49170{i:06},{i}e308,+{i}\n"))
    assert source["columns"] == {"phone": "string", "big": "string", "gain": "int64"}


def test_json_lines_whose_first_has_no_time(tmp_path: Path) -> None:
    source, at, said = read(tmp_path, '{"ts": null}\n{"a": 1}\n' + rows('{{"ts": {s}, "a": {i}}}\n', 300))
    assert (source["time"], at) == ({"column": "ts", "unit": "s"}, "2026-03-25T09:00:00Z")
    assert "300 of 302 lines read" in said


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("f.csv", b"t,v\n" + rows("{s},{i}\r").encode(), "line 2: its lines end in a carriage return (CR) alone"),
        ("f.csv", b"t,v\r\r\n" + rows("{s},{i}\r\r\n").encode(), "convert them, as by: tr -d '\\r'"),
        ("f.csv", ("t,v\n" + rows("{s},{i}\n")).encode("utf-16"), "its text is UTF-16 or UTF-32"),
        ("f.csv", ("t,v\n" + rows("{s},{i}\n")).encode("utf-16-be"), "iconv -f UTF-16 -t UTF-8"),
        ("f.csv", b't,"v\nw"\n' + rows("{s},{i}\n").encode(), "line 1: a quoted name goes on to line 2"),
        ("f.csv", b"t,v\n" + rows('{s},{i}" pipe\n').encode(), "set source.quote: null if quotes mean nothing"),
        ("f.csv", b"\n\n", "no line of data"),
        ("f.csv", b"# a\n# b\n", "no column reads as a time"),
        ("f.jsonl", b"ts,v\n1,2\n", "found no line with a JSON object, but 'ts,v', allowed: JSON lines"),
        ("f.jsonl", b'{\n  "ts": 1\n}\n', "jq -c . objects.json > lines.jsonl"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    run(Call(["init", str(tmp_path / name), "--out", str(tmp_path / "b.yaml")])).refused(f"{name}: ", said)


def test_check_hints_at_what_lies_beyond_the_first_lines_of_a_small_file(tmp_path: Path) -> None:
    read(tmp_path, "ts,v\n" + rows("{s},{i}\n", 1500) + "0,1\n" + rows("{s},{i}\n", 1))
    plan = run(Call(["check", str(tmp_path / "b.yaml"), "--artifacts", str(tmp_path / "a"), "--json"])).json
    assert [(hint["kind"], hint["lines"]) for hint in plan["sample"]["hints"]] == [("clock_at_1970", [1502])]
    assert plan["sample"]["lines"] == 1000


@pytest.mark.parametrize(
    ("data", "time"),
    [
        ("ts,delta\n" + rows("{at:%Y-%m-%d %H:%M:%S},-10{i:02}\n"), {"column": "ts"}),
        ("ts,tz\n" + rows("{at:%Y-%m-%d %H:%M:%S},-0330\n"),
         {"columns": ["ts", "tz"], "format": "%Y-%m-%d %H:%M:%S %z"}),
        ("date,duration\n" + rows("2026-03-1{i},00:0{i}:00\n", 9), {"column": "date"}),
        ("t,v\n" + rows("Feb 29 {at:%H:%M:%S},{i}\n"), {"column": "t", "format": "%b %d %H:%M:%S", "year": 2024}),
    ],
)  # fmt: skip
def test_what_stands_beside_a_time_is_not_always_a_part_of_it(tmp_path: Path, data: str, time: dict[str, Any]) -> None:
    assert read(tmp_path, data)[0]["time"] == time
