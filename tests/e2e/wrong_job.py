"""A job with a fault on demand: it answers each flight, or counts them in windows of a second, and commits."""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import count

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, given, output, group, fault = sys.argv[1:]
SECOND = 1_000_000_000
#: faults of a job that counts in windows; it waits two seconds of the stream for late events
WINDOWED = ("counts", "drops late", "loses the last", "updates")
if fault == "another group":
    group = f"{group}-other"
reading = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
consumer = Consumer({"bootstrap.servers": bootstrap} | reading)
producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
consumer.subscribe([output if fault == "another topic" else given])
if fault == "makes topics":  # as Kafka Streams does
    made = AdminClient({"bootstrap.servers": bootstrap}).create_topics(
        [NewTopic(f"{group}-store-{kind}", 1) for kind in ("changelog", "repartition")]
    )
    [future.result(10) for future in made.values()]
print("it has begun", flush=True)
numbers, seen, open_windows, latest = count(1), set[int](), Counter[tuple[int, str | None]](), 0


def write(answer: dict[str, object]) -> None:
    for _ in range(2 if fault == "every hundredth twice" and not next(numbers) % 100 else 1):
        producer.produce(output, json.dumps(answer))


def close_windows(before: int) -> None:
    for at, carrier in sorted(key for key in open_windows if key[0] + SECOND <= before):
        write({"at": at, "carrier": carrier, "flights": open_windows.pop((at, carrier))})


def windowed(time: int, carrier: str | None) -> None:
    global latest
    if carrier == "sentinel":
        if fault not in ("loses the last", "updates"):
            close_windows(time)
        return
    if time < latest and fault == "drops late":
        return
    latest = max(latest, time)
    key = (time // SECOND * SECOND, carrier)
    open_windows[key] += 1
    if fault == "updates":
        write({"at": key[0], "carrier": carrier, "flights": open_windows[key]})
    else:
        close_windows(latest - 2 * SECOND)


while True:
    messages = consumer.consume(500, 0.05)
    for message in messages:
        flight = json.loads(message.value())
        headers = dict(message.headers() or [])
        if fault == "refuses nulls":
            flight["flight"] = int(flight["flight"])
        if fault in WINDOWED:
            windowed(flight["event_time"], flight["carrier"])
        elif fault == "answers the warm-up alone" and int(headers["offered_wall"]) > SECOND**2 // 1000:
            pass
        elif fault != "remembers ids" or flight["flight"] not in seen:
            seen.add(flight["flight"])
            write({"flight": flight["flight"], "carrier": flight["carrier"]})
    producer.flush()
    if messages and fault != "no commits":
        consumer.commit(asynchronous=False)
