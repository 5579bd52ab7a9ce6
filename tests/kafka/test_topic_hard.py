"""Topics that are hard to read: transactions, large values, what retention took, and topics that go meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from streamgauge.app.services.broker import Broker
from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import ScratchStore
from streamgauge.config import Source
from streamgauge.records.manifests import EventsManifest
from streamgauge.streams.kafka import ranges
from streamgauge.streams.keys import Scaled
from streamgauge.streams.sources import topics
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked
from tests.kafka.test_topic_runs import rows, source_of
from tests.kafka.topics import Sent, dumped, late_events, made, removed, write


@pytest.fixture
def own(broker: Broker) -> Iterator[str]:
    """Name of a topic of a partition, with large records."""
    name = made(broker.bootstrap, max_message_bytes="20000000")
    yield name
    removed(broker.bootstrap, name)


def ingested(source: Source, tmp_path: Path) -> tuple[EventsManifest, list[int]]:
    events = ingest.run(Forked(1), Scaled(source), ScratchStore(tmp_path))
    return events.read(EventsManifest), rows(events)["seq"].to_pylist()


def test_what_is_committed_counts_and_ends_the_range(broker: Broker, own: str, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": own})
    producer.init_transactions(20)
    ends = (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    for end in ends:
        producer.begin_transaction()
        for one in late_events(5, 1):
            producer.produce(own, one.value, partition=0)
        producer.flush(20)
        end(20)
    producer.begin_transaction()
    for one in late_events(2, 1):
        producer.produce(own, one.value, partition=0)
    producer.flush(20)

    source = topics.pinned(source_of(broker, own))
    assert source.kafka
    assert source.kafka.pinned
    assert source.kafka.pinned.ranges == {0: (0, 18)}  # each transaction ends in a marker, which has an offset
    manifest, seqs = ingested(source, tmp_path)
    assert (manifest.events, seqs) == (10, [0, 1, 2, 3, 4, 12, 13, 14, 15, 16])
    beyond = {"bootstrap": broker.bootstrap, "topic": own, "until": {0: 20}}
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"partition 0: until: found offset 20, allowed: at most 18"):
        topics.pinned(source_of(broker, own, kafka=beyond))
    assert time.monotonic() - begun < 15
    producer.abort_transaction(20)


def test_a_value_of_10_mb_is_read_and_one_beyond_16_mib_is_no_event(broker: Broker, own: str, tmp_path: Path) -> None:
    sizes = {1: 10, 2: 10_000_000, 3: 17 << 20}
    values = [json.dumps({"payload": {"ts": at}, "more": "x" * size}).encode() for at, size in sizes.items()]
    write(broker.bootstrap, own, [Sent(0, value) for value in values])
    manifest, seqs = ingested(topics.pinned(source_of(broker, own, max_bad_fraction=0.5)), tmp_path)
    assert (manifest.events, manifest.quarantined, seqs) == (2, 1, [0, 1])


def test_what_retention_took_is_told(broker: Broker, own: str, tmp_path: Path) -> None:
    write(broker.bootstrap, own, late_events(20, 1))
    fixed = topics.pinned(source_of(broker, own))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(own, 0, 5)]).values():
        future.result(20)
    begins = {"bootstrap": broker.bootstrap, "topic": own, "from": {0: 0}}
    with pytest.raises(UserError, match="partition 0: from: found offset 0, allowed: 5 or more, as retention took"):
        topics.pinned(source_of(broker, own, kafka=begins))
    with pytest.raises(UserError, match=r"partition 0: cannot be read: .*[Oo]ffset"):
        ingested(fixed, tmp_path)


def test_a_range_has_times_of_one_kind(broker: Broker, tmp_path: Path) -> None:
    name = made(broker.bootstrap, message_timestamp_type="LogAppendTime")
    write(broker.bootstrap, name, late_events(5, 1))
    changed = ConfigEntry("message.timestamp.type", "CreateTime", incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[changed])
    admin.incremental_alter_configs([topic])[topic].result(20)
    write(broker.bootstrap, name, late_events(5, 1))
    with pytest.raises(UserError, match="partition 0: offset 5: found its producer's time, allowed: the append"):
        ingested(topics.pinned(source_of(broker, name)), tmp_path)
    later = {"bootstrap": broker.bootstrap, "topic": name, "from": {0: 5}}
    assert ingested(topics.pinned(source_of(broker, name, kafka=later)), tmp_path)[0].arrival is False
    removed(broker.bootstrap, name)


def test_a_topic_that_goes_while_it_is_read_is_told_in_time(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_MOST", 5)
    name = made(broker.bootstrap)
    value = json.dumps({"payload": {"ts": 1}, "more": "x" * 900_000}).encode()
    write(broker.bootstrap, name, [Sent(0, value)] * 60)  # more than a client holds ahead
    source = topics.pinned(source_of(broker, name))
    assert source.kafka
    (span,) = topics.spans(source.kafka)
    reading = ranges.read(source.kafka, span)
    next(reading)
    removed(broker.bootstrap, name)
    begun = time.monotonic()
    with pytest.raises(UserError, match=f"{name}: "):
        list(reading)
    assert time.monotonic() - begun < 15


def test_a_topic_that_is_made_anew_is_another_one(broker: Broker, tmp_path: Path) -> None:
    name = made(broker.bootstrap)
    write(broker.bootstrap, name, late_events(5, 1))
    fixed = topics.pinned(source_of(broker, name))
    removed(broker.bootstrap, name)
    time.sleep(1)
    made(broker.bootstrap, name=name)
    write(broker.bootstrap, name, late_events(5, 1))
    with pytest.raises(UserError, match=r"found a topic with the id .*, allowed: .*; it was removed and made anew"):
        ingested(fixed, tmp_path)
    removed(broker.bootstrap, name)


def test_nothing_is_committed_and_no_group_and_no_topic_is_left(broker: Broker, own: str, tmp_path: Path) -> None:
    write(broker.bootstrap, own, late_events(50, 1))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    there = set(admin.list_topics(timeout=10).topics)
    groups = {group.group_id for group in admin.list_consumer_groups().result(20).valid}  # of other tests
    ingested(topics.pinned(source_of(broker, own)), tmp_path)
    with pytest.raises(UserError, match="the broker has no such topic"):
        topics.pinned(source_of(broker, "not-there"))
    assert {group.group_id for group in admin.list_consumer_groups().result(20).valid} <= groups
    assert set(admin.list_topics(timeout=10).topics) == there


def test_a_broker_that_is_not_there_is_told_in_time() -> None:
    command = [str(Path(sys.executable).with_name("streamgauge")), "analyze", "kafka://127.0.0.1:1/t", "--time", "t"]
    begun = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the Kafka broker 127.0.0.1:1 cannot be used: " in ran.stderr
    assert "Connection refused" in ran.stderr
    assert time.monotonic() - begun < 15


@pytest.mark.prove
def test_a_compacted_topic_is_read_by_position(broker: Broker, tmp_path: Path) -> None:
    name = made(
        broker.bootstrap, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="60000",
    )  # fmt: skip
    sent = [Sent(0, one.value, f"k{number % 5}".encode()) for number, one in enumerate(late_events(200, 1))]
    write(broker.bootstrap, name, [*sent, Sent(0, None, b"k0")])
    deadline = time.monotonic() + 120
    while len(left := dumped(broker.bootstrap, name)) > 50 and time.monotonic() < deadline:
        time.sleep(1)
        write(broker.bootstrap, name, [Sent(0, sent[0].value, b"last")])  # the newest segment stays as it is
    assert len(left) <= 50
    manifest, seqs = ingested(topics.pinned(source_of(broker, name, max_bad_fraction=0)), tmp_path)
    there = dumped(broker.bootstrap, name)
    assert seqs == [one.offset() for one in there if one.value() is not None]
    assert manifest.quarantined == sum(one.value() is None for one in there)
    removed(broker.bootstrap, name)
