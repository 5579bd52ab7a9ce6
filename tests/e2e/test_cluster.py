"""Metrics and hard streams over the workers of a standalone Spark cluster. The whole DAG over one: test_hosts.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge import metrics
from streamgauge.app.services.broker import Broker
from streamgauge.streams.disorder import chunks
from streamgauge.streams.stages.workers import Forked
from tests.e2e.processes import QUICK, free_port, wait_for
from tests.kafka.topics import late_events, made, removed, write
from tests.metrics import app
from tests.spark import shapes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
SPARK_CLASS = str(Path(sys.executable).with_name("spark-class"))
DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    master: str
    work: Path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    port, web = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    environment = (
        os.environ
        | QUICK
        | {
            "PYSPARK_PYTHON": sys.executable,  # by it spark-class finds its jars
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
    )

    def launch(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with open(folder / f"{name}.log", "wb") as log:
            return subprocess.Popen(
                [SPARK_CLASS, *arguments], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    worker = ["--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(folder / "work"), master]
    hosts = {1: "127.0.0.1", 2: "localhost"}  # by name two hosts, as a speculative copy never runs on its own
    ports = ["--port", str(port), "--webui-port", str(web)]
    started = [launch("master", f"{DEPLOY}.master.Master", "-h", "127.0.0.1", *ports)]
    started += [launch(f"worker{n}", f"{DEPLOY}.worker.Worker", "-h", host, *worker) for n, host in hosts.items()]

    def alive() -> bool:
        for log, process in zip(("master", "worker1", "worker2"), started, strict=True):
            assert process.poll() is None, (folder / f"{log}.log").read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
                return bool(json.load(answer)["aliveworkers"] == 2)
        except (OSError, ValueError):  # at first any address answers with the page
            return False

    try:
        wait_for(alive, "two workers", 120)
        yield Cluster(master, folder / "work")
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=30)


def test_metrics_over_two_workers_equal_those_of_one_process(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "tests.metrics.app", cluster.master]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2])
    assert ran.returncode == 0, ran.stderr
    found = {(m["step"], m["name"]): m for m in json.loads(ran.stdout.splitlines()[-1])}

    ids = pa.record_batch({"id": pa.array(range(app.ROWS), pa.int64())})
    with metrics.start(name="here") as here:  # the same functions, without Spark
        for _ in app.sort(app.parse(iter([ids]))):
            pass
    truth = here.query()
    assert len(truth) == 3 + 5
    for metric in truth:
        there = found[metric.step, metric.name]
        assert there["committed"] == metric.committed, there  # attempted is more where a busy host made copies

    slow = found["slow", "slow"]  # one speculative copy won, and the loser was killed after it had told
    assert (slow["attempted"], slow["committed"]) == ({"value": 1000 + 250}, {"value": 1000})
    assert found.get(("slow", "untold"), {}).get("committed") is None


def test_hard_streams_are_the_same_in_processes_of_ours_and_over_two_workers(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "tests.spark.shapes", str(tmp_path), cluster.master]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2])
    assert ran.returncode == 0, ran.stderr
    monkeypatch.setattr(chunks, "PIECE_ROWS", 1_300)  # a window has many pieces
    here = {name: list(made) for name, made in shapes.hashes(Forked(2), tmp_path).items()}
    assert json.loads(ran.stdout.splitlines()[-1]) == {cluster.master: here}
    wanted = round(0.3 * shapes.ROWS)
    assert {name: late for name, (_, late) in here.items()} == {
        "delays longer than a chunk": wanted,
        "delays as long as the stream": wanted,
        "one event far ahead": shapes.ROWS // 2 - 1,
        "all events at one time": 0,
        "half of them at one time": wanted,
    }


@pytest.mark.prove
def test_a_topic_is_the_same_over_two_workers_and_in_process(broker: Broker, cluster: Cluster, tmp_path: Path) -> None:
    topic = made(broker.bootstrap, 3, message_timestamp_type="LogAppendTime")
    write(broker.bootstrap, topic, late_events(40_000, 3))
    source = [f"kafka://{broker.bootstrap}/{topic}", "--time", "payload.ts", "--unit", "ms", "--columns", "id"]
    told = []
    for name, more in (("here", []), ("there", ["--master", cluster.master])):
        out = ["--out", str(tmp_path / name), "--target", "source", "--seed", "1", "--json"]
        command = [str(Path(sys.executable).with_name("streamgauge")), "generate", *source, *out, *more]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2])
        assert ran.returncode == 0, ran.stderr
        told.append({key: value for key, value in json.loads(ran.stdout).items() if key != "files"})
    assert told[0] == told[1]
    assert told[0]["events"] == 40_000
    removed(broker.bootstrap, topic)
