"""Turns rows of a Parquet file into the text lines that they would be in a CSV file."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.errors import UserError


def flat(table: pa.Table) -> pa.Table:
    """The table with a column s.a for each field a of a column s that is a struct, to any depth."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def flat_schema(schema: pa.Schema) -> pa.Schema:
    return flat(schema.empty_table()).schema


def has_text(kind: pa.DataType) -> bool:
    """True for a type whose values a line holds; False for lists, maps, bytes and what Arrow cannot write as text."""
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind):
        return False
    return writable(kind)


def writable(kind: pa.DataType) -> bool:
    """True if values of that type can be written as text."""
    try:
        pa.array([], kind).cast(pa.string())
    except pa.ArrowException:
        return False
    return True


def lines(rows: pa.Table | pa.RecordBatch, separator: str, quote: str | None, where: str) -> bytes:
    """CSV lines, one per row of flat columns.

    Null is an empty field; texts are quoted if need be, and line ends in them are blanks. Bytes that are no UTF-8 are
    written as hexadecimal digits. Raises UserError for a column that cannot be written as text.
    """
    quote = quote or '"'
    if not rows.num_rows:
        return b""
    (batch,) = rows.combine_chunks().to_batches() if isinstance(rows, pa.Table) else [rows]
    *columns, last = [
        _texts(column, separator, quote, f"{where}: {name}")
        for name, column in zip(batch.schema.names, batch, strict=True)
    ]
    options = pc.JoinOptions(null_handling="replace", null_replacement="")
    ended = pc.binary_join_element_wise(last, "", "\n", options=options)
    joined = pc.binary_join_element_wise(*columns, ended, separator, options=options)
    return all_bytes(joined)


def all_bytes(column: pa.Array) -> bytes:
    """Returns the bytes of all texts of a column, one after the other."""
    _, offsets, data = column.buffers()
    if data is None:
        return b""
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    begin, end = np.frombuffer(offsets, width)[[column.offset, column.offset + len(column)]].tolist()
    return bytes(memoryview(data)[begin:end])


def _without_exponent(column: pa.Array, written: pa.Array) -> pa.Array:
    """The texts of floating numbers, with all digits where Arrow wrote an exponent: below 1e-6, and from 1e10 on."""
    short = pc.fill_null(pc.match_substring(written, "e"), pa.array([False])[0])
    if not pc.any(short).as_py():
        return written
    numbers, texts = column.filter(short), written.filter(short)
    whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), pa.array([2.0**63])[0]))
    integers = pc.if_else(whole, numbers, pa.array([0.0], column.type)[0]).cast(pa.int64()).cast(pa.string())
    others = [
        None if one else f"{Decimal(text):f}" for one, text in zip(whole.to_pylist(), texts.to_pylist(), strict=True)
    ]
    return pc.replace_with_mask(written, short, pc.coalesce(pa.array(others, pa.string()), integers))


def _decoded(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if value is None else _shown(value) for value in column.to_pylist()], pa.string())


def _shown(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


def _holds_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _texts(column: pa.Array, separator: str, quote: str, where: str) -> pa.Array:
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return column.cast(pa.string())
    try:
        written = _decoded(column) if _holds_bytes(column.type) else column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise UserError(
            f"{where}: {column.type} cannot be written as text ({problem}); leave that column out"
        ) from None
    if pa.types.is_floating(column.type):
        written = _without_exponent(column, written)
    held = all_bytes(written)  # most columns need no change, and a look at all of their bytes at once is quick
    if b"\n" in held or b"\r" in held:
        written = pc.replace_substring_regex(written, r"[\r\n]+", " ")
    if separator.encode() in held or quote.encode() in held:
        special = pc.match_substring_regex(written, f"[{re.escape(separator)}{re.escape(quote)}]")
        doubled = pc.replace_substring(written, quote, quote * 2)
        written = pc.if_else(special, pc.binary_join_element_wise(quote, doubled, quote, ""), written)
    return written
