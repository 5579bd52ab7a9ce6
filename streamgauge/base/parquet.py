"""Parquet files of artifacts: each page has a checksum when it is written, which is verified when it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import BUILT_AGAIN, Damaged
from streamgauge.base.places import opened


@contextmanager
def reading_parquet(file: Path | str) -> Iterator[None]:
    """Turns an error while a file is read into Damaged, but for FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as problem:
        raise Damaged(file, f"damaged, no readable Parquet: {problem}", BUILT_AGAIN) from None


def parquet_file(file: Path | str, *, pre_buffer: bool = False) -> pq.ParquetFile:
    """Opens a Parquet file of an artifact. Raises Damaged."""
    with reading_parquet(file):
        return pq.ParquetFile(opened(file), memory_map=False, pre_buffer=pre_buffer, page_checksum_verification=True)


def parquet_writer(sink: pa.NativeFile, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    return pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True, **options)
