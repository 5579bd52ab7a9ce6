"""An ordinary consumer: reads departures from one Kafka topic and writes each one's route class to another.

It knows nothing of Streamgauge. It commits what it has read once its answers are written: at least once.
"""

import argparse
import json

from confluent_kafka import Consumer, Producer

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bootstrap", required=True)
parser.add_argument("--input", required=True)
parser.add_argument("--output", required=True)
parser.add_argument("--group", required=True)
options = parser.parse_args()

consumer = Consumer(
    {
        "bootstrap.servers": options.bootstrap,
        "group.id": options.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 10_000,  # after a kill, its partitions are free again so much later; by default 45 s
    }
)
producer = Producer({"bootstrap.servers": options.bootstrap, "linger.ms": 5})
consumer.subscribe([options.input])
while True:
    messages = consumer.consume(1000, 0.1)
    for message in messages:
        if message.error():
            raise SystemExit(f"consumer: {message.error()}")
        flight = json.loads(message.value())
        flight["mainline"] = flight["carrier"] in ("AA", "DL", "UA", "US")
        producer.produce(options.output, json.dumps(flight))
        producer.poll(0)
    if messages:
        producer.flush()
        consumer.commit(asynchronous=False)
