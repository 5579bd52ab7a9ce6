"""Writes rows of the index, and comparisons, as CSV or Parquet, whole or not at all."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from streamgauge.base.canonical import canonical
from streamgauge.base.errors import UserError
from streamgauge.base.places import as_user_error
from streamgauge.base.printing import as_cell
from streamgauge.catalog import run_summary
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.results import MEASURED
from streamgauge.records.comparison import RATE, Comparison
from streamgauge.results.index.result_index import Row

log = logging.getLogger("streamgauge")
_FLOATS = ("value", "low", "high")
_TEXTS = ("series_key", *MEASURED, "at", "run_id", "reason", "claim", "config_hash", "machine", "software")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        ("number", pa.int64()),
        *((name, pa.float64()) for name in _FLOATS),
        ("samples", pa.int64()),
        ("valid", pa.bool_()),
        ("against", pa.string()),  # this, and what follows, of comparisons alone
        ("blocks", pa.int64()),
        ("processes", pa.int64()),
    ]
)
#: columns of a comparison that are those of its run's rates, or of other figures if these are gone
_OF_RUN = ("benchmark", "run_id", "mode", "at", "config_hash", "machine", "software")


def comparisons(store: Store, figures: Iterable[Row], wanted: Mapping[str, str]) -> list[Row]:
    """Returns a row for each comparison of the figures' runs whose records lie in the store.

    figures: oldest first. wanted: a value for any column. A damaged record is left out, and a warning names it.
    """
    rows: list[Row] = []
    rates_last = sorted(figures, key=lambda row: row["metric"] == RATE)
    for run_id, figure in {str(row["run_id"]): row for row in rates_last}.items():
        try:
            compared = run_summary.comparisons(store.root / "runs" / run_id)
        except UserError as problem:
            log.warning("%s; the comparisons of its run were left out", problem)
            continue
        rows += [{name: figure[name] for name in _OF_RUN} | _row(one) for one in compared]
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def _row(one: Comparison) -> Row:
    low, high = one.interval or (None, None)
    figures = {"value": one.ratio, "low": low, "high": high, "samples": one.blocks, "valid": one.ratio is not None}
    return one.model_dump(exclude={"ratio", "interval"}) | figures | {"unit": "ratio", "claim": ""}


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
