"""The format `example-binary`: rows of 16 bytes, each a time in ms and the number of a flight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamgauge.streams.sources.formats import SourceFormat

ROWS = 100_000
ROW = np.dtype([("at_ms", "<i8"), ("flight", "<i8")])
SCHEMA = pa.schema([(name, pa.int64()) for name in ROW.names or ()])


def schema(_: str) -> pa.Schema:
    return SCHEMA


def batches(path: str) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a file. Raises ValueError if its last row is not whole."""
    with open(path, "rb") as file:
        while data := file.read(ROWS * ROW.itemsize):
            rows = np.frombuffer(data, ROW)
            yield pa.RecordBatch.from_arrays([pa.array(rows[name]) for name in SCHEMA.names], schema=SCHEMA)


BINARY = SourceFormat(schema, batches)
