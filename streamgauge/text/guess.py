"""Guesses from the first lines of a file how events are written: separator, header, the column of the event time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened
from streamgauge.base.schemas import RESERVED
from streamgauge.catalog.source_files import stat_source
from streamgauge.config import Source
from streamgauge.text import json_lines, parquet, ranges
from streamgauge.text.fields import Lines, texts
from streamgauge.text.guess_times import MOST, NUMBER, Time, patterns_of, reads_iso, times_in
from streamgauge.text.parse import names_in

LINES = 1000
_BYTES = 1 << 20
_SEPARATORS = ("\t", ";", "|", ",", " ")
#: how many columns a benchmark file keeps at most, unless a person adds some
_KEPT = 32
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+", re.ASCII)
#: a time that ends in seconds, and a field that begins as its milliseconds
_SECONDS = re.compile(r".*[0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
_MILLISECONDS = re.compile(r"[0-9]{3}(?![0-9.])", re.ASCII)


@dataclass(frozen=True)
class Table:
    """The first lines of a file as fields."""

    lines: list[list[str]]  # names first, if the format has them
    separator: str = ","  # as source.separator has it
    lines_differ: bool = False  # later fields are free text
    comment: str | None = None  # how lines begin that are no events
    names: list[str] | None = None  # that a comment tells


@dataclass(frozen=True)
class Guess:
    """Description of a file as its first lines suggest it."""

    format: str
    separator: str
    header: bool
    decimal: str
    times: list[Time]  # the likeliest first; never empty
    columns: dict[str, Any]  # of columns that a workload may use, as source.columns has them
    left_out: list[str]  # names of those beyond the first ones
    comment: str | None = None
    column_names: list[str] | None = None  # of a file without a header

    def source(self, file: str, time: Time) -> dict[str, Any]:
        """Keys of `source` in a benchmark file, without those that are the default."""
        found: dict[str, Any] = {"files": file}
        found |= {"format": self.format} if self.format != "csv" else {}
        if self.format != "jsonl":
            # syslog pads a day of one digit by a blank
            separator = "blanks" if self.separator == " " and len(time.columns) > 2 else self.separator
            found |= {"separator": separator} if separator != "," else {}
            found |= {"decimal": self.decimal} if self.decimal != "point" else {}
            found |= {} if self.header else {"header": False}
            found |= {"comment": self.comment} if self.comment else {}
            found |= {"column_names": self.column_names} if self.column_names else {}
        columns = {
            name: kind
            for name, kind in self.columns.items()
            if (kind["path"] if isinstance(kind, dict) else name) not in time.columns
        }
        return found | {"time": time.keys()} | ({"columns": columns} if columns else {})


def guess(path: str, format: str, only: str | None = None, given: Time | None = None) -> Guess:
    """Guesses from the first lines of a file; only: the name or index of the time column, if it is known.

    given: the event time, if a person says how it is written.

    Raises UserError if the file cannot be read, or if no column can be the event time.
    """
    with _one_line_errors(path, format):
        table = _read(path, format)
    if not table.lines:
        raise UserError(f"{path}: no line of data, only a header or nothing; name a file with data")
    first, *others = table.lines
    columns = list(zip(*(others or table.lines), strict=True))
    header = format != "csv" or (len(table.lines) > 1 and not table.lines_differ and not any(map(_is_value, first)))
    if header and table.comment:
        raise UserError(f"{path}: line 1: found a comment before the header, allowed: a header first; remove comments")
    names = [name.strip() for name in first] if header else table.names
    comma = format == "csv" and table.separator != "," and _decimal_comma(columns)
    if comma:
        columns = [tuple(v.replace(",", ".") if _COMMA.fullmatch(v) else v for v in values) for values in columns]
    found = [given] if given is not None else times_in(columns, names, only, stat_source(path).st_mtime_ns // 10**9)
    if not found:
        shown = ", ".join(repr(name[:60]) for name in (names or first)[:30])
        raise UserError(
            f"{path}: no column reads as a time ({'columns' if names else 'first line'}: {shown}); "
            "name it by --time, and its --unit or --format"
        )
    kept = _columns(columns, names)
    left_out = list(kept)[_KEPT:]
    decimal = "comma" if comma else "point"
    wanted = {name: kept[name] for name in list(kept)[:_KEPT]}
    return Guess(format, table.separator, header, decimal, found, wanted, left_out, table.comment, table.names)


def columns_of(source: Source) -> dict[str, str]:
    """Maps the name of each column that a stream may keep to its kind: by the schema of Parquet, else by first lines.

    Raises UserError for a file that cannot be read as described.
    """
    path = source.files[0]
    with _one_line_errors(path, source.format):
        if source.format == "parquet":
            kept = parquet.kept(pq.read_schema(opened(path)))
            return {name: kind for name, kind in zip(kept.names, map(_kind_of, kept.types), strict=True)
                    if name in _usable(kept.names)}  # fmt: skip
        if source.format == "jsonl":
            names, *lines = _read(path, source.format).lines or [[]]
        else:
            start, first = ranges.first_line(path)
            named = names_in(ranges.ended(first), source, path) if source.header else []
            names = list(source.column_names or named)
            data = _head(path, start + (len(first) if source.header else 0))
            lines = _fields(data, source.separator, len(names), source.quote, repeats=source.repeats) if names else []
    columns = list(zip(*lines, strict=True)) or [()] * len(names)
    if source.decimal == "comma":
        columns = [tuple(value.replace(",", ".") for value in values) for values in columns]
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


def _read(path: str, format: str) -> Table:
    """The first lines of a file as fields."""
    if format == "parquet":
        columns = parquet.kept(pq.read_schema(opened(path)))
        data = next(parquet.blocks(path, None, columns, LINES, ",", '"'), b"")
        return Table([list(columns.names), *_fields(data, ",")] if data else [])
    data = _head(path, ranges.first_line(path)[0])
    if format == "jsonl":
        return Table(_objects(data), "\t")
    comments = [line for line in data.splitlines() if line.startswith(b"#")]
    if len(comments) > 1 and data.startswith(b"#"):
        rest = b"".join(line for line in data.splitlines(keepends=True) if not line.startswith(b"#"))
        told = next(
            (line.decode(errors="replace").split()[1:] for line in comments if line.startswith(b"#Fields:")), []
        )
        table = _table(rest)
        named = told if table.lines and len(told) == len(table.lines[0]) and not table.lines_differ else None
        return replace(table, comment="#", names=named)
    return _table(data)


def _table(data: bytes) -> Table:
    """The fields of lines of flat text."""
    separator = _separator(data)
    if separator is not None:
        fields = _fields(data, separator)
        if separator != "," or not _cut_at_milliseconds(fields):
            repeats = separator == " " and b"  " in data
            return Table(_fields(data, " ", repeats=True), "blanks") if repeats else Table(fields, separator)
    logged = _log(data)
    return Table(logged, "blanks", lines_differ=True) if logged else Table(_fields(data, separator or ","))


def _log(data: bytes) -> list[list[str]]:
    """The first fields of lines that begin with a time and go on as they like, with blanks between; none if not so."""
    counts = sorted(Lines(data, " ", None, 1, repeats=True).field_counts.tolist())
    least = min(counts[int(len(counts) * (1 - MOST))], 6) if counts else 0
    if not least:
        return []
    fields = _fields(data, " ", least, None, repeats=True, longer=True)
    for count in range(1, least + 1):
        begins = [" ".join(line[:count]) for line in fields[:5]]
        if reads_iso(begins) or patterns_of(begins):
            return fields
    return []


def _cut_at_milliseconds(lines: list[list[str]]) -> bool:
    """True if the comma that parts the fields is that before the milliseconds of a time, in every line."""
    return bool(lines) and any(
        all(_SECONDS.fullmatch(line[k]) and _MILLISECONDS.match(line[k + 1]) for line in lines)
        for k in range(min(len(lines[0]) - 1, 5))
    )


def _decimal_comma(columns: Sequence[Sequence[str]]) -> bool:
    """True if numbers have a comma before their fraction; three digits after each may be thousands."""
    commas = [v for values in columns if all(_COMMA.fullmatch(v) or NUMBER.fullmatch(v) for v in values if v)
              for v in values if "," in v]  # fmt: skip
    return any(len(value.partition(",")[2]) != 3 for value in commas)


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


def _separator(data: bytes) -> str | None:
    """The first separator by which nearly all lines have the same number of fields, more than one."""
    for separator in _SEPARATORS:
        (fields, often), *_ = Counter(Lines(data, separator, '"', 1).field_counts.tolist()).most_common(1) or [(0, 0)]
        if fields > 1 and often >= MOST * data.count(b"\n"):
            return separator
    return None


def _fields(
    data: bytes, separator: str, wanted: int | None = None, quote: str | None = '"', *, repeats: bool = False,
    longer: bool = False,
) -> list[list[str]]:  # fmt: skip
    """Fields of the lines that have as many as most lines have, or as many as wanted; longer: or more."""
    lines = Lines(data, separator, quote, 1, repeats=repeats)
    counts = lines.field_counts
    wanted = wanted or (Counter(counts.tolist()).most_common(1)[0][0] if lines.count else 0)
    lines = Lines(data, separator, quote, wanted, repeats=repeats)
    columns = [[text.decode(errors="replace") for text in texts(lines.buffer, *lines.field(k)).to_pylist()]
               for k in range(wanted)]  # fmt: skip
    whole = ((counts >= wanted) if longer else (counts == wanted)).tolist()
    return [list(row) for row, kept in zip(zip(*columns, strict=True), whole, strict=True) if kept]


def _is_value(text: str) -> bool:
    """True if a field of the first line is a number or a time, and so no name."""
    text = text.strip()
    return bool(NUMBER.fullmatch(text) or _COMMA.fullmatch(text)) or reads_iso([text]) or bool(patterns_of([text]))


def _columns(columns: list[tuple[str, ...]], names: list[str] | None) -> dict[str, Any]:
    """The named columns as a stream may have them, each under its own name or one that is allowed."""
    found: dict[str, Any] = {}
    usable, taken = set(_usable(names or [])), {name.lower() for name in _usable(names or [])}
    for name, values in zip(names or [], columns, strict=False):
        kind = _kind([value for value in values if value])
        if name in usable:
            found[name] = kind
        elif names is not None and names.count(name) == 1:
            last = re.sub(r"\W+", "_", name.split(".")[-1], flags=re.ASCII).strip("_")
            whole = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
            own = next(
                one
                for one in (last, whole, *(f"{last or 'column'}_{n}" for n in range(1, len(names) + 2)))
                if re.match(r"[A-Za-z_]", one) and one.lower() not in RESERVED | taken
            )
            taken.add(own.lower())
            found[own] = {"path": name, "type": kind}
    return found


def _usable(names: Sequence[str]) -> list[str]:
    """Names of those given that a column of a stream may have."""
    found: dict[str, str] = {}  # by the name in lower case, as SQL takes it
    for name in names:
        usable = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_ -]*", name) and names.count(name) == 1
        if usable and name.lower() not in RESERVED:
            found.setdefault(name.lower(), name)
    return list(found.values())


def _kind(values: list[str]) -> str:
    if not values or not all(map(NUMBER.fullmatch, values)):
        return "string"
    digits = [value.lstrip("+-") for value in values]
    if any(value[0] == "0" and value[1:2].isdigit() for value in digits):
        return "string"  # a zip code or an id, which would lose its zeros
    if any(set(".eE") & set(value) for value in values):
        return "float64"
    return "int64" if all(-(2**63) <= int(value) < 2**63 for value in values) else "string"


def _kind_of(kind: pa.DataType) -> str:
    """The kind of a Parquet column whose every value can be read as such."""
    if pa.types.is_floating(kind):
        return "float64"
    return "int64" if pa.types.is_integer(kind) and kind != pa.uint64() else "string"
