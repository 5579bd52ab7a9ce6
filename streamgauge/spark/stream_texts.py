"""The text formats of a stream: CSV, JSON lines, and lines for Kafka's console producer.

Each function gives the bytes of some rows; `join` makes one ordered file, with its header, of the parts of all tasks.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.places import publish, reading

#: formats whose parts have this ending; csv and csv-parts have the same rows
ENDINGS = {"csv": "csv", "csv-parts": "csv", "jsonl": "jsonl", "kafka": "tsv"}
#: the key of the manifest that lists the files of a format
FILES = {"csv": "csv_files", "csv-parts": "csv_files", "jsonl": "jsonl_files", "kafka": "kafka_files"}
_COPY_BYTES = 1 << 22


def of_rows(format: str, rows: pa.Table, *, separator: str, json_source: bool) -> Iterator[Any]:
    """Yields buffers that together are the rows in this format. rows: as in the stream's schema, in its order.

    json_source: the source's lines are JSON objects.
    """
    if format == "jsonl":
        return _json_lines(rows, json_source=json_source)
    return _keyed(rows) if format == "kafka" else _csv(rows, separator)


def _csv(rows: pa.Table, separator: str) -> Iterator[Any]:
    """Joins ingestion time, event time and the line, whose newline is its own: the joined buffer is the file."""
    times = [rows.column(name).cast(pa.string()).cast(pa.binary()) for name in ("ingestion_time", "event_time")]
    return _joined(*times, rows.column("line"), separator=separator.encode())


def _keyed(rows: pa.Table) -> Iterator[Any]:
    """Joins key and line by a tab, as kafka-console-producer takes them with parse.key; the first column is the key."""
    columns = [
        name
        for name in rows.column_names
        if name not in ("ingestion_time", "seq", "event_time", "arrival_time", "line")
    ]
    key = rows.column(columns[0]).cast(pa.string()) if columns else pa.nulls(len(rows), pa.string())
    return _joined(pc.fill_null(key, "").cast(pa.binary()), rows.column("line"), separator=b"\t")


def _joined(*columns: Any, separator: bytes) -> Iterator[Any]:
    flat = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in columns]
    joined = pc.binary_join_element_wise(*flat, separator)
    for chunk in joined.chunks if isinstance(joined, pa.ChunkedArray) else [joined]:
        offsets = np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1, chunk.offset * 4)
        yield chunk.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _json_lines(rows: pa.Table, *, json_source: bool) -> Iterator[Any]:
    """Writes one object a row, by DuckDB."""
    import duckdb

    text = rows.column("line").cast(pa.string())  # a line that is not UTF-8 is no event
    told = rows.set_column(rows.column_names.index("line"), "line", pc.utf8_rtrim(text, "\r\n"))
    shown = ", ".join(
        "line::JSON AS line" if json_source and name == "line" else f'"{name}"' for name in told.column_names
    )
    with tempfile.TemporaryDirectory(prefix="streamgauge-") as folder, duckdb.connect(config={"threads": 1}) as base:
        part = Path(folder) / "part.jsonl"
        base.register("told", told)
        base.execute(f"COPY (SELECT {shown} FROM told) TO '{part}' (FORMAT json)")
        with part.open("rb") as source:
            yield from iter(lambda: source.read(_COPY_BYTES), b"")


def join(directory: Path, parts: list[str], header: bytes, *, one_file: str | None) -> list[str]:
    """Joins the parts into one ordered file, or puts the header into the first part; returns the files' names.

    one_file: the name of the one file; None to leave the parts as they are.
    """
    joined, rest = (parts, []) if one_file else (parts[:1], parts[1:])
    if not one_file and not header:
        return parts

    def write(sink: pa.NativeFile) -> None:
        sink.write(header)
        for name in joined:
            with reading(directory / name) as part:
                shutil.copyfileobj(part, sink, _COPY_BYTES)

    written = publish(directory / (one_file or parts[0]), write)
    for name in joined:
        if name != written:
            (directory / name).unlink()
    return [written, *rest]
