"""A topic as a source, on a real broker: what analyze and generate make of its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Message

from streamgauge.bench.publish.broker import Broker
from tests.command import Call, run
from tests.kafka.topics import dumped, late_events, made, out_of_order, removed, write

TIME = ["--time", "payload.ts", "--unit", "ms"]


def analyzed(broker: Broker, topic: str, *more: str) -> dict[str, Any]:
    return run(Call(["analyze", f"kafka://{broker.bootstrap}/{topic}", *more, "--json"])).json


def ts(message: Message) -> int:
    return int(json.loads(message.value() or b"")["payload"]["ts"])


def test_records_with_append_times_are_merged_by_them_and_each_partition_has_its_own_disorder(broker: Broker) -> None:
    topic = made(broker.bootstrap, 3, message_timestamp_type="LogAppendTime")
    write(broker.bootstrap, topic, late_events(4000, 3))
    messages = dumped(broker.bootstrap, topic)
    merged = sorted(messages, key=lambda one: (one.timestamp()[1], one.partition(), one.offset()))

    found = analyzed(broker, topic, *TIME)

    assert (found["events"], found["out_of_order"]) == (4000, out_of_order(list(map(ts, merged))))
    parts = {part["part"]: (part["events"], part["out_of_order"]) for part in found["by_part"]["parts"]}
    of_each = {n: [ts(one) for one in messages if one.partition() == n] for n in range(3)}
    assert parts == {str(n): (len(times), out_of_order(times)) for n, times in of_each.items()}
    ends = {str(n): len(times) for n, times in of_each.items()}
    assert (found["topic"]["until"], found["topic"]["times"]) == (ends, "LogAppendTime")

    write(broker.bootstrap, topic, late_events(500, 3, seed=2))  # which changes nothing in the range
    shown = [",".join(f"{n}:{offset}" for n, offset in found["topic"][edge].items()) for edge in ("from", "until")]
    assert analyzed(broker, topic, *TIME, "--from", shown[0], "--until", shown[1]) == found
    removed(broker.bootstrap, topic)


def test_a_stream_has_what_records_tell_beside_their_values_in_columns(broker: Broker, tmp_path: Path) -> None:
    topic = made(broker.bootstrap, 1, message_timestamp_type="LogAppendTime")
    write(broker.bootstrap, topic, late_events(50, 1, late=0))
    source = [f"kafka://{broker.bootstrap}/{topic}", *TIME, "--columns", "id,key=kafka.key,at=kafka.offset"]
    more = ["--target", "source", "--seed", "1", "--out", str(tmp_path / "out")]
    assert run(Call(["generate", *source, *more])).code == 0
    (file,) = (tmp_path / "out").glob("**/*.parquet")
    rows = pq.read_table(file, columns=["id", "key", "at", "line"]).to_pylist()
    messages = dumped(broker.bootstrap, topic)
    assert [(row["id"], row["key"].encode(), row["at"], row["line"].rstrip()) for row in rows] == [
        (number, one.key(), one.offset(), one.value()) for number, one in enumerate(messages)
    ]
    removed(broker.bootstrap, topic)


@pytest.mark.parametrize(
    ("topic", "more", "said"),
    [
        ("no-such", [], "the broker has no such topic"),
        ("", ["--from", "0:9"], "partition 0: from: found offset 9, allowed: at most 2, where the partition ends"),
        ("", ["--until", "0:3"], "partition 0: until: found offset 3, allowed: at most 2, where the partition ends"),
        ("", ["--from", "1:0"], "found no partition 1, allowed: 0 to 0"),
        ("", ["--from", "0:2"], "found no record from 0:2 until latest; choose an earlier from, or a later until"),
        ("", ["--from", "soon"], "--from: found 'soon', allowed: earliest, an age such as -2h"),
        ("", ["--time", "no.such"], "partition 0: offset 0: empty time: "),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(broker: Broker, topic: str, more: list[str], said: str) -> None:
    own = made(broker.bootstrap)
    write(broker.bootstrap, own, late_events(2, 1))
    run(Call(["analyze", f"kafka://{broker.bootstrap}/{topic or own}", *TIME, *more])).refused(said)
    removed(broker.bootstrap, own)
