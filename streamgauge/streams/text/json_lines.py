"""Turns JSON lines into CSV lines with the needed values, so that the rest of the code reads only CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from streamgauge.base.arrow import Mask
from streamgauge.base.errors import UserError
from streamgauge.config import Source
from streamgauge.streams.text import rows

#: numbers stay as they are written, so that no digit of a time is lost
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
SEPARATOR, QUOTE = ",", '"'
#: what json raises for text that is no JSON, or is nested too deeply
_BROKEN = (ValueError, RecursionError)


def paths(source: Source) -> list[str]:
    """Paths of the values that a source needs, each once: a key, or keys with dots between them."""
    parts = [part for column in (source.time, source.arrival) if column is not None for part in column.parts]
    return list(dict.fromkeys(map(str, [*parts, *source.places.values()])))


def values(data: bytes, wanted: list[str]) -> tuple[bytes, Mask]:
    """(one CSV line for each line, with the values at the paths; True for each line that is no JSON object).

    A value that is null, missing, a list or an object is an empty field; line ends in texts are blanks.
    """
    lines = data.split(b"\n")[:-1]
    columns: list[list[str | None]] = [[] for _ in wanted]
    bad: Mask = np.zeros(len(lines), bool)
    for at, line in enumerate(lines):
        try:
            value = _DECODER.decode(line.decode())
        except _BROKEN:
            value = None
        bad[at] = not isinstance(value, dict)
        for column, path in zip(columns, wanted, strict=True):
            column.append(_text(_at(value, path)))
    batch = pa.RecordBatch.from_arrays([_strings(column) for column in columns], names=wanted)
    return rows.lines(batch, SEPARATOR, QUOTE, "JSON"), bad


def check(line: bytes, more: Callable[[], bytes], source: Source, where: str) -> None:
    """Checks that one of the first lines has the event time, if the first is a JSON object.

    more: reads the first lines. Raises UserError, naming the keys of the first.
    """
    refuse_array(line, where)
    try:
        value = _DECODER.decode(line.decode())
    except _BROKEN:
        return  # bad lines are counted when all of them are read
    for path in map(str, source.time.parts):
        if not isinstance(value, dict) or _at(value, path) is not None:
            continue
        if any(values(more(), [path])[0].replace(b"\n", b"")):
            continue
        shown = ", ".join(repr(key[:60]) for key, _ in zip(keys(value), range(30), strict=False))
        raise UserError(f"{where}: line 1: source.time.column: no value at {path!r}; found {shown or 'no key'}")


def refuse_array(begin: bytes, where: str) -> None:
    """Raises UserError for a text that begins as an array of objects."""
    if re.match(rb"\s*\[\s*(\{|$)", begin):
        raise UserError(
            f"{where}: found a JSON array, allowed: JSON lines, an object a line; convert it, as by: "
            "jq -c '.[]' array.json > lines.jsonl"
        )


def keys(value: Mapping[str, object], before: str = "") -> Iterator[str]:
    """Yields the paths of an object's values."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from keys(inner, f"{before}{key}.")
        else:
            yield before + key


def _at(value: object, path: str) -> object:
    """The value at a path; None if there is none. A key that contains dots is preferred."""
    if not isinstance(value, dict):
        return None
    if path in value:
        return value[path]
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def _strings(column: list[str | None]) -> pa.Array:
    try:
        return pa.array(column, pa.string())
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write and UTF-8 cannot
        return pa.array([v and v.encode(errors="replace").decode() for v in column], pa.string())
