"""Topics of known records, and a dump of what a broker has, by a plain consumer."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def made(bootstrap: str, partitions: int = 1, name: str = "", **settings: str) -> str:
    """Makes a topic, whose settings have _ for dots; returns its name."""
    name = name or f"test-{uuid.uuid4().hex[:8]}"
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, config=config)])[name].result(20)
    return name


def removed(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result(20)


@dataclass(frozen=True)
class Sent:
    """A record to be written."""

    partition: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    time_ms: int = 0  # 0: that of the producer


def write(bootstrap: str, topic: str, records: Iterable[Sent], **settings: object) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "message.max.bytes": 20_000_000, "enable.idempotence": True, **settings}
    )
    for one in records:
        producer.produce(topic, one.value, one.key, one.partition, timestamp=one.time_ms, headers=list(one.headers))
        producer.poll(0)
    assert producer.flush(30) == 0


def late_events(count: int, partitions: int, *, late: float = 0.2, most_ms: int = 3000, seed: int = 1) -> list[Sent]:
    """Records whose times go up by 1 ms, of which some are late, in partitions by chance."""
    chance = random.Random(seed)
    sent = []
    for number in range(count):
        behind = chance.randrange(1, most_ms) if chance.random() < late else 0
        event = {"id": number, "payload": {"ts": 1767225600000 + number - behind, "user": f"u{number % 7}"}}
        sent.append(Sent(chance.randrange(partitions), json.dumps(event).encode(), f"k{number % 5}".encode()))
    return sent


def dumped(bootstrap: str, topic: str) -> list[Message]:
    """Returns all records of a topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False})
    found = list[Message]()
    for partition in sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions):
        place = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=10)
        consumer.assign([place])
        while end and (not found or found[-1].partition() != partition or found[-1].offset() < end - 1):
            found += consumer.consume(1000, 0.2)
    consumer.close()
    return found


def out_of_order(times: Sequence[int]) -> int:
    """Number of times below an earlier one."""
    largest = list(accumulate(times, max))
    return sum(time < before for time, before in zip(times[1:], largest, strict=False))
