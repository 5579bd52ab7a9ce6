"""Formats whose files hold rows of typed columns: Parquet, and those that packages register."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened
from streamgauge.descriptions.source import FORMATS, Source


@dataclass(frozen=True)
class SourceFormat:
    """Format of a package's own. A file gives the same rows in the same order, whichever process reads it."""

    schema: Callable[[str], pa.Schema]  # of a file, by its path
    batches: Callable[[str], Iterable[pa.RecordBatch]]  # its rows, with that schema


def load(source: Source) -> SourceFormat:
    """Returns the format of a source. Raises UserError, one line."""
    part = FORMATS.load(source.format, "source.format")
    if not isinstance(part, SourceFormat):
        place = FORMATS.outside(source.format)
        raise UserError(f"source.format: {place} is no SourceFormat of streamgauge.streams.sources.formats")
    return part


def schema_of(source: Source, path: str) -> pa.Schema:
    """Returns the schema of a file of typed columns. Raises UserError."""
    if source.own_code is None:
        return pq.read_schema(opened(path))
    with _one_line_errors(source, path):
        return pa.schema(load(source).schema(path))


def batches_of(source: Source, path: str) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a file in a package's format. Raises UserError."""
    with _one_line_errors(source, path):
        own = load(source)
        schema = own.schema(path)
        for batch in own.batches(path):
            if not batch.schema.equals(schema):
                raise ValueError("a batch of rows has another schema than its file")
            yield batch


def slices_of(source: Source, path: str, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """Yields these columns of the rows, about `size` bytes at a time, however large the format's batches are."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches_of(source, path):
        rows = max(1, size * batch.num_rows // max(1, batch.nbytes))
        for at in range(0, batch.num_rows, rows):
            some = batch.slice(at, rows)
            if held and held_bytes + some.nbytes > size:
                yield _joined(held)
                held, held_bytes = [], 0
            held.append(some.select(list(columns)))
            held_bytes += some.nbytes
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


@contextmanager
def _one_line_errors(source: Source, path: str) -> Iterator[None]:
    try:
        yield
    except (UserError, OSError):  # the latter is of the disk
        raise
    except Exception as problem:  # a package's code may do anything
        what = " ".join(str(problem).split())
        raise UserError(f"{path}: format {source.format} cannot read it: {type(problem).__name__}: {what}") from None
