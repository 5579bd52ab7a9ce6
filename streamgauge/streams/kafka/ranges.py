"""Ranges of a topic's records: fixed once by the topic's id and offsets, then read as often as need be.

A reader joins no group and commits nothing. It reads what is committed, and ends by position, since compaction and
transactions leave offsets without a record.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from streamgauge.base.errors import UserError
from streamgauge.descriptions.topic import Pinned, Topic, moment_ms
from streamgauge.streams.kafka.clients import FRUITLESS_S, TIMEOUT_S, Access, Description, Topics, broker_errors

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

#: most records that are taken at once
_MOST = 5_000
#: KiB that a reader holds ahead, and bytes that it fetches at once; what follows the range's end is read in vain
_AHEAD_KIB, _FETCH_BYTES = 16 << 10, 4 << 20
_LOOK_S = 0.2


@dataclass(frozen=True)
class Span:
    """Offsets of a partition, from `low` on, up to `high`, which is not among them."""

    partition: int
    low: int
    high: int


def access(topic: Topic) -> Access:
    return Access(topic.bootstrap, topic.security)


def pinned(topic: Topic) -> Pinned:
    """Returns the records that a topic's range has now. Raises UserError."""
    there = described(topic)
    now_ms = time.time_ns() // 10**6
    with _consumer(topic) as reader:
        with broker_errors(access(topic), f"{topic.url}: its offsets cannot be read"):
            edges = _edges(topic, there, reader.consumer, now_ms)
        total = sum(high - low for low, high in edges.values())
        if total == 0:
            raise no_record(topic)
        if topic.most_events is not None and total > topic.most_events:
            edges = _first(edges, topic.most_events, total)
        return Pinned(topic_id=there.id, ranges=edges, appended=_appended(topic, edges, reader))


def _first(edges: dict[int, tuple[int, int]], most: int, total: int) -> dict[int, tuple[int, int]]:
    """The first part of each partition, so many offsets in all. total: of the edges."""
    parts, before = dict[int, tuple[int, int]](), 0
    for number, (low, high) in edges.items():
        after = before + high - low
        parts[number] = low, low + after * most // total - before * most // total
        before = after
    return parts


def described(topic: Topic) -> Description:
    """Returns what the broker knows of a topic. Raises UserError."""
    if find_spec("confluent_kafka") is None:
        raise UserError(f"{topic.url}: confluent-kafka is not installed here; install the extra kafka")
    topics = Topics(access(topic))
    topics.check()
    return topics.describe(topic.topic, topic.url)


def require_same(topic: Topic) -> None:
    """Raises UserError unless the topic is there, and is still the pinned one."""
    found = described(topic).id
    if topic.pinned is not None and found != topic.pinned.topic_id:
        raise UserError(
            f"{topic.url}: found a topic with the id {found}, allowed: {topic.pinned.topic_id}; it was removed and "
            "made anew, so its records are others; begin another run"
        )


def read(topic: Topic, span: Span) -> Iterator[list[Message]]:
    """Yields the records of a span as they come. Raises UserError."""
    with _consumer(topic) as reader:
        yield from reader.messages(span)


def _edges(topic: Topic, there: Description, consumer: Consumer, now_ms: int) -> dict[int, tuple[int, int]]:
    """First offset and end of each partition that is read."""
    from confluent_kafka import TopicPartition

    wanted = _wanted(topic, there.partitions)
    places = {number: TopicPartition(topic.topic, number) for number in wanted}
    kept = {n: consumer.get_watermark_offsets(place, timeout=TIMEOUT_S) for n, place in places.items()}

    def edge(given: str | dict[int, int], word: str, side: int) -> dict[int, int]:
        if isinstance(given, dict):
            return {number: given[number] for number in wanted}
        if given == word:
            return {number: kept[number][side] for number in wanted}
        at = [TopicPartition(topic.topic, number, max(0, moment_ms(given, now_ms))) for number in wanted]
        found = consumer.offsets_for_times(at, timeout=TIMEOUT_S)
        # the broker knows no later record: the end
        return {one.partition: one.offset if one.offset >= 0 else kept[one.partition][1] for one in found}

    starts, ends = edge(topic.start, "earliest", 0), edge(topic.until, "latest", 1)
    edges = {}
    for number in wanted:
        (first, end), low, high = kept[number], starts[number], ends[number]
        where = f"{topic.url}: partition {number}"
        if low < first:
            raise UserError(
                f"{where}: from: found offset {low}, allowed: {first} or more, as retention took the earlier"
            )
        if high > end:
            raise UserError(f"{where}: until: found offset {high}, allowed: at most {end}, where the partition ends")
        if isinstance(topic.start, dict) and low > end:
            raise UserError(f"{where}: from: found offset {low}, allowed: at most {end}, where the partition ends")
        edges[number] = (low, max(low, high))
    return edges


def _wanted(topic: Topic, there: list[int]) -> list[int]:
    """Partitions that are read: all, or those that offsets name."""
    named = [set(edge) for edge in (topic.start, topic.until) if isinstance(edge, dict)]
    if len(named) == 2 and named[0] != named[1]:
        raise UserError(f"{topic.url}: from and until name other partitions, allowed: offsets of the same ones")
    for number in sorted(named[0] if named else ()):
        if number not in there:
            raise UserError(f"{topic.url}: found no partition {number}, allowed: 0 to {max(there)}")
    return sorted(named[0]) if named else there


def _appended(topic: Topic, edges: dict[int, tuple[int, int]], reader: _Reader) -> bool:
    """True if the range's first record bears the time at which the broker took it."""
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

    for number, (low, high) in edges.items():
        for some in reader.messages(Span(number, low, high)):
            return bool(some[0].timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME)
    raise no_record(topic)


def no_record(topic: Topic) -> UserError:
    """Error of a range without a record that is committed."""
    edges = f"from {_shown(topic.start)} until {_shown(topic.until)}"
    return UserError(f"{topic.url}: found no record {edges}; choose an earlier from, or a later until")


def _shown(edge: str | dict[int, int]) -> str:
    return edge if isinstance(edge, str) else ",".join(f"{number}:{offset}" for number, offset in edge.items())


@contextmanager
def _consumer(topic: Topic) -> Iterator[_Reader]:
    from confluent_kafka import Consumer

    reasons = list[str]()
    settings: dict[str, Any] = access(topic).settings() | {
        "error_cb": lambda error: reasons.append(error.str()),
        "group.id": f"streamgauge-{uuid.uuid4().hex[:8]}",  # which is never joined
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "check.crcs": True,
        "queued.max.messages.kbytes": _AHEAD_KIB,
        "fetch.message.max.bytes": _FETCH_BYTES,
    }
    with broker_errors(access(topic), f"{topic.url}: cannot be read"):
        consumer = Consumer(settings)
    with closing(consumer):
        yield _Reader(topic, consumer, reasons)


@dataclass
class _Reader:
    """A consumer of a topic, and the errors of its connections."""

    topic: Topic
    consumer: Consumer
    reasons: list[str] = field(default_factory=list)

    def messages(self, span: Span) -> Iterator[list[Message]]:
        """Yields the records of a span, a few thousand at a time."""
        from confluent_kafka import TopicPartition

        with broker_errors(access(self.topic), self._where(span)):
            self.consumer.assign([TopicPartition(self.topic.topic, span.partition, span.low)])
            at, is_over = span.low, span.low >= span.high
            while not is_over:
                # the client waits until it has as many as it is asked for
                more, is_over = self._within(self._some(span, at, min(_MOST, span.high - at)), span)
                if more:
                    at = more[-1].offset() + 1
                    yield more
                is_over = is_over or at == span.high

    def _some(self, span: Span, at: int, most: int) -> list[Message]:
        """The next records, and what the client has to tell. Raises UserError if there is nothing for too long."""
        begun, is_there = time.monotonic(), False
        while True:
            some: list[Message] = self.consumer.consume(most, _LOOK_S)
            if some:
                self.reasons.clear()
                return some
            if not is_there and time.monotonic() - begun > FRUITLESS_S:
                require_same(self.topic)  # of a topic that is gone, a consumer says nothing
                is_there = True
            why = [reason for reason in dict.fromkeys(self.reasons) if "brokers are down" not in reason]
            if time.monotonic() - begun > (FRUITLESS_S if why else TIMEOUT_S):
                said = access(self.topic).masked(why[-1]) if why else "the broker does not answer"
                raise UserError(f"{self._where(span)}: nothing comes from offset {at} on: {said}")

    def _within(self, some: list[Message], span: Span) -> tuple[list[Message], bool]:
        """Records before the span's end, and whether the end is reached. Raises UserError for an error among them."""
        from confluent_kafka import KafkaError

        for place, message in enumerate(some):
            error = message.error()
            if error is None:
                if message.offset() >= span.high:
                    return some[:place], True
            elif error.code() != KafkaError._PARTITION_EOF:
                said = access(self.topic).masked(error.str())
                raise UserError(f"{self._where(span)}: cannot be read: {said}")
            elif message.offset() >= span.high:
                return some[:place], True
            else:
                raise UserError(
                    f"{self._where(span)}: what is committed ends at offset {message.offset()}, allowed: until "
                    f"{span.high}; read again when no transaction is open, or name an earlier until"
                )
        return some, False

    def _where(self, span: Span) -> str:
        return f"{self.topic.url}: partition {span.partition}"
