"""Reads a large topic, compares its disorder with DuckDB's count of a dump, and kills an ingest of it in the middle.

    .venv/bin/python -m benchmarks.topic [--records 2000000] [--partitions 4]

The broker is that of `make kafka`. A fifth of the records is up to 5 s late; records bear append times.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streamgauge.app.services.broker import Broker
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Source
from streamgauge.streams.keys import Scaled, events_key
from streamgauge.streams.sources import topics

TOPIC = "benchmark"
OUT_OF_ORDER = """
select {part} as part, count(*) filter (where ts < before) as late from (
    select *, max(ts) over (partition by {part} order by appended, "partition", "offset"
        rows between unbounded preceding and 1 preceding) as before from dump) group by 1 order by 1
"""
INGEST = """
import sys
from pathlib import Path
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Source
from streamgauge.streams.keys import Scaled
from streamgauge.streams.stages import generate, ingest
from streamgauge.streams.stages.workers import Forked
from streamgauge.config import Experiment
given, store = Scaled(Source.model_validate_json(sys.argv[1])), Store(Path(sys.argv[2]))
ingest.run(Forked(), given, store)
stream = generate.run(Forked(), given, store, Experiment(name="e", target="source"))
print(stream.manifest["sha256"])
"""


def fill(bootstrap: str, records: int, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(TOPIC, partitions, config=config)])[TOPIC].result(20)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True})
    chance = random.Random(1)  # noqa: S311 -- no secret
    for number in range(records):
        behind = chance.randrange(5000) if chance.random() < 0.2 else 0
        value = json.dumps({"id": number, "payload": {"ts": 1767225600000 + number - behind}})
        while True:
            try:
                producer.produce(TOPIC, value, partition=chance.randrange(partitions))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(60)


def dump(bootstrap: str, partitions: int) -> pa.Table:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False})
    rows: list[tuple[int, int, int, int]] = []
    for partition in range(partitions):
        place = TopicPartition(TOPIC, partition, 0)
        left = consumer.get_watermark_offsets(place, timeout=10)[1]
        consumer.assign([place])
        while left:
            some = consumer.consume(min(left, 10_000), 1)
            left -= len(some)
            rows += (
                (json.loads(one.value() or b"")["payload"]["ts"], partition, one.offset(), one.timestamp()[1])
                for one in some
            )
    consumer.close()
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(("ts", "partition", "offset", "appended"), map(list, columns), strict=True)))


def run(*command: str) -> tuple[str, float, float]:
    """Output, seconds and CPU seconds of a command."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return out, time.monotonic() - begun, cpu


def killed(source: Source, root: Path) -> int:
    """Kills an ingest once some of its spans are whole; returns their number."""
    store = Store(root)
    kept = store.path("events", f"{events_key(store, Scaled(source))}.kept")
    process = subprocess.Popen([sys.executable, "-c", INGEST, source.model_dump_json(), str(root)])
    while process.poll() is None and len(list(kept.glob("[0-9]*/piece.json"))) < 3:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return len(list(kept.glob("[0-9]*/piece.json")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder) / "broker")
        try:
            measure(broker.bootstrap, given.records, given.partitions, Path(folder))
        finally:
            broker.stop()


def measure(bootstrap: str, records: int, partitions: int, work: Path) -> None:
    fill(bootstrap, records, partitions)
    command = str(Path(sys.executable).with_name("streamgauge"))
    address = f"kafka://{bootstrap}/{TOPIC}"
    out, seconds, cpu = run(command, "--quiet", "analyze", address, "--time", "payload.ts", "--unit", "ms", "--json")
    found: dict[str, Any] = json.loads(out)
    print(f"analyze          {seconds:.1f} s, {cpu:.1f} CPU-s, {1e6 * cpu / records:.2f} CPU-µs a record")

    with duckdb.connect() as database:
        database.register("dump", dump(bootstrap, partitions))
        [(_, merged)] = database.sql(OUT_OF_ORDER.format(part="0")).fetchall()
        parts = dict(database.sql(OUT_OF_ORDER.format(part='"partition"')).fetchall())
    own = {int(part["part"]): part["out_of_order"] for part in found["by_part"]["parts"]}
    print(f"out of order     {found['out_of_order']:,} merged, DuckDB {merged:,}; by part {own}, DuckDB {parts}")

    keys = {"format": "kafka", "kafka": {"bootstrap": bootstrap, "topic": TOPIC}}
    source = topics.pinned(Source.model_validate(keys | {"time": {"column": "payload.ts", "unit": "ms"}}))
    left = killed(source, work / "one")
    again = [sys.executable, "-c", INGEST, source.model_dump_json()]
    resumed, seconds, cpu = run(*again, str(work / "one"))
    print(f"killed, resumed  {left} spans were whole; the rest took {seconds:.1f} s, {cpu:.1f} CPU-s")
    whole, seconds, cpu = run(*again, str(work / "two"))
    print(f"not killed       {seconds:.1f} s, {cpu:.1f} CPU-s")
    print(f"sha256           {resumed.strip()} and {whole.strip()}")
    if (found["out_of_order"], own, resumed) != (merged, parts, whole):
        sys.exit("these differ")


if __name__ == "__main__":
    main()
