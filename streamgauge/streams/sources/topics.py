"""Records of a topic as lines of text, with what the records themselves tell in columns beside the lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, int64s
from streamgauge.base.errors import UserError
from streamgauge.base.lines import first_lines
from streamgauge.descriptions.source import Source
from streamgauge.descriptions.topic import HEADER, PARTITION, Pinned, Topic
from streamgauge.records.topic import TopicRange
from streamgauge.streams.kafka import ranges
from streamgauge.streams.kafka.ranges import Span
from streamgauge.streams.kafka.values import Decoder, decoder_of

if TYPE_CHECKING:
    from confluent_kafka import Message

    from streamgauge.config import Benchmark

#: offsets that a task reads at a time, and that need not be read again after a kill
SPAN_OFFSETS = 250_000
TOMBSTONE = "tombstone"
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
#: kind of a record's time, as confluent_kafka has it
_CREATE_TIME = 1
#: in a run's folder: the range that its first stage has fixed
_RECORD = "topic.json"


@dataclass(frozen=True)
class Beside:
    """Columns of texts beside the lines of a block, and facts about each line."""

    columns: tuple[pa.Array, ...]  # binary
    at: Ints  # place of each line from its span's first offset on
    reasons: dict[str, list[int]]  # why lines are no events -> those lines

    def first(self, count: int) -> Beside:
        reasons = {reason: [at for at in lines if at < count] for reason, lines in self.reasons.items()}
        columns = tuple(column.slice(0, count) for column in self.columns)
        return Beside(columns, self.at[:count], {reason: lines for reason, lines in reasons.items() if lines})


class Piece(NamedTuple):
    """Lines, each ended by a newline, and what stands beside them."""

    lines: bytes
    beside: Beside | None = None
    known: list[pa.Array] | None = None
    """event time, arrival time if there is one, and columns of each line, where they need no text"""

    def first(self, count: int) -> Piece:
        """Returns the first lines, which must be as many."""
        known = None if self.known is None else [array.slice(0, count) for array in self.known]
        return Piece(first_lines(self.lines, count), self.beside and self.beside.first(count), known)


def pinned(source: Source) -> Source:
    """Returns the source, which does not change any more: a topic's range gets fixed offsets. Raises UserError."""
    if source.kafka is None or source.kafka.pinned is not None:
        return source
    return _with(source, ranges.pinned(source.kafka))


def in_run(benchmark: Benchmark, run: Path, *, ask: bool = True) -> Benchmark:
    """Returns the benchmark with the range that a run has fixed. The run's first stage fixes it. Raises UserError.

    ask: without it the broker is not asked, and a range that is not fixed yet stays as it is.
    """
    source = benchmark.source
    if source.kafka is None or source.kafka.pinned is not None:
        return benchmark
    try:
        fixed = TopicRange.read(run / _RECORD, "begin another run")
    except FileNotFoundError:
        if not ask:
            return benchmark
        TopicRange(topic=source.kafka.topic, pinned=ranges.pinned(source.kafka)).write(run / _RECORD)
        return in_run(benchmark, run)
    if fixed.topic != source.kafka.topic:
        raise UserError(
            f"source.kafka.topic: found {source.kafka.topic}, but this run reads {fixed.topic}; begin another run"
        )
    return benchmark.model_copy(update={"source": _with(source, fixed.pinned)})


def _with(source: Source, fixed: Pinned) -> Source:
    """The source with a fixed range, and with what follows from it.

    A topic whose records bear the time at which the broker took them has its arrival, and hence its order by that.
    Several partitions are measured each for itself, too.
    """
    keys = source.model_dump()
    keys["kafka"]["pinned"] = fixed.model_dump()
    several = len(fixed.ranges) > 1
    if fixed.appended and source.arrival is None:
        keys["arrival"] = {"column": "kafka.timestamp"}
        if several and source.order == "file":
            keys["order"] = "arrival"
    if several and source.by is None and PARTITION not in source.columns:
        keys["columns"][PARTITION] = {"path": "kafka.partition", "type": "int64"}
        keys["by"] = PARTITION
    return Source.model_validate(keys)


def require_order(source: Source) -> None:
    """Raises UserError for a topic between whose partitions there is no order, which a stream needs."""
    if not source.is_merged:
        raise UserError(
            "source.order: found file, but the topic has several partitions and no append times, so that only the "
            "order within a partition is known; allowed: order: event_time, or order: arrival with source.arrival"
        )


def require_parts(source: Source) -> None:
    """Raises UserError for parts whose events may lie in several partitions of a topic without order between them."""
    if source.by is not None and not source.is_merged and source.places[source.by] != "kafka.partition":
        raise UserError(
            f"source.by: found {source.places[source.by]}, allowed: kafka.partition, as only the order within a "
            "partition is known; or give order: event_time, or order: arrival with source.arrival"
        )


def identity(topic: Topic) -> tuple[dict[str, int | str], ...]:
    """Returns what a manifest tells of a topic in place of files."""
    return ({"topic": topic.url, "topic_id": topic.pinned.topic_id if topic.pinned else ""},)


def spans(topic: Topic, scale: float = 1.0) -> list[Span]:
    """Cuts the pinned ranges, or the first part of each, into spans."""
    assert topic.pinned is not None
    cut = []
    for partition, (low, high) in sorted(topic.pinned.ranges.items()):
        end = low + ceil((high - low) * Fraction(repr(scale)))
        cut += [Span(partition, at, min(at + SPAN_OFFSETS, end)) for at in range(low, end, SPAN_OFFSETS)]
    return cut


def pieces(topic: Topic, span: Span, names: Sequence[str], block_bytes: int) -> Iterator[Piece]:
    """Yields the records of a span, about so many bytes at a time. names: of the columns beside. Raises UserError."""
    decode = decoder_of(topic.values, topic.registry, topic.writer_schema)
    held, held_bytes = list[Piece](), 0
    for messages in ranges.read(topic, span):
        held.append(_piece(messages, topic, span, names, decode))
        held_bytes += len(held[-1].lines)
        if held_bytes >= block_bytes:
            yield _joined(held)
            held, held_bytes = [], 0
    if held:
        yield _joined(held)


def _joined(held: Sequence[Piece]) -> Piece:
    besides = [piece.beside for piece in held if piece.beside is not None]
    columns = tuple(pa.concat_arrays(each) for each in zip(*(one.columns for one in besides), strict=True))
    reasons: dict[str, list[int]] = {}
    first = 0
    for one in besides:
        for reason, lines in one.reasons.items():
            reasons.setdefault(reason, []).extend(first + at for at in lines)
        first += len(one.at)
    at = np.concatenate([one.at for one in besides])
    return Piece(b"".join(piece.lines for piece in held), Beside(columns, at, reasons))


def _piece(messages: list[Message], topic: Topic, span: Span, names: Sequence[str], decode: Decoder) -> Piece:
    offsets = np.fromiter((message.offset() for message in messages), np.int64, len(messages))
    values = [message.value() for message in messages]
    lines, bad = decode.lines([value or b"" for value in values])
    bad |= {at: TOMBSTONE for at, value in enumerate(values) if value is None}
    reasons: dict[str, list[int]] = {}
    for at, reason in bad.items():
        reasons.setdefault(reason, []).append(at)
    columns = tuple(_column(name, messages, offsets, topic) for name in names)
    return Piece(b"\n".join([*lines, b""]), Beside(columns, offsets - span.low, reasons))


def _column(name: str, messages: list[Message], offsets: Ints, topic: Topic) -> pa.Array:
    """Texts of what each record tells by that name; empty where it tells nothing. Raises UserError."""
    if name == "kafka.partition":
        texts = [str(messages[0].partition()).encode()] * len(messages)
    elif name == "kafka.offset":
        return pc.cast(pc.cast(int64s(offsets), pa.string()), pa.binary())
    elif name == "kafka.timestamp":
        times = [message.timestamp() for message in messages]
        if topic.pinned is not None and topic.pinned.appended and _CREATE_TIME in {kind for kind, _ in times}:
            first = next(at for at, (kind, _) in enumerate(times) if kind == _CREATE_TIME)
            raise UserError(
                f"{topic.url}: partition {messages[first].partition()}: offset {offsets[first]}: found its producer's "
                "time, allowed: the append time, with which the range begins; let the range end before (until)"
            )
        texts = [str(ms).encode() if kind else b"" for kind, ms in times]  # kind 0: it has none
    elif name == "kafka.key":
        texts = [_text(message.key()) for message in messages]
    else:
        header = name.removeprefix(HEADER)
        texts = [_text(dict(message.headers() or ()).get(header)) for message in messages]
    return pa.array(texts, pa.binary())


def _text(value: bytes | str | None) -> bytes:
    """A key or header as a field of text: bytes that are no text of one line as hexadecimal digits."""
    if value is None:
        return b""
    data = value.encode() if isinstance(value, str) else value
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.hex().encode()
    return data.hex().encode() if _CONTROL.search(data) else data
