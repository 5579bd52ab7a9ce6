"""Broker, topics, publisher, progress and answers, all on a real broker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from streamgauge.app.services.broker import Broker
from streamgauge.base.errors import UserError
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.measure import checks
from streamgauge.bench.publish.answers import Output
from streamgauge.bench.publish.progress import Group, Reached
from streamgauge.bench.publish.publisher import Publisher, Task
from streamgauge.config import load
from streamgauge.streams.kafka.clients import Access, Topics
from streamgauge.streams.kafka.records import Form
from tests.conftest import ROOT
from tests.driver.conftest import Serve

Make = Callable[..., str]


def records(access: Access, topic: str, partition: int, count: int) -> list[Any]:
    """The first records of a partition."""
    consumer = Consumer(access.settings() | {"group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0)])
    answers: list[Any] = consumer.consume(count, 20)
    consumer.close()
    return answers


def test_a_stale_java_home_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(
        UserError, match=r"^Java: found none \(JAVA_HOME names .*/gone/bin/java\); Kafka's broker needs"
    ):
        Broker(tmp_path / "work")


def test_row_n_of_a_queue_is_the_record_at_offset_n(serve: Serve, access: Access, topic: Make, tmp_path: Path) -> None:
    endpoint, name, stop = serve([i * 1000 for i in range(100)], partitions=2), topic(2), threading.Event()
    task = Task("a", (endpoint,), access.bootstrap, {}, name, Form("json"), str(tmp_path))
    with Connection(endpoint) as control:
        control.open("a", 2000, 0.2)
        publisher = Publisher(task, stop)
        thread = threading.Thread(target=publisher.run, daemon=True)
        thread.start()
        began = control.start()
        until = time.monotonic() + 20
        while publisher.finished < 2 and time.monotonic() < until:
            time.sleep(0.02)
        wanted = [row for batch in control.read(1, 0) for row in batch.to_pylist()]
    taken = records(access, name, 1, 201)
    stop.set()
    thread.join()
    assert [record.offset() for record in taken] == list(range(201))
    assert [dict(record.headers())["seq"] for record in taken] == [*(b"%d" % n for n in range(1, 401, 2)), b"-1"]
    assert [int(dict(record.headers())["offered_wall"]) for record in taken] == [row["offered_wall"] for row in wanted]
    flights = [*(row["flight"] for row in wanted[:-1]), -1]  # a sentinel has no null
    assert [json.loads(record.value())["flight"] for record in taken] == flights
    assert "sentinel" in dict(taken[-1].headers())
    kept = pa.ipc.open_stream(str(tmp_path / "events-1.arrow")).read_all()
    assert kept.column("offered_wall").to_pylist() == [row["offered_wall"] for row in wanted]
    figures = publisher.figures()
    assert (figures["published"], figures["finished"], figures["queue_full"]) == ([201, 201], 2, 0)
    assert figures["slip"]["count"] > 402 / 8 - 1
    stamps = [record.timestamp()[1] for record in taken]
    assert began // 10**6 <= stamps[0] <= stamps[-1] <= time.time_ns() // 10**6


def test_progress_is_what_a_group_has_committed(access: Access, topic: Make) -> None:
    name, topics = topic(2), Topics(access)
    progress = Group(access, topics, f"{name}-group", name, 2)
    assert progress.reached() == Reached({}, {})
    producer = Producer(access.settings())
    for number in range(10):
        producer.produce(name, b"x", partition=number % 2)
    producer.flush(10)
    settings = {"group.id": f"{name}-group", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(access.settings() | settings)
    consumer.subscribe([name])
    assert len(consumer.consume(10, 20)) == 10
    assert progress.begun()
    consumer.commit(offsets=[TopicPartition(name, 1, 3)], asynchronous=False)
    assert progress.reached() == Reached({1: 3}, {1: 3})
    consumer.close()
    progress.close()
    assert topics.remove([], [f"{name}-group"])
    assert topics.remove(["streamgauge-never-made"]), "it is not there"
    progress = Group(access, topics, f"{name}-group", name, 2)
    assert progress.reached() == Reached({}, {})


def test_answers_of_a_transaction_count_once_it_is_committed(access: Access, topic: Make) -> None:
    name = topic(1)
    producer = Producer(access.settings() | {"transactional.id": name})
    producer.init_transactions(20)
    for value, ends in ((b"a", producer.commit_transaction), (b"b", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(name, value)
        producer.flush(10)
        ends()
    output = Output(access, name, 1)
    try:
        output.wait_until_quiet(0.2, 5)
        answers = output.read()
    finally:
        output.close()
    assert answers.values == [b"a"]
    assert abs(int(answers.appended_ns[0]) - time.time_ns()) < 60 * 10**9


def test_an_open_transaction_hides_answers_until_it_ends_and_offsets_that_it_holds_are_told(
    access: Access, topic: Make
) -> None:
    """A job that was killed leaves one open; another producer's committed answer lies behind it."""
    name, topics = topic(1), Topics(access)
    dead, alive = (Producer(access.settings() | {"transactional.id": f"{name}-{number}"}) for number in range(2))
    for producer, value in ((dead, b"hidden"), (alive, b"a")):
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(name, value)
        producer.flush(10)
    group = f"{name}-group"
    consumer = Consumer(access.settings() | {"group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=False)
    dead.send_offsets_to_transaction([TopicPartition(name, 0, 2)], consumer.consumer_group_metadata(), 20)
    alive.commit_transaction()
    progress, output = Group(access, topics, group, name, 1), Output(access, name, 1)
    try:
        assert progress.reached().committed == {0: 1}
        assert (output.is_open(), output.read().values) == (True, [])
        dead.abort_transaction()
        while output.is_open():
            time.sleep(0.05)
        assert output.read().values == [b"a"]
    finally:
        progress.close()
        output.close()
        consumer.close()


@pytest.mark.parametrize("by_event", [False, True])
def test_a_topic_keeps_all_records_whatever_the_broker_does_with_others(access: Access, by_event: bool) -> None:
    topics, name = Topics(access), f"test-{time.time_ns()}"
    topics.make(name, 1, by_event=by_event)
    admin = AdminClient(access.settings())  # its answers end with it
    [read] = admin.describe_configs([ConfigResource("topic", name)]).values()
    settings = read.result(20)
    topics.delete(name)
    kept = {key: settings[key].value for key in ("cleanup.policy", "retention.ms", "retention.bytes")}
    assert kept == {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert all(not settings[key].is_default for key in kept), "the broker's own settings hold for others"


def test_a_taken_port_is_told_before_anything_starts(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"port {broker.port} is taken on 127.0.0.1"):
        Broker(tmp_path, broker.port)


def test_no_broker_and_wrong_credentials_are_one_line_without_the_secret(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"bootstrap: the Kafka broker 127.0.0.1:1 cannot be used: .*refused"):
        Topics(Access("127.0.0.1:1")).check()
    security = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me",
        "sasl.password": "${KAFKA_TEST_PASSWORD}",
    }  # fmt: skip
    monkeypatch.delenv("KAFKA_TEST_PASSWORD", raising=False)
    with pytest.raises(UserError, match=r"security.sasl.password: the environment has no variable KAFKA_TEST_PASSWORD"):
        Topics(Access(broker.bootstrap, security))
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", "s3cret")
    with pytest.raises(UserError, match=r"bootstrap: the Kafka broker .* cannot be used: ") as problem:
        Topics(Access(broker.bootstrap, security)).check()
    assert "s3cret" not in str(problem.value)
    with pytest.raises(UserError, match=r'security: .*"nonsense"'):
        Topics(Access(broker.bootstrap, {"nonsense": "1"}))


def test_check_tries_the_broker_and_the_rights_on_it(broker: Broker) -> None:
    def checked(bootstrap: str) -> None:
        example = load(ROOT / "examples" / "jobs" / "python.yaml")
        systems = tuple(system.model_copy(update={"bootstrap": bootstrap}) for system in example.systems)
        checks.check(example.model_copy(update={"systems": systems}))

    checked(broker.bootstrap)
    with pytest.raises(UserError, match=r"systems.python.bootstrap: the Kafka broker 127.0.0.1:1 cannot be used: "):
        checked("127.0.0.1:1")
