"""A job that passes records on in a registry's format, as any client of it does: it knows nothing of this project.

It reads the writer's schema of each record from the registry, and registers that of its answers.
"""

from __future__ import annotations

import json
import struct
import sys
import urllib.request
from datetime import datetime
from functools import cache
from io import BytesIO
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer

bootstrap, given, output, group, registry, form = sys.argv[1:]
at = {"type": "long", "logicalType": "timestamp-micros"}
fields = [{"name": "at", "type": at}, {"name": "flight", "type": ["null", "long"]}]
answers = {"type": "record", "name": "Answer", "fields": fields}


def asked(path: str, body: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{registry}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@cache
def writers(number: int) -> Any:
    return json.loads(asked(f"/schemas/ids/{number}")["schema"])


def with_time(event: dict[str, Any]) -> dict[str, Any]:
    return event | {"event_ts": datetime.fromisoformat(event["event_ts"])}


parsed = fastavro.parse_schema(answers)
own = 0
if form.startswith("confluent"):
    own = asked(f"/subjects/{output}-value/versions", {"schema": json.dumps(answers)})["id"]
settings = {"bootstrap.servers": bootstrap}
consumer = Consumer(settings | {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
producer = Producer(settings | {"linger.ms": 5})
consumer.subscribe([given])
while True:
    if messages := consumer.consume(500, 0.05):
        for message in messages:
            value = message.value()
            _, number = struct.unpack(">bI", value[:5])
            schema = writers(number)
            if schema["type"] == "object":
                assert schema["properties"]["flight"]["oneOf"] == [{"type": "null"}, {"type": "integer"}]
                event = json.loads(value[5:], object_hook=with_time)
            else:
                event = fastavro.schemaless_reader(BytesIO(value[5:]), schema, None)
            out = BytesIO()
            fastavro.schemaless_writer(out, parsed, {"at": event["event_ts"], "flight": event["flight"]})
            producer.produce(output, (struct.pack(">bI", 0, own) if own else b"") + out.getvalue())
        producer.flush()
        consumer.commit(asynchronous=False)
