"""A stranger's first minute: init on unlike files writes a benchmark file by which check reads all lines."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from streamgauge.config import load
from streamgauge.engines.job.settings import JobSettings
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
         "time": {"column": 3, "format": "[%d/%b/%Y:%H:%M:%S", "zone": "Etc/GMT+7"}},
        (MOMENTS[0] + timedelta(hours=7)).replace(microsecond=0),
    ),
    "tabs, German dates, no header": lambda at: (
        written(at / "m.tsv", "", "{i}\tsensor\t{at:%d.%m.%Y %H:%M:%S}"),
        {"separator": "\t", "header": False, "time": {"column": 2, "format": "%d.%m.%Y %H:%M:%S"}},
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
    assert [e["target_percent"] for e in benchmark["experiments"]] == [0, 20]
    assert f"{first.astimezone(UTC):%Y-%m-%dT%H:%M:%S}" in told.out
    assert "400 of 400 lines read" in told.out
    found = run(Call(["check", str(tmp_path / "b.yaml"), "--artifacts", str(tmp_path / "a"), "--json"])).json
    assert (found["sample"]["lines"], found["sample"]["events"]) == (400, 400)
    assert found["cells"] == ["ordered.all.spark", "late20.all.spark"]


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
        ("a,b\n", "f.csv: no column reads as a time (first line: 'a', 'b')"),
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
