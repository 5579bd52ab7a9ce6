"""Writes rows of the index as CSV or Parquet, whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from streamgauge.base.canonical import canonical
from streamgauge.base.errors import UserError
from streamgauge.base.places import as_user_error
from streamgauge.base.printable import as_cell
from streamgauge.catalog.results import MEASURED
from streamgauge.results.index.result_index import Row

_FLOATS = ("value", "low", "high")
_TEXTS = ("series_key", *MEASURED, "at", "run_id", "reason", "claim", "config_hash", "machine", "software")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        ("number", pa.int64()),
        *((name, pa.float64()) for name in _FLOATS),
        ("samples", pa.int64()),
        ("valid", pa.bool_()),
    ]
)


def write(rows: list[Row], path: Path) -> None:
    """Writes rows as CSV or Parquet, by the file's ending. Raises UserError for another ending or a failed write."""
    writers: dict[str, Any] = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    if path.suffix not in writers:
        raise UserError(f"--out: found {path.name!r}, allowed: a name that ends in .csv or .parquet")
    flat = [{k: canonical(v) if isinstance(v, dict) else v for k, v in row.items()} for row in rows]
    if path.suffix == ".csv":
        flat = [{k: as_cell(v) if isinstance(v, str) else v for k, v in row.items()} for row in flat]
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        writers[path.suffix](pa.Table.from_pylist(flat, SCHEMA), temporary)
        os.replace(temporary, path)
    except OSError as problem:
        raise as_user_error(problem, path) from None
    finally:
        temporary.unlink(missing_ok=True)
