"""A job as people write them, with a fault on demand: it passes records on, and commits once they are written."""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, Producer

bootstrap, given, output, group, fault = sys.argv[1:]
if fault == "ends":
    sys.exit("Traceback follows\n  no such table: flights")
if fault == "never reads":
    time.sleep(600)
#: seconds that versions of it take for a hand-over
pause = {"1.0": 0.2, "1.1": 0.2, "1.2": 0.7}.get(fault, 0)
settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
consumer = Consumer(settings | {"enable.auto.commit": False})
producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
consumer.subscribe([given])
while True:
    if messages := consumer.consume(500, 0.05):
        time.sleep(pause)
        for message in messages:
            flight = json.loads(message.value())
            answer = {"at": flight["event_time"], "flight": flight["flight"]}
            if fault == "wrong" and flight["flight"] is not None:
                answer["flight"] = 7
            text = "<flight/>" if fault == "garbage" else json.dumps(answer)
            for _ in range({"never writes": 0, "twice": 2}.get(fault, 1)):
                producer.produce(output, text)
        producer.flush()
        consumer.commit(asynchronous=False)
