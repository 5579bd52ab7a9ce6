"""A stranger's first minute: init on unlike files writes a benchmark file by which check reads all lines."""

from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.config import load
from tests.command import Answer, Call, run

BEGIN = datetime(2024, 3, 5, 22, 15, 29, 250_000, UTC)
MOMENTS = [BEGIN + timedelta(milliseconds=777 * i) for i in range(400)]


def lines(show: str) -> list[str]:
    """Lines, one a moment; show: with {ms}, {at} (the moment), {i}."""
    return [show.format(ms=int(at.timestamp() * 1000), at=at, i=i) for i, at in enumerate(MOMENTS)]


def written(path: Path, header: str, show: str) -> Path:
    data = "".join(f"{line}\n" for line in ([header] if header else []) + lines(show)).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def parquet(path: Path) -> Path:
    table = {"id": list(range(400)), "seen": pa.array(MOMENTS, pa.timestamp("us", "UTC")), "v": [1.5] * 400}
    pq.write_table(pa.table(table), path)
    return path


APACHE = '10.0.0.{i} - - [{at:%d/%b/%Y:%H:%M:%S} -0700] "GET /a?b=1 HTTP/1.1" 200 {i}'
STEMS = {
    "epoch-ms with semicolons": lambda at: (
        written(at / "clicks.csv", "user;ts;amount", "u{i};{ms};{i}.5"),
        {"separator": ";", "time": {"column": "ts", "unit": "ms"},
         "columns": {"user": "string", "amount": "float64"}},
        MOMENTS[0],
    ),
    "ISO with offsets": lambda at: (
        written(at / "log.csv.gz", "received,event_time,n", "{ms},{at:%Y-%m-%dT%H:%M:%S.%f}+00:00,{i}"),
        {"time": {"column": "event_time"}, "columns": {"received": "int64", "n": "int64"}},
        MOMENTS[0],
    ),
    "Parquet": lambda at: (
        parquet(at / "rows.parquet"),
        {"format": "parquet", "time": {"column": "seen"}, "columns": {"id": "int64", "v": "float64"}},
        MOMENTS[0],
    ),
    "JSON lines": lambda at: (
        written(at / "events.jsonl", "", '{{"user": "u{i}", "at": {{"ms": {ms}}}, "n": {i}}}'),
        {"format": "jsonl", "time": {"column": "at.ms", "unit": "ms"}, "columns": {"user": "string", "n": "int64"}},
        MOMENTS[0],
    ),
    "Apache log": lambda at: (
        written(at / "access.log", "", APACHE),
        {"separator": " ", "header": False,
         "time": {"columns": [3, 4], "format": "[%d/%b/%Y:%H:%M:%S %z]"},
         "columns": {f"column_{k}": {"path": k, "type": "int64" if k in (6, 7) else "string"}
                     for k in (0, 1, 2, 5, 6, 7)}},
        (MOMENTS[0] + timedelta(hours=7)).replace(microsecond=0),
    ),
    "tabs, German dates, no header": lambda at: (
        written(at / "m.tsv", "", "{i}\tsensor\t{at:%d.%m.%Y %H:%M:%S}"),
        {"separator": "\t", "header": False, "time": {"column": 2, "format": "%d.%m.%Y %H:%M:%S"},
         "columns": {"column_0": {"path": 0, "type": "int64"}, "column_1": {"path": 1, "type": "string"}}},
        MOMENTS[0].replace(microsecond=0),
    ),
    "compact times": lambda at: (
        written(at / "c.csv", "id,when", "{i},{at:%Y%m%d%H%M%S}"),
        {"time": {"column": "when", "format": "%Y%m%d%H%M%S"}, "columns": {"id": "int64"}},
        MOMENTS[0].replace(microsecond=0),
    ),
}  # fmt: skip


def init(file: Path, *more: str) -> Answer:
    return run(Call(["init", str(file), "--out", str(file.parent / "b.yaml"), *more]))


@pytest.mark.parametrize("make", STEMS.values(), ids=STEMS)
def test_each_guess_is_right_and_check_accepts_it(tmp_path: Path, make: Any) -> None:
    file, source, first = make(tmp_path)
    told = init(file)
    assert told.code == 0, told.err
    benchmark = yaml.safe_load((tmp_path / "b.yaml").read_text())
    assert benchmark["source"] == {"files": file.name, **source}
    assert [e.get("target", e.get("target_percent")) for e in benchmark["experiments"]] == ["source", 20]
    assert f"{first.astimezone(UTC):%Y-%m-%dT%H:%M:%S}" in told.out
    assert "400 of 400 lines read" in told.out
    found = run(Call(["check", str(tmp_path / "b.yaml"), "--artifacts", str(tmp_path / "a"), "--json"])).json
    assert (found["sample"]["lines"], found["sample"]["events"]) == (400, 400)
    assert found["cells"] == ["as_it_came.all.spark", "late20.all.spark"]


def test_the_delay_lets_a_fifth_be_late(tmp_path: Path) -> None:
    init(written(tmp_path / "f.csv", "ts", "{ms}"))
    late = yaml.safe_load((tmp_path / "b.yaml").read_text())["experiments"][1]
    options = ["--time", "ts", "--unit", "ms", "--target", "20", "--seed", "1", "--max", late["delay"]["max"], "--json"]
    made = run(Call(["generate", str(tmp_path / "f.csv"), *options, "--out", str(tmp_path / "o")])).json
    assert made["achieved_out_of_order"] == 80


def test_what_is_in_doubt_is_told(tmp_path: Path) -> None:
    """Days may be the fifth of March or the third of May, and two columns are times."""
    file = written(tmp_path / "f.csv", "created,time", "{at:%m/%d/%Y %H:%M:%S},{ms}")
    told = init(file)
    assert "time      column time, unit ms" in told.out
    assert "doubt     also possible: --time created" in told.out
    (tmp_path / "b.yaml").unlink()
    told = init(file, "--time", "created")
    assert "doubt     %d/%m/%Y %H:%M:%S and %m/%d/%Y %H:%M:%S read all times; which is meant?" in told.out
    assert "# %d/%m/%Y" in (tmp_path / "b.yaml").read_text()


def test_milliseconds_that_are_not_padded_are_doubted(tmp_path: Path) -> None:
    text = "".join(f"20171223-22:15:29:{5 * i}\n" for i in range(200))
    (tmp_path / "f.csv").write_text(f"t\n{text}")
    told = init(tmp_path / "f.csv")
    assert yaml.safe_load((tmp_path / "b.yaml").read_text())["source"]["time"]["format"] == "%Y%m%d-%H:%M:%S:%L"
    assert "doubt" not in told.out


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a,b\nx,y\n", "f.csv: no column reads as a time (columns: 'a', 'b'); name it by --time, and its --unit"),
        ("", "f.csv: no line of data"),
        ("a,b\n", "f.csv: no line of data, only a header"),
        ("\n\n", "f.csv: no line of data"),
        ("t,v\n2026-03-05 09:00:00 EST,1\n", "first values: '2026-03-05 09:00:00 EST'"),
    ],
)
def test_a_file_without_a_time(tmp_path: Path, data: str, said: str) -> None:
    (tmp_path / "f.csv").write_text(data)
    init(tmp_path / "f.csv").refused(said)
    assert not (tmp_path / "b.yaml").exists()


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("mine")
    init(written(tmp_path / "f.csv", "ts", "{ms}")).refused("b.yaml: exists already")
    assert (tmp_path / "b.yaml").read_text() == "mine"
    run(Call(["init", str(tmp_path / "none.csv")])).refused("none.csv: no such source file")
    run(Call(["init", "-"])).refused("-: a benchmark file names a file that can be read again")


def test_names_that_yaml_takes_for_something_else(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text("".join(json.dumps({"on": 1700000000 + i, "no": "y"}) + "\n" for i in range(9)))
    init(tmp_path / "f.jsonl")
    source = yaml.safe_load((tmp_path / "b.yaml").read_text())["source"]
    assert (source["time"], source["columns"]) == ({"column": "on", "unit": "s"}, {"no": "string"})


@pytest.mark.parametrize("name", ["2024-01-31", "2013_01", "no"])
def test_a_file_s_name_that_yaml_takes_for_something_else_is_the_benchmark_s(tmp_path: Path, name: str) -> None:
    init(written(tmp_path / f"{name}.csv", "ts", "{ms}"))
    assert load(tmp_path / "b.yaml").name == name


@pytest.mark.parametrize("job", ["spark", "flink", "java", "python"])
def test_the_file_for_a_job_on_kafka_is_valid_and_names_its_command(tmp_path: Path, job: str) -> None:
    file = written(tmp_path / "clicks.csv", "user,ts", "u{i},{ms}")
    done = run(Call(["init", str(file), "--job", job, "--out", str(tmp_path / "job.yaml"), "--time", "ts"]))
    assert done.code == 0, done.err
    [system] = load(tmp_path / "job.yaml").systems
    assert isinstance(system, JobSettings)
    assert "{input}" in system.command
    assert (system.progress.checkpoint is None) == (job != "spark")


def test_names_of_a_file_of_somebody_else_become_no_keys(tmp_path: Path) -> None:
    evil = "zzz\nmetrics: {sinks: [{type: http, url: 'http://evil.example/'}]}\rdescription: x\u2028name: y"
    rows = [json.dumps({"time": 1_700_000_000_000 + n, evil: 1_700_000_000_000 + n, "ü": "\x1b[2J"}) for n in range(50)]
    (tmp_path / "mine.jsonl").write_text("\n".join(rows))
    told = run(Call(["init", str(tmp_path / "mine.jsonl"), "--out", str(tmp_path / "b.yaml")]))
    assert told.code == 0, told.err
    assert "\x1b" not in told.out
    written = yaml.safe_load((tmp_path / "b.yaml").read_text())
    assert set(written) == {"name", "source", "experiments", "workloads", "systems", "search"}
    assert load(tmp_path / "b.yaml").metrics is None


def test_the_name_of_a_benchmark_does_not_end_as_those_of_its_nights(tmp_path: Path) -> None:
    (tmp_path / "data-nightly.csv").write_text("time,a\n" + "".join(f"2026-03-01T00:00:{n:02}Z,1\n" for n in range(20)))
    assert run(Call(["init", str(tmp_path / "data-nightly.csv"), "--out", str(tmp_path / "b.yaml")])).code == 0
    assert load(tmp_path / "b.yaml").name == "data-nightly_"


def looked(file: Path, data: str, *more: str) -> Any:
    """The keys of `source` that init writes, without the file's name, and what it printed."""
    file.write_text(data)
    (file.parent / "b.yaml").unlink(missing_ok=True)
    told = init(file, *more)
    assert told.code == 0, told.err
    source = yaml.safe_load((file.parent / "b.yaml").read_text())["source"]
    load(file.parent / "b.yaml")
    return {key: value for key, value in source.items() if key != "files"}, told.out


def rows(show: str, count: int = 40) -> str:
    return "".join(
        show.format(at=BEGIN + timedelta(seconds=i), i=i, ms=int(BEGIN.timestamp()) * 1000 + i) for i in range(count)
    )


@pytest.mark.parametrize(
    ("name", "data", "source"),
    [
        ("f.log", rows("{at:%Y-%m-%d %H:%M:%S},{i:03} INFO a, b\n"),
         {"separator": "blanks", "header": False, "quote": None, "time": {"columns": [0, 1]}}),
        ("g.log", "".join(f"2024-03-05 10:00:{i},210 INFO {'text ' * (i % 3)}\n" for i in range(10, 50)),
         {"separator": "blanks", "header": False, "quote": None, "time": {"columns": [0, 1]}}),
        ("f.csv", "Date,Time,v\n" + rows("{at:%d/%m/%Y},{at:%H.%M.%S},{i}\n") + "31/03/2024,01.02.03,7\n" * 2,
         {"time": {"columns": ["Date", "Time"], "format": "%d/%m/%Y %H.%M.%S"}, "columns": {"v": "int64"}}),
        ("iis.log", rows("{at:%Y-%m-%d %H:%M:%S} 10.0.0.1 GET /a\n"),
         {"separator": " ", "header": False, "time": {"columns": [0, 1]},
          "columns": {f"column_{k}": {"path": k, "type": "string"} for k in (2, 3, 4)}}),
        ("w3c.log", "#Software: x\n#Fields: date time c-ip method\n" + rows("{at:%Y-%m-%d %H:%M:%S} 10.0.0.1 GET\n")
         + "#Date: restarted\n" + rows("{at:%Y-%m-%d %H:%M:%S} 10.0.0.2 GET\n"),
         {"separator": " ", "header": False, "comment": "#", "column_names": ["date", "time", "c-ip", "method"],
          "time": {"columns": ["date", "time"]}, "order": "event_time",
          "columns": {"c-ip": "string", "method": "string"}}),
        ("f.csv", "zeit;preis\n" + rows("31.12.2025 23:59:{i:02},123;{i},5\n"),
         {"separator": ";", "decimal": "comma", "time": {"column": "zeit", "format": "%d.%m.%Y %H:%M:%S,%f"},
          "columns": {"preis": "float64"}}),
        ("f.csv", "ts,id,zip,n\n" + rows("17672256{i:02},184467440737095500{i:02},0123{i:02},{i}\n"),
         {"time": {"column": "ts", "unit": "s"}, "columns": {"id": "string", "zip": "string", "n": "int64"}}),
        ("f.jsonl", rows('{{"received":{ms},"payload":{{"ts":{ms},"temp":1.5}},"seq":{i},"load_timestamp":{ms}}}\n'),
         {"format": "jsonl", "time": {"column": "payload.ts", "unit": "ms"},
          "columns": {"received": "int64", "temp": {"path": "payload.temp", "type": "float64"},
                      "seq_1": {"path": "seq", "type": "int64"}, "load_timestamp": "int64"}}),
        ("f.jsonl", rows('{{"timestamp":1445680800424,"at":{ms}}}\n'),
         {"format": "jsonl", "time": {"column": "at", "unit": "ms"}, "columns": {"timestamp": "int64"}}),
        ("f.csv", "v, ts\n" + rows("{i}, {at:%Y-%m-%d %H:%M:%S}\n"),
         {"time": {"column": "ts"}, "columns": {"v": "int64"}}),
        ("f.csv", "ts,v\n" + rows('"3/31/2024, {at:%I:%M:%S}\u202f{at:%p}",{i}\n'),
         {"time": {"column": "ts", "format": "%m/%d/%Y, %I:%M:%S %p"}, "columns": {"v": "int64"}}),
    ],
)  # fmt: skip
def test_what_is_written_of_files_that_were_read_wrongly(tmp_path: Path, name: str, data: str, source: Any) -> None:
    found, said = looked(tmp_path / name, data)
    assert found == source
    kept = len(source.get("columns", ()))
    assert f"{kept} {'column' if kept == 1 else 'columns'} for workloads" in said


def test_syslog_has_no_year_and_pads_its_days(tmp_path: Path) -> None:
    found, said = looked(tmp_path / "f.log", "Nov 30 23:59:59 h a[1]: x\nDec  1 00:00:00 h a[1]: y z\n")
    year = found["time"].pop("year")
    time_keys = {"columns": [0, 1, 2], "format": "%b %d %H:%M:%S"}
    assert found == {"separator": "blanks", "header": False, "quote": None, "time": time_keys}
    assert datetime.now(UTC).year - year in (0, 1)
    assert f"doubt     times have no year: the first is taken for one of {year}, as the file's own date is" in said
    assert f"span      {year}-11-30T23:59:59Z to {year}-12-01T00:00:00Z, 1 s in all lines\n" in said
    assert "2 of 2 lines read" in said


def test_columns_beyond_the_first_ones_are_named(tmp_path: Path) -> None:
    header = ",".join(["ts", *(f"c{i}" for i in range(2000))])
    begin = time.process_time()
    found, said = looked(tmp_path / "f.csv", f"{header}\n" + rows("{ms}" + ",a1:x" * 2000 + "\n"))
    assert time.process_time() - begin < 4
    assert len(found["columns"]) == 31
    assert "columns beyond the first 32 are left out: c31, c32" in said


def test_a_time_that_is_described_by_options(tmp_path: Path) -> None:
    data = "a,b\n" + rows("{i}//{at:%Y-%m-%d},{at:%Y-%m-%d %H:%M:%S}\n")
    found, _ = looked(
        tmp_path / "f.csv", data, "--time", "a", "--format", "%S//%Y-%m-%d", "--arrival", "b", "--arrival-iso"
    )
    assert found == {
        "time": {"column": "a", "format": "%S//%Y-%m-%d"}, "arrival": {"column": "b", "iso": True},
        "columns": {"b": "string"},
    }  # fmt: skip


@pytest.mark.parametrize("header", [f"ts,{'x' * 100_000}", f"{'x' * 100_000},ts"])
def test_a_column_whose_name_is_very_long(tmp_path: Path, header: str) -> None:
    rows = "{ms},5" if header.startswith("ts") else "5,{ms}"
    file = written(tmp_path / "wide.csv", header, rows)
    made = run(Call(["init", str(file), "--time", "ts", "--unit", "ms", "--out", str(tmp_path / "wide.yaml")]))
    assert made.code == 0, made.err[:300]
    assert "x" * 100_000 in yaml.safe_load((tmp_path / "wide.yaml").read_text())["source"]["columns"]
    assert load(tmp_path / "wide.yaml").source.time.column == "ts"
