"""Guesses from the first lines of a file how events are written: separator, header, the column of the event time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from time import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened
from streamgauge.catalog.source_files import stat_source
from streamgauge.descriptions.source import Source
from streamgauge.streams.sources import formats
from streamgauge.streams.text import json_lines, parquet, ranges, rows
from streamgauge.streams.text.fields import Fields, Lines, texts
from streamgauge.streams.text.guess_columns import kept, kind_of, kind_of_type, usable
from streamgauge.streams.text.guess_times import MOST, NUMBER, Calendar, Time, patterns_of, reads_iso, times_in
from streamgauge.streams.text.parse import names_in
from streamgauge.streams.text.splits import first_records

LINES = 1000
_SEPARATORS = ("\t", ";", "|", ",", "\x01", "\x1f", "^", "~", " ")
#: most words before the time of a line of a log
_BEFORE = 3
#: how many columns a benchmark file keeps at most, unless a person adds some
_KEPT = 32
#: how comments begin, and the line by which some spreadsheets tell the separator
_COMMENT = re.compile(rb"#|//|--(?=[ -])|%|;|!|sep=(?=.\r?\n)")
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
    columns: dict[str, object]  # of columns that a workload may use, as source.columns has them
    left_out: list[str]  # names of those beyond the first ones
    comment: str | None = None
    column_names: list[str] | None = None  # of a file without a header
    free_text: bool = False  # lines go on as they like after the time, so no column is offered

    def source(self, file: str, time: Time) -> dict[str, Any]:
        """Keys of `source` in a benchmark file, without those that are the default."""
        keys: dict[str, Any] = {"files": file}
        keys |= {"format": self.format} if self.format != "csv" else {}
        if self.format != "jsonl":
            # syslog pads a day of one digit by a blank
            separator = "blanks" if self.separator == " " and len(time.columns) > 2 else self.separator
            keys |= {"separator": separator} if separator != "," else {}
            keys |= {"decimal": self.decimal} if self.decimal != "point" else {}
            keys |= {} if self.header else {"header": False}
            keys |= ({"comment": self.comment} if self.comment else {}) | ({"quote": None} if self.free_text else {})
            keys |= {"column_names": self.column_names} if self.column_names else {}
        columns = {
            name: kind
            for name, kind in self.columns.items()
            if (kind["path"] if isinstance(kind, dict) else name) not in time.columns
        }
        return keys | {"time": time.keys()} | ({"columns": columns} if columns else {})


def guess(
    path: str,
    format: str,
    only: str | None = None,
    given: Time | None = None,
    year: int | None = None,
    zone: str = "UTC",
    lines: bytes | None = None,
) -> Guess:
    """Guesses from the first lines of a file; only: the name or index of the time column, if it is known.

    given: the event time, if a person says how it is written; year, zone: of times that do not tell theirs;
    lines: JSON objects of a source that is no file.

    Raises UserError if the file cannot be read, or if no column can be the event time.
    """
    with _one_line_errors(path, format):
        table = _read(path, format) if lines is None else Table(_objects(lines, path), "\t")
        written_s = stat_source(path).st_mtime_ns // 10**9 if lines is None else int(time())
    first, *others = table.lines or [[]]
    if not any(map(any, table.lines)) or (format != "csv" and not others):
        raise UserError(f"{path}: no line of data, only a header or nothing; name a file with data")
    calendar = Calendar(written_s, year, zone)
    may_have = format == "csv" and bool(others) and not table.lines_differ
    header = format != "csv" or (may_have and not any(map(_is_value, first)))
    columns, comma = _without_commas(list(zip(*(others or [first]), strict=True)), format, table.separator)
    if may_have and not header and given is None:  # names may be numbers, but not that of the time
        likeliest = times_in(columns, None, None, calendar)[:1]
        at = [int(part) for time in likeliest for part in time.columns]
        header = bool(at) and not any(not first[k] or _is_value(first[k]) for k in at)
    if not header and others:
        columns, comma = _without_commas(list(zip(*table.lines, strict=True)), format, table.separator)
    names = ([name.strip() for name in first] if format == "csv" else first) if header else table.names
    times = [given] if given is not None else times_in(columns, names, only, calendar)
    if not times:
        if not others and not any(map(_is_value, first)):
            raise UserError(f"{path}: no line of data, only a header; name a file with data")
        shown = ", ".join(repr(name[:60]) for name in (names or first)[:30])
        if only is not None and only not in (*(names or ()), *map(str, range(len(first)))) and "," not in only:
            raise UserError(f"{path}: --time: no column {only!r}; found {len(first)}: {shown}")
        values = ", ".join(repr(values[0][:60]) for values in columns[:30])
        data = f"; first values: {values}" if names else ""
        raise UserError(
            f"{path}: no column reads as a time ({'columns' if names else 'first line'}: {shown}); "
            f"name it by --time, and its --unit or --format{data}"
        )
    offered = {} if table.lines_differ else kept(columns, names, flat=format == "csv")
    left_out = list(offered)[_KEPT:]
    wanted = {name: offered[name] for name in list(offered)[:_KEPT]}
    decimal = "comma" if comma else "point"
    return Guess(
        format,
        table.separator,
        header,
        decimal,
        times,
        wanted,
        left_out,
        table.comment,
        None if header else table.names,
        table.lines_differ and len(first) > 1,
    )


def columns_of(source: Source) -> dict[str, str]:
    """Maps the name of each column that a stream may keep to its kind: by the schema of Parquet, else by first lines.

    Raises UserError for a file that cannot be read as described.
    """
    path = source.names[0]
    with _one_line_errors(path, source.format):
        if source.kafka is not None:
            data = first_records(source, LINES)
            names, *lines = (_objects(data, path) if source.is_json else _named(data, source)) or [[]]
        elif source.is_typed:
            schema = parquet.kept(formats.schema_of(source, path))
            return {name: kind for name, kind in zip(schema.names, map(kind_of_type, schema.types), strict=True)
                    if name in usable(schema.names)}  # fmt: skip
        elif source.is_json:
            names, *lines = _read(path, source.format).lines or [[]]
        else:
            start, first, _ = ranges.first_line(path, source.comment if source.header else None)
            named = names_in(ranges.ended(first), source, path) if source.header else []
            data = ranges.first_of(path, start + (len(first) if source.header else 0), LINES)
            names, *lines = _named(data, source, named)
    columns = list(zip(*lines, strict=True)) or [()] * len(names)
    if source.decimal == "comma":
        columns = [tuple(value.replace(",", ".") for value in values) for values in columns]
    kinds = {name: kind_of([value for value in values if value]) for name, values in zip(names, columns, strict=True)}
    return {name: kinds[name] for name in usable(names)}


def _named(data: bytes, source: Source, header: Sequence[str] = ()) -> list[list[str]]:
    """Names and values of lines of fields."""
    names = list(source.column_names or header)
    return [
        names,
        *(_fields(data, source.separator, len(names), source.quote, repeats=source.repeats) if names else ()),
    ]


@contextmanager
def _one_line_errors(path: str, format: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as problem:
        raise UserError(f"{path}: not a {format} file: {str(problem).splitlines()[0]}; name another file") from None
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _read(path: str, format: str) -> Table:
    """The first lines of a file as fields."""
    if format == "parquet":
        columns = parquet.kept(pq.read_schema(opened(path)))
        table = next(parquet.tables(path, None, columns, LINES), None)
        return Table([list(columns.names), *_fields(rows.lines(table, ",", '"', path), ",")] if table else [])
    data = ranges.first_of(path, ranges.first_line(path).start, LINES)
    if format == "jsonl":
        return Table(_objects(data, path), "\t")
    if (mark := _comment(data)) is None:
        return _table(data)
    lines = data.splitlines(keepends=True)
    table = _table(b"".join(line for line in lines if not line.startswith(mark)))
    fields = next((line.decode(errors="replace") for line in lines if line.lower().startswith(b"#fields:")), None)
    fields = fields or next((line.decode(errors="replace") for line in lines if line.startswith(b"#fields\t")), "")
    field_names = fields.split()[1:]
    named = field_names if table.lines and len(field_names) == len(table.lines[0]) and not table.lines_differ else None
    return replace(table, comment=mark.decode(), names=named)


def _comment(data: bytes) -> bytes | None:
    """Beginning of the first lines that are comments; None if there are none."""
    begun = _COMMENT.match(data)
    if begun is None:
        return None
    mark, lines = begun[0], data.splitlines(keepends=True)
    rest = [line for line in lines if not line.startswith(mark)]
    if len(rest) < 0.5 * len(lines):
        return None
    if len(rest) == len(lines) - 1 and (table := _table(b"".join(rest))).lines:  # one line, which may be the header
        separator, repeats = (" ", True) if table.separator == "blanks" else (table.separator, False)
        if len(_fields(lines[0], separator, repeats=repeats)[0]) == len(table.lines[0]) and mark != b"sep=":
            return None
    return mark


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
    """The first fields of lines that go on as they like after a time, with blanks between; none if not so."""
    counts = sorted(Fields(data, " ", None, 1, repeats=True).field_counts.tolist())
    least = min(counts[int(len(counts) * (1 - MOST))], _BEFORE + 6) if counts else 0
    if not least:
        return []
    fields = _fields(data, " ", least, None, repeats=True, longer=True)
    for first, count in product(range(_BEFORE + 1), range(1, 7)):
        begins = [" ".join(line[first : first + count]) for line in fields[:5]]
        if first + count <= least and (reads_iso(begins) or patterns_of(begins)):
            return [line[: max(first + count, 6)] for line in fields]
    return []


def _cut_at_milliseconds(lines: list[list[str]]) -> bool:
    """True if the comma that parts the fields is that before the milliseconds of a time, in every line."""
    return bool(lines) and any(
        all(_SECONDS.fullmatch(line[k]) and _MILLISECONDS.match(line[k + 1]) for line in lines)
        for k in range(min(len(lines[0]) - 1, 5))
    )


def _without_commas(columns: list[tuple[str, ...]], format: str, separator: str) -> tuple[list[tuple[str, ...]], bool]:
    """The columns with decimal points, and whether they had commas."""
    if format != "csv" or separator == "," or not _decimal_comma(columns):
        return columns, False
    return [tuple(v.replace(",", ".") if _COMMA.fullmatch(v) else v for v in values) for values in columns], True


def _decimal_comma(columns: Sequence[Sequence[str]]) -> bool:
    """True if numbers have a comma before their fraction; three digits after each may be thousands."""
    commas = [v for values in columns if all(_COMMA.fullmatch(v) or NUMBER.fullmatch(v) for v in values if v)
              for v in values if "," in v]  # fmt: skip
    return any(len(value.partition(",")[2]) != 3 for value in commas)


def _objects(data: bytes, path: str) -> list[list[str]]:
    """Names and values of the objects. Raises UserError if there are none."""
    objects = []
    for line in data.splitlines():
        try:
            objects.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    paths = list(dict.fromkeys(path for one in objects if isinstance(one, dict) for path in json_lines.keys(one)))
    if not paths and data.strip():
        shown = data.split(b"\n")[0].strip()[:30].decode(errors="replace")
        raise UserError(
            f"{path}: found no line with a JSON object, but {shown!r}, allowed: JSON lines, an object a line; an "
            "object over several lines is converted, as by: jq -c . objects.json > lines.jsonl"
        )
    paths = [path for path in paths if _is_text(path)]
    if not paths:
        return []
    values = json_lines.Values(Lines(data), paths)
    columns = [_texts(values, k) for k in range(len(paths))]
    return [
        paths,
        *(list(row) for row, broken in zip(zip(*columns, strict=True), values.bad, strict=True) if not broken),
    ]


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
        (fields, often), *_ = Counter(Fields(data, separator, '"', 1).field_counts.tolist()).most_common(1) or [(0, 0)]
        if fields > 1 and often >= MOST * data.count(b"\n"):
            return separator
    return None


def _fields(
    data: bytes, separator: str, wanted: int | None = None, quote: str | None = '"', *, repeats: bool = False,
    longer: bool = False,
) -> list[list[str]]:  # fmt: skip
    """Fields of the lines that have as many as most lines have, or as many as wanted; longer: or more."""
    lines = Fields(data, separator, quote, 1, repeats=repeats)
    counts = lines.field_counts
    wanted = wanted or (Counter(counts.tolist()).most_common(1)[0][0] if lines.count else 0)
    lines = Fields(data, separator, quote, wanted, repeats=repeats)
    columns = [_texts(lines, k) for k in range(wanted)]
    whole = ((counts >= wanted) if longer else (counts == wanted)).tolist()
    return [list(row) for row, kept in zip(zip(*columns, strict=True), whole, strict=True) if kept]


def _texts(fields: Fields | json_lines.Values, index: int) -> list[str]:
    return [text.decode(errors="replace") for text in texts(fields.buffer, *fields.field(index)).to_pylist()]


def _is_value(text: str) -> bool:
    """True if a field of the first line is a number or a time, and so no name."""
    text = text.strip()
    return bool(NUMBER.fullmatch(text) or _COMMA.fullmatch(text)) or reads_iso([text]) or bool(patterns_of([text]))
