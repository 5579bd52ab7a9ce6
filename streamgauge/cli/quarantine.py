"""Counts the bad lines of a source by reason, and writes them to a file for a person to read."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import as_user_error, opened
from streamgauge.catalog.artifacts import Artifact

_ROWS = 10_000


def check(out: Path) -> None:
    """Raises UserError if the file could not be written."""
    folder = out.absolute().parent
    if out.is_dir() or not folder.is_dir() or not os.access(out if out.exists() else folder, os.W_OK):
        raise UserError(f"--quarantine {out}: cannot be written; name a file in a folder that exists")


def counted(events: Artifact) -> dict[str, int]:
    """Number of lines by reason, most frequent first."""
    if not events.manifest.get("quarantined"):
        return {}
    found: Counter[str] = Counter()
    for batch in _file(events).iter_batches(_ROWS, columns=["reason"]):
        found.update(batch.column("reason").to_pylist())
    return dict(found.most_common())


def write(events: Artifact, out: Path) -> None:
    """Writes the lines as they are, or as a table if the name ends in .parquet. Raises UserError."""
    source = _file(events) if events.manifest.get("quarantined") else None
    try:
        if out.suffix == ".parquet" and source is not None:
            pq.write_table(source.read(["file", "line_number", "reason", "text"]), out)
            return
        with open(out, "wb") as handle:
            for batch in source.iter_batches(_ROWS, columns=["text"]) if source is not None else ():
                handle.writelines(text + b"\n" for text in batch.column("text").to_pylist())
    except OSError as problem:
        raise as_user_error(problem, out) from None


def _file(events: Artifact) -> Any:
    return pq.ParquetFile(opened(events.path / events.manifest["quarantine_file"]))
