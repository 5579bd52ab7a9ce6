"""Helpers of the tests of ingest: a small benchmark, and its events and bad lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark
from streamgauge.streams.stages import ingest

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers


def benchmark(files: Path | list[Path], scale: float = 1.0, **source: Any) -> Benchmark:
    names = [str(file) for file in files] if isinstance(files, list) else str(files)
    settings: dict[str, Any] = {"time": {"column": "t", "unit": "s"}, "max_bad_fraction": 0.5, **source}
    return Benchmark.model_validate(
        {
            "name": "tiny",
            "source": {"files": names, **settings},
            "experiments": [{"name": "e", "target_percent": 0}],
            "scale": scale,
        }
    )


def rows(artifact: Artifact) -> list[dict[str, Any]]:
    found = [row for file in artifact.files() for row in pq.read_table(file).to_pylist()]
    assert len(found) == artifact.manifest["events"]
    return found


def bad(artifact: Artifact) -> list[tuple[Any, ...]]:
    table = pq.read_table(artifact.path / "quarantine.parquet")
    return [(Path(r["file"]).name, r["line_number"], r["seq"], r["reason"], r["text"]) for r in table.to_pylist()]


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(workers: Workers, root: Path, wanted: Benchmark, *said: str) -> None:
    """A one-line UserError that says all of that; nothing is published or left behind."""
    with pytest.raises(UserError) as told:
        ingest.run(workers, wanted, Store(root / "artifacts"))
    message = str(told.value)
    assert "\n" not in message
    assert all(part in message for part in said), message
    left = root / "artifacts" / "data" / "events"
    assert [file for file in left.glob("*") if not file.name.endswith(".lock")] == []
