"""A small stream artifact, and a driver behind a real socket."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.replay import Stream, make_stream
from streamgauge.bench.driver.server import Server
from streamgauge.bench.driver.serving import Sent, Serving
from streamgauge.bench.driver.system import Endpoint
from streamgauge.config import Replay

COLUMNS = {"carrier": "string", "flight": "int64"}


def stream_table(times: list[int], ingestion: list[int] | None = None) -> pa.Table:
    count = len(times)
    return pa.table(
        {
            "ingestion_time": pa.array(ingestion or np.maximum.accumulate(times), pa.int64()),
            "seq": pa.array(range(count), pa.int64()),
            "event_time": pa.array(times, pa.int64()),
            "line": pa.array([b"line %d\n" % i for i in range(count)], pa.binary()),
            "carrier": pa.array([f"C{i % 3}" for i in range(count)], pa.string()),
            "flight": pa.array(range(count), pa.int64()),
        }
    )


def stream_of(times: list[int], ingestion: list[int] | None = None) -> Stream:
    return make_stream(stream_table(times, ingestion), "ns", COLUMNS)


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1000 events, one a millisecond, in two parts."""
    place = tmp_path_factory.mktemp("stream")
    table = stream_table([i * 1_000_000 for i in range(1000)])
    pq.write_table(table.slice(0, 600), place / "part-0.parquet")
    pq.write_table(table.slice(600), place / "part-1.parquet")
    manifest = {"files": ["part-0.parquet", "part-1.parquet"], "tick": "ns", "columns": COLUMNS}
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


@pytest.fixture
def favoured() -> Iterator[None]:
    """Before everybody else on a busy host, where that is allowed: a starved instrument measures its starvation."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # threads and processes made from here inherit it
    except (AttributeError, PermissionError):
        yield
        return
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


Certificate = tuple[str, str]  # PEM files: the certificate, its key


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """Certificate of 127.0.0.1, signed by itself."""
    names = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", names[1], "-out", names[0]],
        check=True, capture_output=True,
    )  # fmt: skip
    return names


Serve = Callable[..., Endpoint]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """serve(times, token=…, context=…, **replay settings) -> where it listens."""
    servers: list[Server] = []

    def start(
        times: list[int],
        *,
        token: str = "",
        context: ssl.SSLContext | None = None,
        key: str | None = None,
        ingestion: list[int] | None = None,
        **settings: object,
    ) -> Endpoint:
        stream, replay = replace(stream_of(times, ingestion), partition_by=key), Replay.model_validate(settings)
        parts = Sent(tick=stream.tick, columns=stream.columns, line=stream.line, partition_by=key)
        driver = Driver(stream, Serving.of(replay, "", (0, 1), **parts))
        servers.append(Server(driver, "127.0.0.1", 0, token=token, context=context))
        driver.drop_others = lambda name: servers[-1].drop(lambda attempt: attempt not in ("", name))
        return Endpoint("127.0.0.1", servers[-1].port, len(driver.partitions), token)

    yield start
    for server in servers:
        server.close()
