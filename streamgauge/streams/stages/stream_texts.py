"""The text formats of a stream: CSV, JSON lines, and lines for Kafka's console producer.

Each function gives the bytes of some rows; `join` makes one ordered file of the parts of all tasks.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.errors import UserError
from streamgauge.base.places import Remote, publishing, reading
from streamgauge.base.schemas import ARRIVAL, STREAM

#: formats whose parts have this ending; csv and csv-parts have the same rows
ENDINGS = {"csv": "csv", "csv-parts": "csv", "jsonl": "jsonl", "kafka": "tsv"}
#: the key of the manifest that lists the files of a format
FILES = {"csv": "csv_files", "csv-parts": "csv_files", "jsonl": "jsonl_files", "kafka": "kafka_files"}
_COPY_BYTES, _BATCH_ROWS = 1 << 22, 10_000


def of_rows(format: str, rows: pa.Table, *, separator: str, json_source: bool) -> Iterator[pa.Buffer | bytes]:
    """Yields buffers that together are the rows in this format. rows: as in the stream's schema, in its order.

    json_source: the source's lines are JSON objects.
    """
    if format == "jsonl":
        return _json_lines(rows, json_source=json_source)
    return _keyed(rows) if format == "kafka" else _csv(rows, separator)


def _csv(rows: pa.Table, separator: str) -> Iterator[pa.Buffer | bytes]:
    """Joins ingestion time, event time and the line, which brings its own newline; yields parts of the file."""
    times = [rows.column(name).cast(pa.string()).cast(pa.binary()) for name in ("ingestion_time", "event_time")]
    return _joined(*times, rows.column("line"), separator=separator.encode())


def _keyed(rows: pa.Table) -> Iterator[pa.Buffer | bytes]:
    """Joins key and line by a tab, as kafka-console-producer takes them with parse.key; the first column is the key."""
    columns = [name for name in rows.column_names if name not in (*STREAM.names, ARRIVAL.name)]
    key = rows.column(columns[0]).cast(pa.string()) if columns else pa.nulls(len(rows), pa.string())
    if pc.any(pc.match_substring_regex(key, r"[\t\r\n]")).as_py():
        raise UserError(
            f"--kafka: a value of the key, the column {columns[0]}, has a tab or a line end, which end a key; "
            "choose another first column"
        )
    return _joined(pc.fill_null(key, "").cast(pa.binary()), rows.column("line"), separator=b"\t")


def _joined(*columns: pa.Array | pa.ChunkedArray | pa.Scalar, separator: bytes | str) -> Iterator[pa.Buffer | bytes]:
    flat = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in columns]
    joined = pc.binary_join_element_wise(*flat, separator)
    for chunk in joined.chunks if isinstance(joined, pa.ChunkedArray) else [joined]:
        offsets = np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1, chunk.offset * 4)
        yield chunk.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _json_lines(rows: pa.Table, *, json_source: bool) -> Iterator[pa.Buffer | bytes]:
    """Yields the text of one JSON object a row, as json.dumps writes it. A line that is a JSON object stays one."""
    for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
        lines = pc.ascii_rtrim(batch.column("line").cast(pa.string()), characters="\r\n")
        values = {name: batch.column(name) for name in batch.schema.names if name != "line"}
        texts = [_json_texts(values[name]) for name in values] + [lines if json_source else _json_texts(lines)]
        keys = [json.dumps(name, ensure_ascii=False) for name in (*values, "line")]
        pieces = [piece for key, text in zip(keys, texts, strict=True) for piece in (pa.scalar(f", {key}: "), text)]
        pieces[0] = pa.scalar("{" + f"{keys[0]}: ")
        yield from _joined(*pieces, pa.scalar("}\n"), separator="")


def _json_texts(values: pa.Array) -> pa.Array:
    """Returns the JSON of each value: null for none, and for a number that JSON does not know."""
    if pa.types.is_integer(values.type):
        texts = values.cast(pa.string())
    elif pa.types.is_floating(values.type):
        texts = pa.array([json.dumps(value) if math.isfinite(value or 0) else None for value in values.to_pylist()])
        texts = texts.cast(pa.string())
    elif pc.any(pc.match_substring_regex(values, r'[\x00-\x1f"\\]')).as_py():
        texts = pa.array([json.dumps(value, ensure_ascii=False) for value in values.to_pylist()], pa.string())
    else:
        texts = pc.binary_join_element_wise('"', values, '"', "")
    return pc.fill_null(texts, "null")


def join(directory: Path, parts: list[str], whole: str) -> str:
    """Joins the parts, in their order, into one file of that name; returns its name, which a store changes."""
    if not isinstance(directory, Remote):
        append([directory / name for name in parts], directory / whole)
        return whole
    with publishing(directory / whole) as (written, sink):
        for name in parts:
            with reading(directory / name) as part:
                shutil.copyfileobj(part, sink, _COPY_BYTES)
    for name in parts:
        (directory / name).unlink()
    return written


def append(files: Sequence[Path], whole: Path) -> None:
    """Makes one local file of several: appends all to the first, renames it, and removes the other files."""
    first, *rest = files
    with open(first, "r+b") as sink:
        sink.seek(0, os.SEEK_END)
        for file in rest:
            with open(file, "rb") as part:
                _copy(part, sink)
    os.replace(first, whole)
    for file in rest:
        file.unlink()


def _copy(part: BinaryIO, sink: BinaryIO) -> None:
    """Copies a file to the end of another, within the kernel where the system and both file systems can do it."""
    left = os.fstat(part.fileno()).st_size
    try:
        while left > 0 and (moved := os.copy_file_range(part.fileno(), sink.fileno(), left)):
            left -= moved
    except (AttributeError, OSError):
        part.seek(os.lseek(part.fileno(), 0, os.SEEK_CUR))
        sink.seek(0, os.SEEK_END)
    if left > 0:
        shutil.copyfileobj(part, sink, _COPY_BYTES)
