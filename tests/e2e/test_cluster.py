"""A standalone Spark cluster runs the same DAG; only Airflow's connection differs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pyarrow as pa
import pytest

from streamgauge import metrics
from streamgauge.artifacts import Store, read_jsonl
from streamgauge.config import load
from streamgauge.runs import RunLog
from streamgauge.spark import generate, ingest
from tests.e2e.processes import QUICK, start, wait_for, write_config
from tests.metrics import app
from tests.metrics.backend import Backend
from tests.metrics.test_sinks import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
CELL = """
workloads: [{name: all, query: passthrough}]
systems: [{name: known, engine: known, trigger: 50ms}]
replay: {max_slip: 3s}
search: {rates: [500], confirmations: 0, trial_seconds: 1, warmup_batches: 1, min_batches: 3, max_age_slope: 0.9}
latency: {fractions: [1.0], seconds: 1}
"""
SPARK_CLASS = str(Path(sys.executable).with_name("spark-class"))
DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    master: str
    work: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
        except OSError:
            return False

    try:
        wait_for(alive, "two workers", 120)
        yield Cluster(master, folder / "work")
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=30)


def run(place: Path, look: Callable[[], object], more: str, **variables: str) -> dict[str, Any]:
    """The stream's manifest after `streamgauge run`."""
    place.mkdir()
    config = write_config(place / "same.yaml", ["{name: wild, target_percent: 20, delay: {max: 2h}, seed: 7}"])
    with config.open("a") as file:
        file.write(more)
    process = start(["run", str(config), "--artifacts", str(place / "artifacts")], place / "log", **variables)
    try:
        wait_for(lambda: look() or process.poll() is not None, "end of the run", 800)
        assert process.wait() == 0, (place / "log").read_text()
    finally:
        process.kill()
    [directory] = (place / "artifacts" / "runs").iterdir()
    assert {stage.state for stage in RunLog(directory).stages()} == {"done"}
    [manifest] = (place / "artifacts" / "data" / "stream").glob("*/manifest.json")
    return dict(json.loads(manifest.read_text()))


def test_a_cluster_makes_the_same_stream_by_changing_only_the_connection(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """And with two lines more in the benchmark file every stage's metrics reach a backend."""
    connection = json.dumps({"conn_type": "spark", "host": cluster.master})
    shipped: set[Path] = set()  # looked for while it runs: workers remove what an application leaves
    with Backend() as backend:
        there = run(
            tmp_path / "cluster",
            lambda: shipped.update(cluster.work.glob("app-*/*/streamgauge.zip")),
            f"{CELL}metrics:\n  sinks: [{{type: http, url: {backend.url}}}]\n",
            AIRFLOW_CONN_STREAMGAUGE_SPARK=connection,
        )
    assert shipped, "executors get the library from the driver"
    benchmark, store = load(tmp_path / "cluster" / "same.yaml"), Store(tmp_path / "here")
    ingest.run(spark, benchmark, store)
    here = generate.run(spark, benchmark, store, benchmark.experiments[0]).manifest
    assert there["sha256"] == here["sha256"]
    assert there["achieved_out_of_order"] == here["achieved_out_of_order"] > 0

    for body in backend.bodies:
        jsonschema.validate(body, SCHEMA, format_checker=jsonschema.FormatChecker())
    told = {
        (m["step"], m["name"]["name"]): m["committed"]
        for body in backend.bodies if body["final"]
        for kind in ("counters", "gauges", "distributions") for m in body[kind]
    }  # fmt: skip
    [directory] = (tmp_path / "cluster" / "artifacts" / "runs").iterdir()
    assert {step for step, name in told if name == "seconds"} == {s.stage for s in RunLog(directory).stages()}
    assert told["ingest", "ingested"] == there["events"], "counted on the cluster's workers"
    for stage, file in (("search", "trials"), ("latency", "latency-trials")):
        [trial] = read_jsonl(directory / "cells" / "wild.all.known" / f"{file}.jsonl")
        seen, step = trial["observation"], f"{stage}/wild.all.known"
        assert [told[step, name] for name in ("trials", "events_offered", "events_taken")] == [
            1, seen["offered"], seen["taken"],
        ]  # fmt: skip
        assert told[step, "backlog"]["value"] == seen["offered"] - seen["taken"]
        assert told[step, "event_latency_ns"]["count"] == trial["details"]["event_latency_ns"]["count"] > 0


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
        assert there["committed"] == there["attempted"] == metric.committed, there

    slow = found["slow", "slow"]  # one speculative copy won, and the loser was killed after it had told
    assert (slow["attempted"], slow["committed"]) == ({"value": 1000 + 250}, {"value": 1000})
    assert found.get(("slow", "untold"), {}).get("committed") is None
