"""A driver fed by hand: the real server and queues, rows offered when the test says so, and every call remembered."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.bench.driver import requests
from streamgauge.bench.driver.queues import Queues
from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.driver.server import Server
from streamgauge.bench.driver.system import Endpoint

COLUMNS = {"name": "string", "amount": "int64"}
SCHEMA = wire_schema(COLUMNS, line=False)
Row = dict[str, Any]


def row(seq: int, second: float, name: str | None = "a", amount: int = 1, **other: Any) -> Row:
    """An event at that second of stream time; walls are seq seconds unless told."""
    us = round(second * 1_000_000)
    walls = {"offered_wall": seq, "event_wall": seq}
    fixed = {"seq": seq, "event_time": us * 1000, "event_ts": us, "ingestion_time": us * 1000, "sentinel": False}
    return {**fixed, **walls, "name": name, "amount": amount, **other}


def sentinel(second: float) -> Row:
    return {**row(-1, second), "sentinel": True, "name": None, "amount": None}


def table(rows: list[Row]) -> pa.RecordBatch:
    arrays = [
        pa.array([r[f.name] for r in rows], pa.int64()).cast(f.type)
        if f.name == "event_ts"
        else pa.array([r[f.name] for r in rows], f.type)
        for f in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class Torn(list[pa.RecordBatch]):
    """An answer whose connection breaks after two batches."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self[:2]
        raise ConnectionResetError("cut by the test")


class HandDriver:
    def __init__(
        self, partitions: int = 1, attempt: str = "t1", context: ssl.SSLContext | None = None, cafile: str | None = None
    ) -> None:
        self.queues = Queues(partitions, 10**9)
        self.partitions, self.attempt = partitions, attempt
        self.reports: dict[int, dict[str, Any]] = {}
        self.calls: list[tuple[str, Any]] = []
        self.tear = 0
        self.ready = threading.Event()
        self.server = Server(self, "127.0.0.1", 0, context=context)
        self.endpoint = Endpoint("127.0.0.1", self.server.port, partitions, cafile=cafile)

    schema = SCHEMA

    def offer(self, rows: list[Row], partition: int = 0, chunk: int = 1000) -> None:
        for first in range(0, len(rows), chunk):
            part = table(rows[first : first + chunk])
            self.queues.append(partition, part, np.zeros(part.num_rows, np.int64))

    def hello(self) -> dict[str, Any]:
        return {"partitions": self.partitions, "attempt": self.attempt}

    def read(self, request: requests.Read) -> list[pa.RecordBatch]:
        assert request.to is not None
        self.calls.append(("read", (request.partition, request.start, request.to)))
        batches = self.queues.read(request.partition, request.start, request.to, 1)
        if self.tear:
            self.tear -= 1
            return Torn(batches)
        return batches

    def answer(self, request: requests.Request) -> dict[str, Any]:
        match request:
            case requests.Latest():
                return {"rows": self.queues.offered(1), "finished": False, "wall_ns": 0}
            case requests.Planned():
                self.calls.append((request.verb, request.offsets))
                is_commit = isinstance(request, requests.Commit)
                (self.queues.commit if is_commit else self.queues.plan)(request.rows, 1)
            case requests.Report():
                self.calls.append((request.verb, request.epoch))
                self.reports[request.epoch] = request.body
            case requests.Ready():
                self.calls.append((request.verb, None))
                self.ready.set()
        return {}

    def refused(self, why: str) -> None:
        self.calls.append(("refused", why))

    def said(self, verb: str) -> list[Any]:
        return [what for name, what in self.calls if name == verb]

    def close(self) -> None:
        self.server.close()
