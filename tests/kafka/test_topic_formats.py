"""Topics whose values are Avro, or bear the number of a registry's schema: read as the same events in JSON are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.app.services.local_registry import LocalRegistry
from streamgauge.descriptions.schema_registry import SchemaRegistry
from streamgauge.streams.kafka.registry import PREFIX, Registry
from tests.command import Call, run
from tests.kafka.topics import Sent, late_events, made, removed, write
from tests.told import known

TS = {"type": "long", "logicalType": "timestamp-millis"}
FIELDS = [{"name": "ts", "type": TS}, {"name": "user", "type": "string"}]
PAYLOAD = {"type": "record", "name": "Payload", "fields": FIELDS}
EVENT = [{"name": "id", "type": "long"}, {"name": "payload", "type": PAYLOAD}]
SCHEMA = {"type": "record", "name": "Event", "fields": EVENT}
TIME = ["--time", "payload.ts"]


def in_avro(records: list[Sent], prefix: bytes = b"") -> Iterator[Sent]:
    """The same records with values of Avro."""
    parsed = fastavro.parse_schema(SCHEMA)
    for one in records:
        event, out = json.loads(one.value or b""), BytesIO(prefix)
        event["payload"]["ts"] = datetime.fromtimestamp(event["payload"]["ts"] / 1000, UTC)
        out.seek(len(prefix))
        fastavro.schemaless_writer(out, parsed, event)
        yield replace(one, value=out.getvalue())


@pytest.fixture
def topic(broker: Broker) -> Iterator[Callable[..., str]]:
    """topic(records, partitions) -> name of a topic that has them."""
    names: list[str] = []

    def of(records: list[Sent], partitions: int = 3) -> str:
        names.append(made(broker.bootstrap, partitions, message_timestamp_type="LogAppendTime"))
        write(broker.bootstrap, names[-1], records)
        return names[-1]

    yield of
    for name in names:
        removed(broker.bootstrap, name)


@pytest.fixture
def number(registry: LocalRegistry) -> Iterator[int]:
    """Number of the events' schema in the registry."""
    client = Registry(SchemaRegistry(address=registry.address))
    yield client.register("events-value", "AVRO", json.dumps(SCHEMA))
    client.remove(["events-value"])


def figures(found: dict[str, Any]) -> object:
    """Disorder of each partition, which topics that were filled at different times have alike."""
    return found["events"], [(part["part"], part["events"], part["out_of_order"]) for part in found["by_part"]["parts"]]


def test_avro_is_read_as_the_same_events_in_json_are(
    broker: Broker, registry: LocalRegistry, number: int, topic: Callable[..., str], tmp_path: Path
) -> None:
    events = late_events(3000, 3)
    file = tmp_path / "event.avsc"
    file.write_text(json.dumps(SCHEMA))

    def analyzed(records: list[Sent], *more: str) -> object:
        return figures(
            run(Call(["analyze", f"kafka://{broker.bootstrap}/{topic(records)}", *TIME, *more, "--json"])).json
        )

    wanted = analyzed(events, "--unit", "ms")
    prefix = PREFIX.pack(0, number)
    framed = [replace(one, value=prefix + (one.value or b"")) for one in events]
    assert analyzed(list(in_avro(events)), "--values", "avro", "--writer-schema", str(file)) == wanted
    with_registry = ["--registry", registry.address, "--values"]
    assert analyzed(list(in_avro(events, prefix)), *with_registry, "confluent-avro") == wanted
    assert analyzed(framed, *with_registry, "confluent-json", "--unit", "ms") == wanted

    one = topic(list(in_avro(late_events(100, 1), prefix)), 1)
    made_as = ["--columns", "id,user=payload.user:string", "--target", "source", "--seed", "1"]
    source = [f"kafka://{broker.bootstrap}/{one}", *TIME, *with_registry, "confluent-avro"]
    assert run(Call(["generate", *source, *made_as, "--out", str(tmp_path / "out")])).code == 0
    (made_file,) = (tmp_path / "out").glob("**/*.parquet")
    rows = pq.read_table(made_file, columns=["id", "user"]).to_pylist()
    assert sorted((row["id"], row["user"]) for row in rows) == [(n, f"u{n % 7}") for n in range(100)]


def test_values_that_cannot_be_read_are_bad_and_a_registry_that_is_away_ends_the_command(
    broker: Broker, registry: LocalRegistry, number: int, topic: Callable[..., str]
) -> None:
    good = list(in_avro(late_events(200, 1), PREFIX.pack(0, number)))
    torn = known(good[0].value)[:-1]
    bad = [replace(good[0], value=value) for value in (torn, PREFIX.pack(0, 9999) + b"\0", b"{}")]
    name = topic(good + bad)
    source = ["analyze", f"kafka://{broker.bootstrap}/{name}", *TIME, "--values", "confluent-avro", "--registry"]
    answer = run(Call([*source, registry.address, "--max-bad-fraction", "0.02", "--json"]))
    assert answer.json["events"] == 200
    run(Call([*source, registry.address])).refused("partition 0: offset 200: ends too early")
    began = time.monotonic()
    run(Call([*source, "http://127.0.0.1:1"])).refused("registry.address: http://127.0.0.1:1 does not answer")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--values", "confluent-avro"], "--registry: needed by confluent-avro and confluent-json, and by those alone"),
        (["--values", "avro"], "--writer-schema: needed to read avro, and by that alone"),
        (["--values", "avro", "--writer-schema", "no.avsc"], "--writer-schema: no.avsc: No such file or directory"),
        (["--values", "avro", "--writer-schema", "{}"], "writer_schema: no schema of Avro: "),
        (
            ["--values", "confluent-avro", "--registry", "localhost"],
            "--registry: found 'localhost', allowed: http",
        ),
        (
            ["--values", "confluent-avro", "--registry", "http://r", "--registry", "token=hunter2"],
            "found a secret (not",
        ),
    ],
)
def test_options_that_cannot_be_right_are_refused(
    broker: Broker, topic: Callable[..., str], more: list[str], said: str
) -> None:
    answer = run(Call(["analyze", f"kafka://{broker.bootstrap}/{topic(late_events(2, 1))}", *TIME, *more]))
    answer.refused(said)
    assert "hunter2" not in answer.err
