"""Artifacts in which a bit was flipped: nobody reads other rows from them, and one line says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import Damaged, UserError
from streamgauge.base.parquet import parquet_file, parquet_writer, reading_parquet
from streamgauge.base.schemas import STREAM
from streamgauge.bench.driver.replay import load_stream
from streamgauge.catalog.artifacts import Build, Store
from tests.flips import FLIPS, flipped


def table() -> pa.Table:
    times = np.arange(400, dtype=np.int64) * 1_000_003
    return pa.Table.from_arrays(
        [pa.array(times), pa.array(np.arange(400)), pa.array(times - 7), pa.array([b"%d\n" % n for n in range(400)])],
        schema=STREAM,
    )


def make(build: Build) -> None:
    """Writes a small stream of two parts."""
    build.manifest["files"] = ["part-0.parquet", "part-1.parquet"]
    for number, name in enumerate(build.manifest["files"]):
        with pa.OSFile(str(build.path / name), "wb") as sink, parquet_writer(sink, STREAM) as writer:
            writer.write_table(table().slice(200 * number, 200))


def rows_of(store: Store) -> pa.Table:
    """Returns what a driver replays of the stream."""
    return load_stream(store.need("stream", "k", "generate").files(), "ns", {}, line=True).table


@pytest.mark.parametrize("name", ["part-1.parquet", "manifest.json"])
def test_of_a_stream_with_a_flipped_bit_the_same_rows_are_read_or_none(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    sound, wanted = store.made("stream", "k", make), rows_of(store)
    read, lines = [], []
    for copy in flipped((sound.path / name).read_bytes(), 1):
        (sound.path / name).write_bytes(copy)
        try:
            read.append(rows_of(store))
        except UserError as told:
            lines.append(str(told))
    assert all(rows == wanted for rows in read)
    assert len(read) == 0 if name.startswith("part") else len(read) < FLIPS / 2
    for line in lines:
        assert line.startswith(f"{sound.path / name}: damaged")
        assert line.endswith("; delete its folder, which is then built again")
        assert "\n" not in line


@pytest.mark.parametrize("name", ["part-0.parquet", "manifest.json"])
def test_a_damaged_artifact_is_made_again_and_never_reused(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    first = store.made("stream", "k", make)
    data, wanted = (first.path / name).read_bytes(), rows_of(store)
    assert store.made("stream", "k", make).reused
    assert caplog.messages == []
    for number, copy in enumerate([*flipped(data[: len(data) // 2], 2, 3), b""]):
        (first.path / name).write_bytes(copy + data[len(data) // 2 :] if copy else b"")
        assert not store.made("stream", "k", make).reused
        assert (first.path / name).read_bytes() == data
        assert rows_of(store) == wanted
        assert len(caplog.messages) == number + 1
        assert caplog.messages[-1].startswith(f"{first.path / name}: damaged")


def test_a_part_that_is_gone_is_damage_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = store.made("stream", "k", make)
    (made.path / "part-1.parquet").unlink()
    with pytest.raises(Damaged, match=r"part-1.parquet: damaged artifact, No such file.*; delete its folder"):
        rows_of(store)


def test_pages_of_data_are_checked_as_they_are_read(tmp_path: Path) -> None:
    """Tests the second guard, for remote stores and for what changes after the file was hashed."""
    build = Build(tmp_path)
    make(build)
    file = tmp_path / "part-0.parquet"
    data, wanted = file.read_bytes(), pq.read_table(file)
    footer = int.from_bytes(data[-8:-4], "little") + 8
    read, lines = [], []
    for copy in flipped(data[4:-footer], 3):
        file.write_bytes(data[:4] + copy + data[-footer:])
        try:
            with reading_parquet(file), parquet_file(file) as opened:
                read.append(opened.read())
        except Damaged as told:
            lines.append(str(told))
    assert all(table == wanted for table in read)
    assert all(line.startswith(f"{file}: damaged, no readable Parquet: ") for line in lines)
    assert len(read) < FLIPS / 4
