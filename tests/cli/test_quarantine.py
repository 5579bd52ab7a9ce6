"""The lines that generate left out: counted by reason, and written as they are or as a table."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.app.cli import quarantine, workplace
from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Artifact
from tests import manifests

BAD = {
    "file": ["a.csv", "a.csv", "b.csv"],
    "line_number": [3, 7, 2],
    "seq": [1, 5, 9],
    "reason": ["no time", "no UTF-8", "no time"],
    "text": [b"x,y\r", b"\xff\xfe", b""],
}


@pytest.fixture
def events(tmp_path: Path) -> Artifact:
    pq.write_table(pa.table(BAD), tmp_path / "quarantine.parquet")
    return Artifact("events", "k", tmp_path, manifests.of_events(quarantined=3), reused=False)


def test_reasons_are_counted(events: Artifact) -> None:
    assert quarantine.counted(events) == {"no time": 2, "no UTF-8": 1}


def test_lines_are_written_byte_for_byte(events: Artifact, tmp_path: Path) -> None:
    with quarantine.writing(events, tmp_path / "bad.csv"):
        assert not (tmp_path / "bad.csv").exists()
    assert (tmp_path / "bad.csv").read_bytes() == b"x,y\r\n\xff\xfe\n\n"


def test_a_table_says_where_each_line_was(events: Artifact, tmp_path: Path) -> None:
    with quarantine.writing(events, tmp_path / "bad.parquet"):
        pass
    assert pq.read_table(tmp_path / "bad.parquet").to_pydict() == {k: v for k, v in BAD.items() if k != "seq"}


def test_nothing_was_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table(BAD).slice(0, 0), tmp_path / "quarantine.parquet")
    none = Artifact("events", "k", tmp_path, manifests.of_events(), reused=False)
    assert quarantine.counted(none) == {}
    for name in ("bad.csv", "bad.parquet"):
        with quarantine.writing(none, tmp_path / name):
            pass
    assert (tmp_path / "bad.csv").read_bytes() == b""
    assert pq.read_table(tmp_path / "bad.parquet").num_rows == 0


def test_a_stream_that_is_not_published_leaves_no_file_of_its_bad_lines(events: Artifact, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(b"of another run")
    with pytest.raises(KeyboardInterrupt), quarantine.writing(events, tmp_path / "bad.csv"):
        raise KeyboardInterrupt
    assert (tmp_path / "bad.csv").read_bytes() == b"of another run"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.csv", "quarantine.parquet"]


def test_a_file_that_cannot_be_written_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--quarantine .*nope/bad.csv: cannot be written; name a file in a folder"):
        workplace.require_writable("--quarantine", tmp_path / "nope" / "bad.csv")
    os.mkfifo(tmp_path / "pipe")
    workplace.require_writable("--junit", tmp_path / "pipe", in_place=True)
    with pytest.raises(UserError, match=r"--quarantine .*pipe: cannot be written"):  # a rename would replace it
        workplace.require_writable("--quarantine", tmp_path / "pipe")
    for nothing in (tmp_path, tmp_path / "nope" / "j.xml"):
        with pytest.raises(UserError, match=r"--junit .*: cannot be written"):
            workplace.require_writable("--junit", nothing, in_place=True)
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"--quarantine .*bad.csv: lies in --out .*out; name a file elsewhere"):
        quarantine.require_outside(tmp_path / "out" / "bad.csv", tmp_path / "out")
