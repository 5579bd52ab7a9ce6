"""The whole DAG, from file to latency, with artifacts on an S3-compatible store and metrics at a backend."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import load
from tests.e2e.processes import start, write_config
from tests.metrics.backend import Backend
from tests.metrics.test_sinks import SCHEMA
from tests.stores import object_store

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CELL = """
workloads: [{name: all, query: passthrough}]
systems: [{name: known, engine: known, trigger: 50ms}]
replay: {max_slip: 3s}
search: {max_rate: 500, warmup_seconds: 0, window_seconds: 0.5, max_age: 1s, proof_steps: 1, margin: 0.3}
latency: {fractions: [1.0], seconds: 1}
"""


def told_of(run: Path, stream: Artifact, backend: Backend) -> None:
    """Checks that each stage reports what its records say."""
    for body in backend.bodies:
        jsonschema.validate(body, SCHEMA, format_checker=jsonschema.FormatChecker())
    told = {
        (m["step"], m["name"]["name"]): m["committed"]
        for body in backend.bodies if body["final"]
        for kind in ("counters", "gauges", "distributions") for m in body[kind]
    }  # fmt: skip
    assert {step for step, name in told if name == "seconds"} == {s.stage for s in RunLog(run).stages()}
    assert told["ingest", "ingested"] == stream.manifest["events"], "counted on Spark's workers"
    for stage, file in (("search", "trials"), ("latency", "latency-trials")):
        [trial] = read_jsonl(run / "cells" / "wild.all.known" / f"{file}.jsonl")
        seen, step = trial["observation"], f"{stage}/wild.all.known"
        assert [told[step, name] for name in ("trials", "events_offered", "events_taken")] == [
            1, seen["offered"], seen["taken"],
        ]  # fmt: skip
        assert told[step, "backlog"]["value"] == seen["offered"] - seen["taken"]
        assert told[step, "event_latency_ns"]["count"] == trial["details"]["event_latency_ns"]["count"] > 0


def test_the_dag_runs_on_a_store_and_leaves_only_what_it_must_here(tmp_path: Path) -> None:
    """Metrics of all stages reach a backend with two more lines in the benchmark file."""
    with object_store("the-store-s-own-secret") as (there, variables):
        config = write_config(tmp_path / "wild.yaml", ["{name: wild, target_percent: 20, delay: {max: 2h}, seed: 7}"])
        log = tmp_path / "log"
        with Backend() as backend:
            config.write_text(f"{config.read_text()}{CELL}metrics:\n  sinks: [{{type: http, url: {backend.url}}}]\n")
            process = start(["run", str(config), "--artifacts", there], log, ["env", "-C", str(tmp_path)], **variables)
            try:
                assert process.wait(timeout=500) == 0, log.read_text()
            finally:
                process.kill()

        store, benchmark = Store(there), load(config)
        [run] = store.runs()
        assert {stage.state for stage in RunLog(run).stages()} == {"done"}
        stream = store.need("stream", store.stream_key(benchmark, benchmark.experiments[0]), "generate")
        assert stream.manifest["achieved_out_of_order"] == stream.manifest["target_out_of_order"] > 0
        [trial] = read_jsonl(run / "cells" / "wild.all.known" / "trials.jsonl")
        assert trial["observation"]["taken"] == trial["observation"]["offered"] > 350, "a backlog of a second, and more"
        [latency] = read_jsonl(run / "cells" / "wild.all.known" / "latency-trials.jsonl")
        assert latency["observation"]["taken"] == latency["observation"]["offered"] == 500
        assert json.loads((run / "cells" / "wild.all.known" / "latency.json").read_text())[0]["valid"]
        assert "index.html" in {file.name for file in run.changes()}  # type: ignore[attr-defined]
        left = {
            file.relative_to(tmp_path / "artifacts").parts[3]
            for file in (tmp_path / "artifacts").rglob("*")
            if file.is_file()
        }
        assert left == {"airflow", "results.db", "runs"}
        assert [file.name for file in tmp_path.glob("artifacts/s3/*/nightly/runs/**/*") if file.is_file()] == [
            "airflow.log"
        ]
        written = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert not [file for file in written if variables["AWS_SECRET_ACCESS_KEY"].encode() in file.read_bytes()]
        told_of(run, stream, backend)
