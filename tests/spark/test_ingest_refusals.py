"""Faults of a source, or of the place for the events, are reported in one line; nothing is half-published."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.streams.stages import ingest
from tests.conftest import everywhere
from tests.spark.ingesting import benchmark, refused, written

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers


def test_a_missing_file(workers: Workers, tmp_path: Path) -> None:
    refused(workers, tmp_path, benchmark(tmp_path / "no.csv"), "no.csv: no such source file; check source.files")


@everywhere
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty; name a file with data"),
        (b"t,v\n", "no line of data"),
        (b"t,v", "no line of data"),
        (gzip.compress(b"t\n", mtime=0), "no line of data"),
        (gzip.compress(b"t\n1\n2\n" * 9, mtime=0)[:-12], "broken gzip file"),
        (b"a;t;b\n1;2;3\n", "no column 't'; found 1: 'a;t;b'; the separator ',' does not occur there"),
        (b"a,b\n1,2\n", "no column 't'; found 2: 'a', 'b'"),
        (b"t\n1\n\xff\n\xfe\n", "line 3: not UTF-8: '\ufffd'; 2 of 3 lines are bad, allowed: 0.5 of them"),
        ("t\n1\n".encode("utf-16"), "line 1: its text is UTF-16 or UTF-32, or no text, allowed: UTF-8"),
        (b"t\n2013-01-01\nx\n", "line 2: time is not a number of s: '2013-01-01'; 2 of 2 lines are bad"),
    ],
)
def test_a_file_that_is_not_as_described(workers: Workers, tmp_path: Path, data: bytes, said: str) -> None:
    refused(workers, tmp_path, benchmark(written(tmp_path / "f.csv", data)), f"{tmp_path}/f.csv: ", said)


def test_a_wrong_separator_without_a_header(workers: Workers, tmp_path: Path) -> None:
    file = written(tmp_path / "f.csv", "a;1\nb;2\n")
    wanted = benchmark(file, header=False, time={"column": 1, "unit": "s"})
    refused(workers, tmp_path, wanted, "line 1: fewer than 2 fields: 'a;1'", "check source.separator (',')")


def test_a_source_of_which_every_line_may_be_bad_but_not_all(workers: Workers, tmp_path: Path) -> None:
    refused(workers, tmp_path, benchmark(written(tmp_path / "f.csv", "t\nx\n"), max_bad_fraction=1), "1 of 1 lines")


@pytest.mark.parametrize(
    ("column", "time", "said"),
    [
        (pa.array([1.5]), {"column": "t"}, "t is a number (double); give its unit"),
        (pa.array([1]), {"column": "t"}, "t is a number (int64); give its unit"),
        (pa.array([1], pa.timestamp("us")), {"column": "t", "unit": "s"}, "leave out unit and format"),
        (pa.array([[1]]), {"column": "t", "unit": "s"}, "has no text form"),
    ],
)
def test_a_parquet_file_that_is_not_as_described(
    workers: Workers, tmp_path: Path, column: pa.Array, time: dict[str, Any], said: str
) -> None:
    pq.write_table(pa.table({"t": column}), tmp_path / "f.parquet")
    refused(workers, tmp_path, benchmark(tmp_path / "f.parquet", format="parquet", time=time), "f.parquet: ", said)


def test_a_text_file_described_as_parquet(workers: Workers, tmp_path: Path) -> None:
    file = written(tmp_path / "f.csv", "t\n1\n")
    refused(workers, tmp_path, benchmark(file, format="parquet"), "not a Parquet file", "check source.format")


def test_an_unknown_pattern(workers: Workers, tmp_path: Path) -> None:
    file = written(tmp_path / "f.csv", "t\n1\n")
    refused(workers, tmp_path, benchmark(file, time={"column": "t", "format": "%Q"}), "source.time.format: found %Q")


SAME_SIZE = {"rewritten": "t\n1\n21\n4\n", "a line end less": "t\n1\n2103\n", "a line end more": "t\n1\n2\n\n3\n"}


@pytest.mark.parametrize("how", ["longer", "gone", *SAME_SIZE])
def test_a_source_that_changes_between_the_passes(
    workers: Workers, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / "f.csv", "t\n1\n21\n3\n")
    stat = os.stat(file)
    between = ingest._steps

    def meddling(*arguments: Any) -> Any:
        if how == "longer":
            file.write_text("t\n1\n21\n3\n4\n")
        elif how == "gone":
            file.unlink()
        else:
            file.write_text(SAME_SIZE[how])
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + (how == "rewritten")))
        return between(*arguments)

    monkeypatch.setattr(ingest, "_steps", meddling)
    said = "no such source file" if how == "gone" else "f.csv: changed while it was read; run again"
    refused(workers, tmp_path, benchmark(file), said)


def test_output_that_cannot_be_written(workers: Workers, tmp_path: Path) -> None:
    written(tmp_path / "artifacts", "a file, not a directory")
    refused(workers, tmp_path, benchmark(written(tmp_path / "f.csv", "t\n1\n")), "cannot be written", "--artifacts")


@everywhere
@pytest.mark.parametrize("order", ["file", "event_time"])
def test_a_full_disk(workers: Workers, tmp_path: Path, order: str) -> None:
    place = tmp_path / "artifacts"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        size = 40_000 if order == "file" else 14_000
        text = "t,v\n" + "".join(f"{i},{random.Random(i).randbytes(40).hex()}\n" for i in range(size))
        wanted = benchmark(written(tmp_path / "f.csv", text), order=order)
        refused(workers, tmp_path, wanted, "No space left on device", "free space or choose another --artifacts")
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)  # a failed Spark task may hold a file open
