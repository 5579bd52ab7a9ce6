"""Reads values in Avro's binary encoding as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import msgspec

from streamgauge.base.words import counted

_MOST_DIGITS = 10_000
#: decimals as numbers of all their digits
_JSON = msgspec.json.Encoder(decimal_format="number")


def reader(schema: str, referenced: Sequence[str] = ()) -> Callable[[bytes], bytes]:
    """Returns a function that turns a value into a line of JSON, and raises ValueError for one that is none.

    referenced: schemas whose names it uses, each after those that it uses itself. Raises ValueError for what is no
    schema of Avro.
    """
    usual, plain = (_parsed([*referenced, schema], kinds) for kinds in (("string",), ("string", "int", "long")))
    read = _reader([*referenced, schema])

    def line(value: bytes) -> bytes:
        file = BytesIO(value)
        try:
            try:
                found = read(file, usual, None)
            except (OverflowError, ValueError):  # of a time that no date can have: its number is shown
                file.seek(0)
                found = read(file, plain, None)
            text = _JSON.encode(found)
        except Exception as problem:  # fastavro raises whatever the bytes lead to
            is_short = isinstance(problem, EOFError | IndexError) and file.tell() == len(value)
            raise ValueError("ends too early" if is_short else f"does not follow its schema ({problem!r})") from None
        if rest := len(value) - file.tell():
            raise ValueError(f"{counted(rest, 'byte')} behind the value")
        return text

    return line


def _parsed(texts: Sequence[str], untyped: Sequence[str], names: dict[str, Any] | None = None) -> Any:
    """The last of these schemas, without logical types of some kinds. names: takes all named types."""
    from fastavro import parse_schema

    known: dict[str, Any] = {} if names is None else names
    try:
        *_, parsed = [parse_schema(_without(json.loads(text), untyped), known) for text in texts]
    except Exception as problem:  # as json and fastavro have it
        raise ValueError(f"no schema of Avro: {' '.join(str(problem).split()) or repr(problem)}") from None
    return parsed


def _reader(texts: Sequence[str]) -> Any:
    """The function of fastavro that reads values of these schemas.

    The usual one, in C, would end the process at a value of many levels. Only a type that contains itself has such.
    """
    from fastavro import _read_py, schemaless_reader

    types: dict[str, Any] = {}
    _parsed(texts, (), types)
    if any(json.dumps(name) in json.dumps(one.get("fields")) for name, one in types.items()):
        return _read_py.schemaless_reader
    return schemaless_reader


def _without(schema: Any, kinds: Sequence[str]) -> Any:
    """The schema without logical types of these kinds, and with decimals of any number of digits."""
    if isinstance(schema, list):
        return [_without(one, kinds) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: one for key, one in schema.items() if key != "logicalType" or schema.get("type") not in kinds}
    if (kept.get("type"), kept.get("logicalType")) == ("bytes", "decimal"):
        kept["precision"] = _MOST_DIGITS  # fastavro rounds a number that has more digits than its schema allows
    return {key: _without(one, kinds) for key, one in kept.items()}
