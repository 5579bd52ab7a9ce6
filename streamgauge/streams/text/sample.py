"""Reads the first lines of a source, to show within a moment whether they are read as they are meant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from streamgauge.base.errors import UserError
from streamgauge.base.lines import line_count
from streamgauge.descriptions.source import Source, TimeColumn
from streamgauge.records.profile import Hint
from streamgauge.streams.disorder.blocks import Blocks
from streamgauge.streams.disorder.hints import Place
from streamgauge.streams.disorder.looking import Origin, in_file
from streamgauge.streams.disorder.row_groups import column_array
from streamgauge.streams.sources.topics import Piece
from streamgauge.streams.text import beyond, over_lines, patterns, ranges
from streamgauge.streams.text.fields import texts
from streamgauge.streams.text.over_lines import UNBALANCED
from streamgauge.streams.text.parse import MORE_THAN, NO_FAULTS, TOO_LONG, Layout, Parsed, lines_of, parse
from streamgauge.streams.text.splits import source_splits

LINES = 1000
_BYTES = 1 << 20
#: what to do if too many lines are bad for this reason
_ADVICE = {
    "not UTF-8": "convert the file to UTF-8",
    TOO_LONG: "name a file of text lines",
    UNBALANCED: "set source.quote: null if quotes mean nothing",
    "not a JSON object": "write an object a line, as by: jq -c . objects.json > lines.jsonl",
    "empty line": "remove empty lines",
    f"{beyond.REASON} into 64-bit ns": "times of a finer unit need another source.time.unit",
    "time is not ISO-8601": "times that are numbers need source.time.unit, other ones source.time.format",
}


class BadLine(TypedDict):
    """A line that is no event: its 0-based place among the lines, the reason, and its text."""

    at: int
    reason: str
    text: bytes


@dataclass(frozen=True)
class Sample:
    """Events and bad lines in the first lines of a source's first file."""

    path: str
    lines: int
    parsed: Parsed
    doubts: list[str]  # warnings, which name keys of a benchmark file
    hints: tuple[Hint, ...] = ()

    @property
    def bad(self) -> list[BadLine]:
        return [] if self.parsed.bad is None else self.parsed.bad.to_pylist()

    @property
    def span(self) -> tuple[int, int]:
        """Least and largest event time in ticks; there must be an event."""
        times = column_array(self.parsed.events, "event_time")
        return int(times.min()), int(times.max())


def sample(source: Source, count: int = LINES) -> Sample:
    """Reads at most `count` lines, and no more than the first MiB of text. Raises UserError if all of them are bad."""
    splits = source_splits(source, _BYTES)
    filled = ((split, piece) for split in splits for piece in split.pieces(_BYTES) if piece.lines)
    split, piece = next(filled, (None, Piece(b"")))
    if split is None:
        raise no_data(splits[0].path if splits else source.names[0])
    lines = min(count, line_count(piece.lines))
    piece = piece.first(lines)
    data, layout = piece.lines, split.layout
    doubts = [_doubt("source.time", source.time, _fields(piece, layout, layout.time))]
    if source.arrival is not None:
        doubts.append(_doubt("source.arrival", source.arrival, _fields(piece, layout, layout.arrival)))
    if source.header and source.format == "csv":
        doubts.append(_event_as_header(ranges.first_line(split.path, source.comment).line, layout))
    parsed, first = parse(data, layout, 0, piece.beside, piece.known), split.first_line
    whole = len(splits) == 1 and lines < count and len(data) < _BYTES
    hints = _hints(source, parsed, Place(file=split.path, first_seq=0, first_line=first), whole=whole)
    result = Sample(split.path, lines, parsed, [doubt for doubt in doubts if doubt], hints)
    bad = result.bad
    out = [(split.path, first + one["at"], one["text"]) for one in bad if one["reason"].startswith(beyond.REASON)]
    result = replace(result, hints=(*hints, *beyond.hints(layout, out)))
    odd = [(split.path, first + one["at"], one["text"]) for one in bad if one["reason"] == UNBALANCED]
    over_lines.refuse(source, odd)
    if len(bad) == lines:
        shown = next((one for one in bad if one["reason"] not in NO_FAULTS), bad[0])
        raise too_many_bad(source, split.path, first + shown["at"], shown["reason"], shown["text"], lines, lines)
    return result


def _hints(source: Source, parsed: Parsed, place: Place, *, whole: bool) -> tuple[Hint, ...]:
    """Hints of these events. whole: they are all that there are; the first of a dense stream may share an instant."""
    times, seqs = (column_array(parsed.events, name) for name in ("event_time", "seq"))
    origin = Origin(source.tick, source.time, (place,), source.line_word, parsed.skipped)
    hints = in_file(Blocks.of(times, seqs), origin).hints
    return tuple(hint for hint in hints if whole or hint.kind != "constant_time")


def _fields(piece: Piece, layout: Layout, parts: tuple[int, ...]) -> list[bytes]:
    _, fields = lines_of(piece.lines, layout, piece.beside)
    columns = [texts(fields.buffer, *fields.field(part)).to_pylist() for part in parts]
    return [b" ".join(each) for each in zip(*columns, strict=True)]


def _doubt(key: str, column: TimeColumn, times: list[bytes]) -> str | None:
    """A warning if the year is unknown, or if fractions look like milliseconds that are not padded; None if not.

    A writer that drops the zeros at a fraction's end never ends one in 0, and one that keeps them has one length.
    """
    if column.format is None:
        return None
    if patterns.yearless(column.format) and column.year is None:
        return f"warning: {key}.format has no year: the first time is taken for one of 1970; give {key}.year"
    digits = patterns.fractions(column.format, times)
    lengths = {len(text) for text in digits}
    if len(lengths) < 2 or not any(text.endswith("0") and len(text) > 1 for text in digits):
        return None
    return (
        f"warning: {key}.format: %f reads .7 as 700 ms, and among the first {len(times):,} times are fractions of "
        f"{min(lengths)} to {max(lengths)} digits, some of which end in 0; write %L if they are milliseconds"
    )


def _event_as_header(line: bytes, layout: Layout) -> str | None:
    """A warning if the line that is taken for names reads as an event; None if not."""
    if not parse(ranges.ended(line), layout, 0).events.num_rows:
        return None
    text = line[:60].decode(errors="replace").strip()
    return f"warning: source.header: {text!r} is taken for names, but reads as an event; set header: false if it is one"


def no_data(file: str) -> UserError:
    return UserError(f"{file}: no line of data, only a header or nothing; name a file with data")


def too_many_bad(source: Source, file: str, number: int, reason: str, text: bytes, bad: int, lines: int) -> UserError:
    """The error that shows the first bad line, the share of bad lines and what to do. number: of the line, 1-based."""
    shown = text[:80].rstrip(b"\r").decode(errors="replace") + ("…" if len(text) > 80 else "")
    if reason.startswith(MORE_THAN):
        advice = "quote fields that hold a separator, or name all fields by source.column_names"
    else:
        separator = "" if source.is_json else f"source.separator ({source.separator!r}) and "
        advice = _ADVICE.get(reason, f"check {separator}source.time")
    word = "line" if source.kafka is None else source.line_word
    return UserError(
        f"{file}: {word} {number}: {reason}: {shown!r}; {bad} of {lines} lines are bad, "
        f"allowed: {source.max_bad_fraction:.4g} of them; {advice}, or raise source.max_bad_fraction"
    )
