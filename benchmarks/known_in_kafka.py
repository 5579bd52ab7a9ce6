"""The known system as a job that reads a Kafka topic and writes another one, to calibrate what `engine: job` measures.

    python benchmarks/known_in_kafka.py BOOTSTRAP INPUT OUTPUT GROUP \
        '{"behaviour": {…}, "delay_s": 0.2}'

It answers each record with its seq, `delay_s` after it was read. With `checkpoint` (a folder) it keeps the logs that
Spark keeps there, and commits nothing. It sleeps for its service time, until absolute instants
(see engines/known/process.py).
"""

from __future__ import annotations

import json
import queue
import secrets
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.search.behaviour import Behaviour, Process

WAIT_S = 0.05


@dataclass(frozen=True)
class Settings:
    """Settings of the job: its behaviour, the constant delay of its answers, and a folder for Spark's logs.

    commit_s: seconds between two commits of its group, as Flink's checkpoints are; 0 for one after each read.
    """

    behaviour: Behaviour = field(default_factory=Behaviour)
    delay_s: float = 0.0
    checkpoint: str | None = None
    commit_s: float = 0.0

    @classmethod
    def of(cls, given: dict[str, Any]) -> Settings:
        return cls(**given | {"behaviour": Behaviour(**given.get("behaviour", {}))})


class Checkpoint:
    """The logs of a query of Spark: `offsets` says where a micro-batch ends, `commits` that it has ended."""

    def __init__(self, folder: Path, topic: str) -> None:
        self._folder, self._topic, self._number, self._ends = folder, topic, 0, dict[str, int]()
        for log in ("offsets", "commits"):
            (folder / log).mkdir(parents=True)
        self._write("offsets", json.dumps({topic: {}}))
        self._write("commits", "{}")

    def plan(self, messages: list[Any]) -> None:
        self._number += 1
        self._ends |= {str(message.partition()): message.offset() + 1 for message in messages}
        self._write("offsets", json.dumps({self._topic: self._ends}))

    def commit(self) -> None:
        self._write("commits", "{}")

    def _write(self, log: str, text: str) -> None:
        (self._folder / log / str(self._number)).write_text(f"v1\n{text}")


class Emitter:
    """Writes answers once their delay is over, in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._topic, self._waiting = topic, queue.SimpleQueue[tuple[int, list[Any]]]()
        threading.Thread(target=self._emit, name="emit", daemon=True).start()

    def take(self, due_ns: int, messages: list[Any]) -> None:
        self._waiting.put((due_ns, messages))

    def _emit(self) -> None:
        while True:
            due, messages = self._waiting.get()
            time.sleep(max(0, due - time.time_ns()) / NS)
            for message in messages:
                (seq,) = (value for name, value in message.headers() if name == "seq")
                self._producer.produce(self._topic, b'{"seq":%s}' % seq, partition=message.partition())
            self._producer.poll(0)


def run(bootstrap: str, given: str, output: str, group: str, settings: Settings) -> None:
    """Works until it is ended."""
    from confluent_kafka import Consumer

    about = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(about | {"enable.auto.commit": False})
    emitter = Emitter(bootstrap, output)
    log = Checkpoint(Path(settings.checkpoint), given) if settings.checkpoint else None
    consumer.subscribe([given])
    process = Process(settings.behaviour, secrets.randbelow(2**31), 1)
    limit, worked_s, free_at, idle = min(process.most_rows, 1_000_000), 0.0, 0.0, True
    committed_at, uncommitted = time.monotonic(), False
    while True:
        if uncommitted and time.monotonic() - committed_at >= settings.commit_s:
            consumer.commit(asynchronous=False)
            committed_at, uncommitted = time.monotonic(), False
        messages = consumer.consume(limit, 0)
        if not messages:
            idle = True
            messages = consumer.consume(1, WAIT_S)
            messages += consumer.consume(limit - len(messages), 0) if messages and limit > 1 else []
        if not messages:
            continue
        now, read_ns = time.monotonic(), time.time_ns()
        for message in messages:
            if message.error():
                raise SystemExit(f"consumer: {message.error()}")
        if log is not None:
            log.plan(messages)
        emitter.take(read_ns + round(settings.delay_s * NS), messages)
        cost_s = process.batch_s(len(messages), worked_s, len(messages))
        worked_s += cost_s
        # what reading, writing and committing took is part of the service time
        free_at = (now if idle else free_at) + cost_s
        time.sleep(max(0.0, free_at - time.monotonic()))
        if log is not None:
            log.commit()
        uncommitted, idle = log is None, False


if __name__ == "__main__":
    _, servers, source, sink, member, settings = sys.argv
    run(servers, source, sink, member, Settings.of(json.loads(settings)))
