"""A topic as a source, on a real broker: what analyze and generate make of its records."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Message

from streamgauge.app.services.broker import Broker
from streamgauge.app.services.java_server import jars
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
    for start in ("-1h", "2020-01-01", "2020-01-01T00:00:00+02:00"):
        assert analyzed(broker, topic, *TIME, "--from", start)["topic"] == found["topic"]
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


def test_a_topic_of_kafka_s_own_console_producer_is_read(broker: Broker) -> None:
    topic = made(broker.bootstrap, 2)
    lines = [f'd:{n % 4}\tk{n % 3}\t{{"payload": {{"ts": {1000 * (n - 7 * (n % 5))}}}}}' for n in range(1, 91)]
    command = ["java", "-cp", f"{jars('broker')}/*", "org.apache.kafka.tools.ConsoleProducer", "--topic", topic]
    keys = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
    text = "\n".join(lines) + "\n"
    address = ["--bootstrap-server", broker.bootstrap]
    subprocess.run([*command, *address, *keys], input=text, text=True, capture_output=True, check=True, timeout=120)

    found = analyzed(broker, topic, *TIME, "--order", "event_time", "--by", "kafka.key")
    assert {part["part"]: part["events"] for part in found["by_part"]["parts"]} == {"k0": 30, "k1": 30, "k2": 30}
    by_header = analyzed(broker, topic, *TIME, "--order", "event_time", "--by", "kafka.header.d")
    assert [part["events"] for part in by_header["by_part"]["parts"]] == [22, 23, 23, 22]
    of_each = {n: [ts(one) for one in dumped(broker.bootstrap, topic) if one.partition() == n] for n in range(2)}
    alone = analyzed(broker, topic, *TIME)["by_part"]["parts"]
    assert {part["part"]: part["out_of_order"] for part in alone} == {
        str(n): out_of_order(times) for n, times in of_each.items() if times
    }
    removed(broker.bootstrap, topic)


@pytest.mark.parametrize(
    ("topic", "more", "said"),
    [
        ("no-such", [], "the broker has no such topic"),
        ("", ["--from", "0:9"], "partition 0: from: found offset 9, allowed: at most 2, where the partition ends"),
        ("", ["--until", "0:3"], "partition 0: until: found offset 3, allowed: at most 2, where the partition ends"),
        ("", ["--from", "1:0"], "found no partition 1, allowed: 0 to 0"),
        ("", ["--from", "0:2"], "found no record from 0:2 until latest; choose an earlier from, or a later until"),
        ("", ["--until", "2020-01-01"], "found no record from earliest until 2020-01-01; choose"),
        ("", ["--from", "soon"], "--from: found 'soon', allowed: earliest, an age such as -2h"),
        ("", ["--time", "no.such"], "partition 0: offset 0: the path 'no.such' is not there: "),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(broker: Broker, topic: str, more: list[str], said: str) -> None:
    own = made(broker.bootstrap)
    write(broker.bootstrap, own, late_events(2, 1))
    run(Call(["analyze", f"kafka://{broker.bootstrap}/{topic or own}", *TIME, *more])).refused(said)
    removed(broker.bootstrap, own)


def test_without_append_times_only_the_order_within_a_partition_is_known(broker: Broker, tmp_path: Path) -> None:
    topic = made(broker.bootstrap, 2)
    write(broker.bootstrap, topic, late_events(1000, 2))
    of_each = {n: [ts(one) for one in dumped(broker.bootstrap, topic) if one.partition() == n] for n in range(2)}

    found = analyzed(broker, topic, *TIME)
    assert found["topic"]["times"] == "CreateTime"
    assert [found[key] for key in ("out_of_order", "adjacent_descents", "runs")] == [None, None, None]
    assert (found["watermark_curve"], found["enough_delay_ns"], found["delay_ns"]["p50"]) == ([], {}, None)
    parts = {part["part"]: (part["out_of_order"], part["behind_ns"]["max"]) for part in found["by_part"]["parts"]}
    assert parts == {str(n): (out_of_order(times), None) for n, times in of_each.items()}

    source = f"kafka://{broker.bootstrap}/{topic}"
    shown = run(Call(["analyze", source, *TIME])).out
    assert "out of order        unknown, as the topic has no append times: only the order within a" in shown
    run(Call(["analyze", source, *TIME, "--by", "payload.user"])).refused("--by: found payload.user, allowed: kafka.")
    into = ["--target", "source", "--seed", "1", "--out", str(tmp_path / "out")]
    run(Call(["generate", source, *TIME, *into])).refused("--order: found file", "allowed: --order event_time, or")
    assert run(Call(["generate", source, *TIME, *into, "--order", "event_time"])).code == 0
    one = analyzed(broker, topic, *TIME, "--from", "1:0")
    assert (one["out_of_order"], one.get("by_part")) == (out_of_order(of_each[1]), None)
    removed(broker.bootstrap, topic)


def test_init_writes_a_file_that_check_accepts_and_only_connect_asks_the_broker(broker: Broker, tmp_path: Path) -> None:
    topic = made(broker.bootstrap, 2)
    write(broker.bootstrap, topic, late_events(300, 2))
    file = tmp_path / "topic.yaml"
    found = run(Call(["init", f"kafka://{broker.bootstrap}/{topic}", "--out", str(file), "--json"])).json
    assert found["source"] == {
        "format": "kafka",
        "kafka": {"bootstrap": broker.bootstrap, "topic": topic},
        "time": {"column": "payload.ts", "unit": "ms"},
        "columns": {"id": "int64", "user": {"path": "payload.user", "type": "string"}},
        "order": "event_time",  # as it has partitions, and no append times
    }
    check = ["check", str(file), "--artifacts", str(tmp_path / "artifacts"), "--json"]
    assert run(Call([*check, "--connect"])).json["sample"]["lines"] > 100
    removed(broker.bootstrap, topic)
    assert run(Call(check)).json["sample"] is None
    run(Call([*check, "--connect"])).refused("the broker has no such topic")
