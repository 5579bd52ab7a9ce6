"""Consumer groups of a real broker: what their members have, and their removal."""

from __future__ import annotations

import struct
import time
import uuid

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from streamgauge.app.services.broker import Broker
from streamgauge.streams.kafka.clients import Access, Topics, members_share


def test_a_groups_partitions_are_counted_and_the_group_is_removed_once_it_has_no_members(broker: Broker) -> None:
    topics, name = Topics(Access(broker.bootstrap)), f"test-{uuid.uuid4().hex[:8]}"
    for topic, partitions in ((f"{name}-a", 3), (f"{name}-b", 2)):
        topics.make(topic, partitions)
    assert topics.assigned(name) == {}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name})
    consumer.subscribe([f"{name}-a", f"{name}-b"])
    deadline = time.monotonic() + 30
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    assert topics.assigned(name) == {f"{name}-a": 3, f"{name}-b": 2}
    consumer.close()
    assert topics.remove([f"{name}-a", f"{name}-b"], [name])
    groups = AdminClient({"bootstrap.servers": broker.bootstrap}).list_groups(timeout=10)
    assert name not in {group.id for group in groups}


def test_a_members_share_is_read_from_its_bytes() -> None:
    def topic(name: bytes, *partitions: int) -> bytes:
        numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
        return struct.pack(">h", len(name)) + name + numbers

    share = struct.pack(">hi", 1, 2) + topic("flüge".encode(), 0, 2) + topic(b"b", 5) + struct.pack(">i", -1)
    assert members_share(share) == [("flüge", 0), ("flüge", 2), ("b", 5)]
    assert members_share(b"") == members_share(struct.pack(">hi", 0, 0)) == []
