"""Input that no command can work with: one line that names what is wrong, and nothing left beside it."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.streams.keys import events_key
from tests.command import Answer, Call, run

TINY = """
name: tiny
source: {files: f.csv, time: {column: t, unit: s}}
experiments: [{name: e, target_percent: 20}]
"""
SECONDS = ["--time", "t", "--unit", "s"]
TARGET = ["--target", "20", "--seed", "1"]


def call(*arguments: str | Path) -> Answer:
    return run(Call([str(argument) for argument in arguments]))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text("t,v\n1,a\n3,b\n2,c\n")
    (tmp_path / "b.yaml").write_text(TINY)
    return tmp_path


def test_a_name_longer_than_the_disk_allows(place: Path) -> None:
    call("generate", "f.csv", *SECONDS, *TARGET, "--out", "x" * 300).refused("found 300 characters", "a shorter name")
    assert sorted(file.name for file in place.iterdir()) == ["b.yaml", "f.csv"]


@pytest.mark.parametrize("where", ["art", "art/data", "art/runs"])
@pytest.mark.parametrize("command", [["check", "b.yaml"], ["run", "b.yaml"], ["results", "rebuild"]])
def test_a_file_where_a_folder_belongs(place: Path, where: str, command: list[str]) -> None:
    (place / where).parent.mkdir(exist_ok=True)
    (place / where).touch()
    call(*command, "--artifacts", "art").refused(f"--artifacts art: {where} is a file, allowed: a folder")


@pytest.mark.parametrize("damage", ["", '{"kind": "ev', "[1]", "{}", "\0"])
def test_a_damaged_manifest(place: Path, damage: str) -> None:
    from streamgauge.catalog.artifacts import Store
    from streamgauge.config import load

    store, benchmark = Store(place / "art"), load(place / "b.yaml")
    with store.building("events", events_key(store, benchmark)):
        pass
    (manifest,) = (place / "art" / "data").rglob("manifest.json")
    manifest.write_text(damage)
    call("check", "b.yaml", "--artifacts", "art").refused(f"{manifest}: damaged", "delete its folder")


def test_a_cluster_without_its_configuration(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    said = "master: found yarn, but neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"
    call("generate", "f.csv", *SECONDS, *TARGET, "--out", "o", "--master", "yarn").refused(said)
    assert not (place / "o").exists()


def parquet(**columns: Any) -> Path:
    pq.write_table(pa.table(columns), "p.parquet", compression="snappy")
    return Path("p.parquet")


def test_a_page_of_other_bytes(place: Path) -> None:
    file = parquet(t=pa.array(range(50_000), pa.int64()), v=[str(i) for i in range(50_000)])
    data = bytearray(file.read_bytes())
    data[2000:4000] = random.Random(1).randbytes(2000)
    file.write_bytes(data)
    call("analyze", file, *SECONDS).refused(f"{place}/p.parquet: row group 0 cannot be read: ", "the file again")


@pytest.mark.parametrize("more", [[], ["--unit", "s"]])
@pytest.mark.usefixtures("place")
def test_a_duration_is_no_moment(more: list[str]) -> None:
    file = parquet(t=pa.array([1, 2], pa.duration("s")))
    call("analyze", file, "--time", "t", *more).refused("p.parquet: --time: t is a duration[s], which is no moment")


@pytest.mark.usefixtures("place")
def test_times_as_floats_and_within_structs_are_read() -> None:
    file = parquet(t=[1.5, 2.25, 2.0], s=[{"a": {"b": 1}}, {"a": {"b": 3}}, {"a": {"b": 2}}])
    found = call("analyze", file, *SECONDS, "--json").json
    assert (found["out_of_order"], found["delay_ns"]["max"]) == (1, 250_000_000)
    found = call("analyze", file, "--time", "s.a.b", "--unit", "s", "--json").json
    assert (found["out_of_order"], found["delay_ns"]["max"]) == (1, 10**9)
    call("analyze", file, "--time", "t").refused("--time: t is a number (double); give its unit")
    call("analyze", file, "--time", "s.a.c", "--unit", "s").refused("no column 's.a.c'; found 2: 't', 's.a.b'")


def test_times_too_far_apart_name_the_file(place: Path) -> None:
    (place / "f.csv").write_text("t\n1677-09-22 00:00:00\n2262-04-11 00:00:00\n")
    call("analyze", "f.csv", "--time", "t").refused(f"{place}/f.csv: event times span more than 2^63 ns", "--time")


def test_other_encodings_are_told_as_such(place: Path) -> None:
    (place / "f.csv").write_bytes("t,v\n1,é\n2,ü\n".encode("latin-1"))
    call("analyze", "f.csv", *SECONDS).refused("line 2: not UTF-8", "; convert the file to UTF-8, or raise --max-bad-")


def test_pipes_and_devices(place: Path) -> None:
    os.mkfifo(place / "pipe")
    for name in ("pipe", "/dev/null"):
        call("analyze", name, "--time", "t").refused("cannot be read: a device or a pipe, allowed: a regular file")


def test_a_driver_s_salt_is_a_column(place: Path) -> None:
    assert call("generate", "f.csv", *SECONDS, "--target", "34", "--seed", "1", "--out", "o", "--json").code == 0
    assert json.loads((place / "o" / "manifest.json").read_text())["columns"] == {}
    answer = call("driver", "o", "--salt", "nope")
    assert answer.code == 2
    assert answer.err.splitlines()[-1] == (
        "streamgauge: --salt: found 'nope', allowed: none, as the stream has no columns"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["generate", "none.parquet", *SECONDS, *TARGET, "--out", "o"], "none.parquet: "),
        (["generate", "none.csv", *SECONDS, *TARGET, "--out", "o", "--columns", "v"], "none.csv: "),
        (["generate", "d.parquet", *SECONDS, *TARGET, "--out", "o"], "d.parquet: "),
        (["generate", "junk.parquet", *SECONDS, *TARGET, "--out", "o"], "junk.parquet: not a Parquet file"),
        (["init", "junk.parquet"], "junk.parquet: not a parquet file"),
        (["generate", "f.csv", *SECONDS, *TARGET, "--out", "o", "--quarantine", "f.csv"], "is a source file"),
        (["generate", "f.csv", *SECONDS, *TARGET, "--out", "o", "--quarantine", "o/bad"], "--quarantine o/bad: "),
        (["analyze", "f.csv", *SECONDS, "--profile", "f.csv"], "--profile f.csv: is a source file"),
    ],
)
def test_files_that_are_missing_or_would_be_lost(place: Path, arguments: list[str], said: str) -> None:
    (place / "d.parquet").mkdir()
    (place / "junk.parquet").write_bytes(b"PAR1" + b"junk" * 100)
    before = (place / "f.csv").read_bytes()
    call(*arguments).refused(said)
    assert (place / "f.csv").read_bytes() == before
    assert sorted(file.name for file in place.iterdir()) == ["b.yaml", "d.parquet", "f.csv", "junk.parquet"]


def test_a_description_in_brackets_is_shown_as_it_is(place: Path) -> None:
    (place / "b.yaml").write_text(f"description: 'rate [events/s] [/s]'\n{TINY}")
    assert "rate [events/s] [/s]" in call("check", "b.yaml", "--artifacts", "art").out
