"""A job as people write them, with a fault on demand: it passes records on, and commits once they are written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer

bootstrap, given, output, group, fault = sys.argv[1:]
if fault == "ends":
    sys.exit("Traceback follows\n  no such table: flights")
if fault == "never reads":
    time.sleep(600)
while fault == "supervises":  # it starts its worker again when that dies
    subprocess.run([sys.executable, *sys.argv[:-1], "worker"])
#: seconds that versions of it take for a hand-over
pause = {"1.0": 0.2, "1.1": 0.2, "1.2": 0.7, "commits first": 0.3}.get(fault, 0)
settings = {"bootstrap.servers": bootstrap}
if "JOB_USER" in os.environ:
    settings |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
    settings |= {"sasl.username": os.environ["JOB_USER"], "sasl.password": os.environ["JOB_PASSWORD"]}
reading = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
if fault.startswith("dies once: ") or fault in ("static", "worker", "commits first", "commits late"):
    reading["group.instance.id"] = "0"  # the next one takes its place at once
consumer = Consumer(settings | reading)
producer = Producer(settings | {"linger.ms": 5})
consumer.subscribe([output if fault == "another topic" else given])
schema = fastavro.parse_schema(json.loads(Path(fault).read_text())) if fault.endswith(".avsc") else None
while True:
    if messages := consumer.consume(500, 0.05):
        if fault == "commits first":  # so what it has not answered when it is killed is lost
            consumer.commit(asynchronous=False)
        time.sleep(pause)
        for message in messages:
            value = message.value()
            flight: Any = fastavro.schemaless_reader(BytesIO(value), schema) if schema else json.loads(value)
            answer = {"at": flight["event_time"], "flight": flight["flight"]}
            if fault == "wrong" and flight["flight"] != -1:  # the sentinel has that
                answer["flight"] = 7
            text = "<flight/>" if fault == "garbage" else json.dumps(answer)
            if fault != "never writes":
                producer.produce(output, text)
        producer.flush()
        if fault.startswith("dies once: ") and not (mark := Path(fault.removeprefix("dies once: "))).exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)  # between its answers and its commit
        if fault != "commits first":
            time.sleep(0.3 * (fault == "commits late"))  # what it has answered when it is killed, it answers again
            consumer.commit(asynchronous=False)
