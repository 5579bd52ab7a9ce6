"""The example package brings a format of sources: its rows become events as those of Parquet do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Source
from streamgauge.config.reached import reached
from streamgauge.streams.keys import Scaled, events_key
from streamgauge.streams.sources import formats
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked
from streamgauge.streams.text.guess import columns_of
from streamgauge.streams.text.sample import sample
from streamgauge.streams.text.splits import header
from tests.command import Call, run

CODE = "streamgauge_example.binary:BINARY"


def source_of(*files: Path, **more: Any) -> Source:
    raw = {"format": "example-binary", "time": {"column": "at_ms", "unit": "ms"}, "columns": {"flight": "int64"}}
    return config.parse(Source, {"files": [str(file) for file in files], **raw, **more}, "source")


def written(file: Path, *rows: tuple[int, int]) -> Path:
    np.array(rows, "<i8").tofile(file)
    return file


def events(source: Source, place: Path, **more: Any) -> list[dict[str, Any]]:
    artifact = ingest.run(Forked(), Scaled(source), Store(place), **more)
    return [row for file in artifact.files() for row in pq.read_table(file).to_pylist()]


@pytest.mark.usefixtures("plugin")
def test_its_rows_are_events(tmp_path: Path) -> None:
    source = source_of(written(tmp_path / "a.bin", (5, 1), (3, 2)), written(tmp_path / "b.bin", (9, 3)))
    assert events(source, tmp_path / "a") == [
        {"seq": 0, "event_time": 5_000_000, "line": b"5,1\n", "flight": 1},
        {"seq": 1, "event_time": 3_000_000, "line": b"3,2\n", "flight": 2},
        {"seq": 2, "event_time": 9_000_000, "line": b"9,3\n", "flight": 3},
    ]
    assert header(source) == b"at_ms,flight\n"
    assert columns_of(source) == {"at_ms": "int64", "flight": "int64"}
    assert sample(source).lines == 2


@pytest.mark.usefixtures("plugin")
def test_many_rows_are_those_of_parquet(tmp_path: Path) -> None:
    """A batch of the format has 100,000 rows, and a block of lines a few thousand."""
    at_ms, flight = np.random.default_rng(7).integers(0, 10**12, (2, 120_000))
    file = tmp_path / "f.bin"
    np.stack([at_ms, flight], axis=1).astype("<i8").tofile(file)
    pq.write_table(pa.table({"at_ms": at_ms, "flight": flight}), tmp_path / "f.parquet")
    own = events(source_of(file), tmp_path / "a", split_bytes=1 << 16)
    assert len(own) == 120_000
    assert own == events(source_of(tmp_path / "f.parquet", format="parquet"), tmp_path / "b")
    cut = ingest.run(Forked(), Scaled(source_of(file), 0.5), Store(tmp_path / "c"))
    assert [row for part in cut.files() for row in pq.read_table(part).to_pylist()] == own[:60_000]


@pytest.mark.usefixtures("plugin")
def test_small_batches_are_joined_to_blocks_of_the_size_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(ms, ms % 7) for ms in range(1000)]
    source = source_of(written(tmp_path / "f.bin", *rows))
    formats.load(source)
    monkeypatch.setattr(sys.modules["streamgauge_example.binary"], "ROWS", 3)
    blocks = list(formats.slices_of(source, source.files[0], ("flight", "at_ms"), 1600))
    assert [block.num_rows for block in blocks] == [99] * 10 + [10], "a row has 16 bytes, and no batch is cut"
    assert [tuple(row.values()) for block in blocks for row in block.to_pylist()] == [(b, a) for a, b in rows]
    artifact = ingest.run(Forked(), Scaled(source), Store(tmp_path / "a"), split_bytes=8000)
    assert [pq.read_metadata(file).num_rows for file in artifact.files()] == [498, 498, 4]


@pytest.mark.usefixtures("plugin")
def test_a_place_of_code_has_no_version_and_is_refused(tmp_path: Path) -> None:
    allowed = ["csv", "parquet", "jsonl", "kafka", "nexmark", "example-binary"]
    with pytest.raises(UserError, match=f"^source: format: found '{CODE}', allowed: {', '.join(allowed)}$"):
        source_of(tmp_path / "f.bin", format=CODE)
    assert config.schema()["$defs"]["Source"]["properties"]["format"]["enum"] == allowed


@pytest.mark.usefixtures("plugin")
def test_what_it_cannot_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f.bin"
    file.write_bytes(b"x" * 20)
    with pytest.raises(UserError, match=r"f.bin: format example-binary cannot read it: ValueError: buffer size must"):
        events(source_of(file), tmp_path / "a")
    with pytest.raises(UserError, match=r"f.bin: source.time.column: no column 'when'; found 2: 'at_ms', 'flight'"):
        events(source_of(written(file, (1, 2)), time={"column": "when", "unit": "ms"}), tmp_path / "a")
    with pytest.raises(UserError, match=r"quote: found null, allowed for format example-binary: a character"):
        source_of(file, quote=None)
    here = sys.modules["streamgauge_example.binary"]
    other = formats.SourceFormat(lambda _: pa.schema([("at_ms", pa.int64())]), here.batches)
    monkeypatch.setattr(here, "BINARY", other)
    with pytest.raises(UserError, match="ValueError: a batch of rows has another schema than its file"):
        events(source_of(file, columns={}), tmp_path / "a")
    monkeypatch.setattr(here, "BINARY", "a text")
    with pytest.raises(UserError, match=f"^source.format: {CODE} is no SourceFormat of streamgauge.streams.sources"):
        events(source_of(file), tmp_path / "a")


def test_a_check_knows_the_format_and_imports_nothing(plugin: Path, tmp_path: Path) -> None:
    for file in plugin.rglob("*.py"):
        file.write_text("raise SystemExit('imported')")
    written(tmp_path / "f.bin", (5, 1), (3, 2))
    (tmp_path / "b.yaml").write_text(
        "name: b\n"
        "source: {files: f.bin, format: example-binary, time: {column: at_ms, unit: ms}}\n"
        "experiments: [{name: e, target_percent: 0}]\n"
    )
    benchmark = config.load(tmp_path / "b.yaml")
    assert [(one.kind, one.key, one.name) for one in reached(benchmark)] == [("code", "source.format", CODE)]
    answer = run(Call(["check", str(tmp_path / "b.yaml"), "--artifacts", str(tmp_path / "a")]))
    assert (answer.code, answer.err) == (0, "")
    assert f"names   runs the code {CODE}  (source.format)" in answer.out
    answer = run(Call(["check", str(tmp_path / "b.yaml"), "--connect", "--artifacts", str(tmp_path / "a")]))
    assert answer.code == 2
    assert answer.err.splitlines()[-1].endswith(f"source.format: {CODE} cannot be loaded: SystemExit: imported")


def test_a_format_is_in_the_key_of_its_events_with_its_version(plugin: Path, tmp_path: Path) -> None:
    store, source = Store(tmp_path / "a"), source_of(written(tmp_path / "f.bin", (5, 1)))
    before = events_key(store, Scaled(source))
    (info,) = plugin.glob("*.dist-info")
    info.joinpath("METADATA").write_text(info.joinpath("METADATA").read_text().replace("0.1.0", "0.2.0"))
    assert events_key(store, Scaled(source)) != before


def test_without_the_package_its_format_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UserError) as problem:
        source_of(tmp_path / "f.bin")
    allowed = "csv, parquet, jsonl, kafka, nexmark"
    assert str(problem.value) == f"source: format: found 'example-binary', allowed: {allowed}"
