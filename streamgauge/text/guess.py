"""Guesses from the first lines of a file how events are written: separator, header, the column of the event time."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened
from streamgauge.base.schemas import RESERVED
from streamgauge.config import Source, TimeColumn
from streamgauge.text import json_lines, ranges, rows
from streamgauge.text.fields import READABLE, Lines, texts
from streamgauge.text.parse import names_in
from streamgauge.text.times import times

LINES = 1000
_BYTES = 1 << 20
_SEPARATORS = ("\t", ";", "|", ",", " ")
#: share of the lines that a guessed separator, kind of number or form of time must fit
_MOST = 0.95
#: median of numbers -> the unit in which they count from 1970 on, if they lie between 1973 and 2286
_EPOCHS = {"s": (1e8, 1e10), "ms": (1e11, 1e13), "us": (1e14, 1e16), "ns": (1e17, 1e19)}
_COMPACT = {14: "%Y%m%d%H%M%S", 12: "%Y%m%d%H%M", 8: "%Y%m%d"}
_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y%m%d", "%m/%d/%y", "%d %b %Y")
_CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S:%L", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_PATTERNS = (
    *(f"{date}{gap}{clock}" for date in _DATES for clock in _CLOCKS for gap in (" ", "-")),
    *_DATES, "%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d-%H:%M:%S", "%Y%m%dT%H%M%S",
    "%d/%b/%Y:%H:%M:%S %z", "[%d/%b/%Y:%H:%M:%S %z]", "[%d/%b/%Y:%H:%M:%S", "%d/%b/%Y:%H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z", "%b %d %H:%M:%S",
)  # fmt: skip
#: names of event times, the most telling first
_NAMES = (r"event.?time", r"time.?stamp|^ts$", r"^(date)?time$|^t$", r"time|stamp", r"date|_at$|when", r"(^|_)ts($|_)")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)
_OFFSET = re.compile(r"([+-])([0-9]{2})00\]?", re.ASCII)


@dataclass(frozen=True)
class Time:
    """A column that can be the event time, and how it is written, as keys of `source.time`."""

    column: str | int
    form: dict[str, Any]
    doubt: str | None = None

    def keys(self) -> dict[str, Any]:
        return {"column": self.column, **self.form}


@dataclass(frozen=True)
class Guess:
    """Description of a file as its first lines suggest it."""

    format: str
    separator: str
    header: bool
    times: list[Time]  # the likeliest first; never empty
    columns: dict[str, str]  # name -> int64, float64 or string, of columns that a workload may use

    def source(self, file: str, time: Time) -> dict[str, Any]:
        """Keys of `source` in a benchmark file, without those that are the default."""
        found: dict[str, Any] = {"files": file}
        found |= {"format": self.format} if self.format != "csv" else {}
        if self.format != "jsonl":
            found |= {"separator": self.separator} if self.separator != "," else {}
            found |= {} if self.header else {"header": False}
        columns = {name: kind for name, kind in self.columns.items() if name != time.column}
        return found | {"time": time.keys()} | ({"columns": columns} if columns else {})


def guess(path: str, format: str, only: str | None = None) -> Guess:
    """Guesses from the first lines of a file; only: the name or index of the time column, if it is known.

    Raises UserError if the file cannot be read, or if no column can be the event time.
    """
    with _one_line_errors(path, format):
        table, separator = _read(path, format)
    if not table:
        raise UserError(f"{path}: no line of data, only a header or nothing; name a file with data")
    first, *others = table
    columns = list(zip(*(others or table), strict=True))
    header = format != "csv" or (len(table) > 1 and not any(map(_is_value, first)))
    names = [name.strip() for name in first] if header else None
    found = sorted(_times(columns, names, only), key=lambda time: _rank(time, names))
    if not found:
        shown = ", ".join(repr(name[:60]) for name in (names or first)[:30])
        raise UserError(
            f"{path}: no column reads as a time ({'columns' if names else 'first line'}: {shown}); "
            "name it by --time, and its --unit or --format"
        )
    return Guess(format, separator, header, found, _kept(columns, names))


def columns_of(source: Source) -> dict[str, str]:
    """Maps the name of each column that a stream may keep to its kind: by the schema of Parquet, else by first lines.

    Raises UserError for a file that cannot be read as described.
    """
    path = source.files[0]
    with _one_line_errors(path, source.format):
        if source.format == "parquet":
            schema = rows.flat_schema(pq.read_schema(opened(path)))
            return {name: _kind_of(schema.field(name).type) for name in _usable(schema.names)}
        if source.format == "jsonl":
            names, *lines = _read(path, source.format)[0] or [[]]
        else:
            start, first = ranges.first_line(path)
            named = names_in(ranges.ended(first), source, path) if source.header else []
            names = list(source.column_names or named)
            data = _head(path, start + (len(first) if source.header else 0))
            lines = _fields(data, source.separator, len(names), source.quote) if names else []
    columns = list(zip(*lines, strict=True)) or [()] * len(names)
    kinds = {name: _kind([value for value in values if value]) for name, values in zip(names, columns, strict=True)}
    return {name: kinds[name] for name in _usable(names)}


@contextmanager
def _one_line_errors(path: str, format: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as problem:
        raise UserError(f"{path}: not a {format} file: {str(problem).splitlines()[0]}; name another file") from None
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _head(path: str, start: int) -> bytes:
    """The first lines from that byte on, at most LINES."""
    if ranges.packing(path) is None:
        data = ranges.ended(ranges.read_lines(path, start, start, start + _BYTES))
    else:
        data = ranges.ended(next(ranges.blocks(path, start, _BYTES), b""))
    count = min(LINES, ranges.line_count(data))
    return ranges.first_lines(data, count) if count else b""


def _read(path: str, format: str) -> tuple[list[list[str]], str]:
    """(the first lines as fields, names first if the format has them; the separator)."""
    if format == "parquet":
        with pq.ParquetFile(opened(path)) as file:
            batch = next(file.iter_batches(LINES), None)
            names = rows.flat_schema(file.schema_arrow).names
        data = rows.lines(batch, ",", '"', path) if batch is not None else b""
        return [names, *_fields(data, ",")] if data else [], ","
    data = _head(path, ranges.first_line(path)[0])
    if format == "jsonl":
        return _objects(data), "\t"
    separator = _separator(data)
    return _fields(data, separator), separator


def _objects(data: bytes) -> list[list[str]]:
    found = []
    for line in data.splitlines():
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    paths = list(dict.fromkeys(path for one in found if isinstance(one, dict) for path in json_lines.keys(one)))
    if not paths:
        return []
    paths = [path for path in paths if _is_text(path)]
    values, bad = json_lines.values(data, paths)
    lines = _fields(values, json_lines.SEPARATOR, len(paths))
    return [paths, *(line for line, broken in zip(lines, bad, strict=True) if not broken)]


def _is_text(path: str) -> bool:
    """False for half of a surrogate pair, which JSON can escape and UTF-8 cannot hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _separator(data: bytes) -> str:
    """The first separator by which nearly all lines have the same number of fields, more than one; else a comma."""
    for separator in _SEPARATORS:
        (fields, often), *_ = Counter(Lines(data, separator, '"', 1).field_counts.tolist()).most_common(1) or [(0, 0)]
        if fields > 1 and often >= _MOST * data.count(b"\n"):
            return separator
    return ","


def _fields(data: bytes, separator: str, wanted: int | None = None, quote: str | None = '"') -> list[list[str]]:
    """Fields of the lines that have as many as most lines have, or as many as wanted."""
    lines = Lines(data, separator, quote, 1)
    counts = lines.field_counts
    wanted = wanted or (Counter(counts.tolist()).most_common(1)[0][0] if lines.count else 0)
    lines = Lines(data, separator, quote, wanted)
    columns = [[text.decode(errors="replace") for text in texts(lines.buffer, *lines.field(k)).to_pylist()]
               for k in range(wanted)]  # fmt: skip
    whole = (counts == wanted).tolist()
    return [list(row) for row, kept in zip(zip(*columns, strict=True), whole, strict=True) if kept]


def _times(columns: list[tuple[str, ...]], names: list[str] | None, only: str | None) -> Iterator[Time]:
    for index, values in enumerate(columns):
        name = names[index] if names is not None and names.count(names[index]) == 1 else index
        if only is not None and only not in (str(name), str(index)):
            continue
        filled = [value for value in values if value]
        if len(filled) < _MOST * len(values) or not filled:
            continue
        hinted = only is not None or _hint(name) < len(_NAMES)
        if all(map(_NUMBER.fullmatch, filled[:100])):
            yield from _numbers(name, filled, hinted=hinted)
        elif any(map(str.isdigit, filled[0])):
            yield from _texts(name, filled, columns[index + 1] if index + 1 < len(columns) else ())


def _numbers(name: str | int, values: list[str], *, hinted: bool) -> Iterator[Time]:
    pattern = _COMPACT.get(len(values[0])) if values[0][:2] in ("19", "20") else None
    if pattern is not None and _share(TimeColumn(column=0, format=pattern), values) >= _MOST:
        yield Time(name, {"format": pattern})
        return
    numbers = [float(value) for value in values if _NUMBER.fullmatch(value)]
    middle = statistics.median(numbers)
    for unit, (least, most) in _EPOCHS.items():
        if least <= middle < most:
            yield Time(name, {"unit": unit})
            return
    if hinted:
        yield Time(name, {"unit": "s"}, "the numbers are no time since 1970 in any unit; seconds are assumed")


def _texts(name: str | int, values: list[str], following: tuple[str, ...]) -> Iterator[Time]:
    if _share(TimeColumn(column=0), values) >= _MOST:
        yield Time(name, {})
        return
    fit = [p for p in _PATTERNS if _share(TimeColumn(column=0, format=p), values[:50]) >= _MOST]
    fit = [p for p in fit if _share(TimeColumn(column=0, format=p), values) >= _MOST]
    doubt = f"{fit[0]} and {fit[1]} read all times; which is meant?" if len(fit) > 1 else None
    for pattern in fit:
        zone = _zone(following) if pattern.startswith("[") else {}
        changing = "the offset of the first lines is taken for all; another one later, as in summer, reads as disorder"
        yield Time(
            name, {"format": pattern} | zone, "; ".join(filter(None, (doubt, changing if zone else None))) or None
        )


def _zone(following: tuple[str, ...]) -> dict[str, str]:
    """The zone of a time in brackets whose offset is the next field, as web servers write it: the same in all lines."""
    offsets = {match[0]: match for match in map(_OFFSET.fullmatch, following) if match}
    if len(offsets) != 1:
        return {}
    (match,) = offsets.values()
    hours = int(match[2])
    return {"zone": f"Etc/GMT{'-' if match[1] == '+' else '+'}{hours}"} if hours else {}


def _share(column: TimeColumn, values: list[str]) -> float:
    """Share of values that are read as times of that column."""
    encoded = [value.encode() for value in values]
    lengths = np.array([len(value) for value in encoded], np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)[:-1]))
    _, codes = times(column, "ns", np.frombuffer(b"".join(encoded), np.uint8), starts, lengths)
    return float(np.mean(codes == READABLE))


def _is_value(text: str) -> bool:
    """True if a field of the first line is a number or a time, and so no name."""
    return bool(_NUMBER.fullmatch(text.strip())) or next(_texts(0, [text], ()), None) is not None


def _hint(name: str | int) -> int:
    """Rank of a name as that of an event time: 0 for the most typical, len(_NAMES) for an unknown one."""
    found = (k for k, expression in enumerate(_NAMES) if re.search(expression, str(name), re.IGNORECASE))
    return next(found, len(_NAMES)) if isinstance(name, str) else len(_NAMES)


def _rank(time: Time, names: list[str] | None) -> tuple[int, bool, int]:
    at = names.index(time.column) if names is not None and isinstance(time.column, str) else int(time.column)
    return _hint(time.column), time.doubt is not None, at


def _kept(columns: list[tuple[str, ...]], names: list[str] | None) -> dict[str, str]:
    """The first few columns with a name that a workload may use, and their kinds."""
    named = dict(zip(names or [], columns, strict=False))
    return {name: _kind([value for value in named[name] if value]) for name in _usable(names or [])[:8]}


def _usable(names: Sequence[str]) -> list[str]:
    """Names of those given that a column of a stream may have."""
    found: dict[str, str] = {}  # by the name in lower case, as SQL takes it
    for name in names:
        usable = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_ -]*", name) and names.count(name) == 1
        if usable and name.lower() not in RESERVED:
            found.setdefault(name.lower(), name)
    return list(found.values())


def _kind(values: list[str]) -> str:
    if not values or not all(map(_NUMBER.fullmatch, values)):
        return "string"
    return "float64" if any("." in value for value in values) else "int64"


def _kind_of(kind: pa.DataType) -> str:
    """The kind of a Parquet column whose every value can be read as such."""
    if pa.types.is_floating(kind):
        return "float64"
    return "int64" if pa.types.is_integer(kind) and kind != pa.uint64() else "string"
