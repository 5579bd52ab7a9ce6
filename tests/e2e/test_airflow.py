"""Tests an Airflow with scheduler and API server: one experiment of two fails, is corrected, and is tried again.

Then Airflow is killed in the middle of a night's search. Started again, it ends the orphan and brings the night to its
end. A night that hangs is ended and told of, and the next one runs.
"""

from __future__ import annotations

import http.server
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog.run_log import RunLog
from tests.e2e.processes import alive, left_behind, start, wait_for, write_config
from tests.e2e.rest import come_up, end_ui, start_ui

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
CALM = "{name: calm, target_percent: 0}"
IMPOSSIBLE = "{name: wild, target_percent: 80, delay: {max: 1ms}}"
CORRECTED = "{name: wild, target_percent: 30, delay: {max: 2h}}"
DAG = "streamgauge_pair"
NAMES = ["calm", "wild"]
NIGHTLY, RUN = "streamgauge-nightly_night", "killed"
NIGHT = """
workloads: [{name: all, query: passthrough}]
systems: [{name: known, engine: known, capacity: 1e6, trigger: 50ms}]
replay: {max_memory_mb: 64, max_slip: 5s}
search: {max_rate: 2000, warmup_seconds: 0, window_seconds: 3, max_age: 1s, proof_steps: 1, margin: 0.3}
latency: {fractions: [0.5], seconds: 1}
nightly: {repetitions: [4], self_tests: 0}
"""
HANGING = "streamgauge-nightly_hang"
STUCK = "{name: stuck, target_percent: 20, delay: {distribution: 'hanging:at_will', max: 2h}}"
#: hangs for as long as a file is there
MODULE = """
import os, time
def at_will(quantile, low, high):
    while os.path.exists(os.environ["HANGING"]):
        time.sleep(0.1)
    return low + quantile * (high - low)
"""
HANG = """
nightly: {{self_tests: 0, notify: always, webhook: {{url: "{url}/report"}}, heartbeat: {{url: "{url}/beat"}}}}
timeouts: {{factor: 1, least: 1s}}
"""
#: how long nobody believes that a task is dead
IMPATIENT = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "25",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}


class Started:
    """Airflow's processes, which may be started again on the same database and artifacts."""

    def __init__(self, place: Path) -> None:
        self.place, self.artifacts, self._log = place, place / "artifacts", place / "ui.log"
        (place / "configs").mkdir()
        (place / "tmp").mkdir()
        write_config(place / "configs" / "pair.yaml", [CALM, IMPOSSIBLE])
        night = write_config(place / "configs" / "night.yaml", [CALM])
        night.write_text(night.read_text() + NIGHT)
        (place / "configs" / "broken.yaml").write_text("name: [")
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._told = http.server.ThreadingHTTPServer(("127.0.0.1", 0), listener(self.told))
        threading.Thread(target=self._told.serve_forever, daemon=True).start()
        hang = write_config(place / "configs" / "hang.yaml", [STUCK])
        hang.write_text(hang.read_text() + HANG.format(url=f"http://127.0.0.1:{self._told.server_port}"))
        (place / "hanging.py").write_text(MODULE)
        self.hanging = place / "hanging.txt"
        self.start()

    def start(self) -> None:
        own = dict.fromkeys(("TMPDIR", "STREAMGAUGE_LOCKS"), str(self.place / "tmp"))
        own |= {"PYTHONPATH": str(self.place), "HANGING": str(self.hanging)}
        self.process = start_ui(self.place, self._log, **own, **IMPATIENT)
        self.airflow = come_up(self.process, self._log)

    def processes_and_those_of_its_job(self) -> tuple[list[psutil.Process], list[psutil.Process]]:
        everyone = family(psutil.Process(self.process.pid))
        submitted = [process for process in everyone if is_submit(process)]
        job = [one for process in submitted for one in family(process)]
        return [process for process in everyone if process not in job], job


def listener(told: list[tuple[str, dict[str, Any]]]) -> type[http.server.BaseHTTPRequestHandler]:
    """Appends each path and body that is posted."""

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Listener


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def is_submit(process: psutil.Process) -> bool:
    """The JVM, which ends when its Python does."""
    with suppress(psutil.Error):
        return "org.apache.spark.deploy.SparkSubmit" in process.cmdline()
    return False


def kill(processes: list[psutil.Process]) -> None:
    """Kills all processes at once, so that none reacts to the end of another."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
    psutil.wait_procs(processes, timeout=30)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    made = Started(tmp_path_factory.mktemp("airflow"))
    try:
        yield made
    finally:
        end_ui(made.process)
    assert left_behind(made.artifacts) == []


def test_one_bad_experiment_fails_visibly_and_its_retry_builds_only_what_is_missing(
    started: Started,
) -> None:
    airflow, place = started.airflow, started.place
    airflow.trigger(DAG, "pair+1")
    tasks = airflow.finished(DAG, "pair+1", NAMES)
    states = {key: task["state"] for key, task in tasks.items()}
    assert states == {
        ("", ""): "failed",
        ("plan", ""): "success",
        ("ingest", ""): "success",
        ("analyze", ""): "success",
        ("per_experiment.generate", "calm"): "success",
        ("per_experiment.generate", "wild"): "failed",
        ("per_experiment.validate", "calm"): "success",
        ("per_experiment.validate", "wild"): "upstream_failed",
        ("report", ""): "success",
        ("finish", ""): "upstream_failed",
    }
    failed = tasks["per_experiment.generate", "wild"]
    assert failed["rendered_map_index"] == "wild"
    assert failed["try_number"] == 1, "a user's mistake is not tried again"
    log = json.dumps(airflow(f"/dags/{DAG}/dagRuns/pair%2B1/taskInstances/per_experiment.generate/logs/1?map_index=1"))
    directory = place / "artifacts" / "runs" / "pair-pair-1"
    reason = str(RunLog(directory).latest("generate", experiment="wild").error)
    assert f"streamgauge generate: {reason[:40]}" in log.replace("\\u00a0", " ")
    assert reason[:40] in (directory / "index.html").read_text()

    [broken] = airflow("/importErrors")["import_errors"]
    assert "broken.yaml: line 1: not valid YAML" in broken["stack_trace"]

    built = {path: path.stat().st_mtime_ns for path in (place / "artifacts" / "data").rglob("manifest.json")}
    write_config(place / "configs" / "pair.yaml", [CALM, CORRECTED])
    airflow(
        f"/dags/{DAG}/clearTaskInstances",
        {
            "dry_run": False,
            "dag_run_id": "pair+1",
            "only_failed": False,
            "include_downstream": True,
            "task_ids": [["per_experiment.generate", 1]],
        },
    )
    tasks = airflow.finished(DAG, "pair+1", NAMES)
    assert {task["state"] for task in tasks.values()} == {"success"}
    again = {path: path.stat().st_mtime_ns for path in (place / "artifacts" / "data").rglob("manifest.json")}
    assert built.items() <= again.items(), "what was built stays untouched"
    assert sorted(path.parts[-3] for path in again.keys() - built.keys()) == ["stream", "validation"]
    generated = [s.scope["experiment"] for s in RunLog(directory).stages() if s.stage == "generate"]
    assert sorted(generated) == ["calm", "wild", "wild"]
    streams = [path for path in again.keys() - built.keys() if path.parts[-3] == "stream"]
    assert json.loads(streams[0].read_text())["sha256"][:8] in (directory / "index.html").read_text()


def test_a_night_whose_airflow_was_killed_measures_nothing_twice_and_is_judged_and_told_of(started: Started) -> None:
    directory = started.artifacts / "runs" / f"night-nightly-{RUN}"
    windows = directory / "cells" / "calm.all.known" / "windows.jsonl"
    orphans: list[psutil.Process] = []
    try:
        started.airflow.trigger(NIGHTLY, RUN)
        wait_for(lambda: windows.exists() and read_jsonl(windows), "first window", 300)
        airflow, orphans = started.processes_and_those_of_its_job()
        assert len(orphans) > 1, "the job, and its driver"
        kill(airflow)
        started.process.wait(timeout=30)
        held = [process for process in orphans if alive(process) and not is_submit(process)]
        for process in held:  # as if it hung: it must neither end by itself nor measure on
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        before = windows.read_bytes()
        assert held

        started.start()
        again = started.airflow
        tasks = again.finished(NIGHTLY, RUN, ["calm"])
        assert {task["state"] for task in tasks.values()} == {"success"}
        assert {key[0]: task["try_number"] for key, task in tasks.items() if key[0]} == {
            "plan": 1, "ingest": 1, "analyze": 1, "per_experiment.generate": 1, "per_experiment.validate": 1,
            "cells": 1, "per_cell.search": 2, "per_cell.latency": 1, "regressions": 1, "notify": 1, "report": 1,
            "finish": 1,
        }  # fmt: skip
        said = json.dumps(again(f"/dags/{NIGHTLY}/dagRuns/{RUN}/taskInstances/per_cell.search/logs/2?map_index=0"))
        assert "killing an orphaned earlier attempt of this measurement" in said
        assert "resuming after" in said
        wait_for(lambda: not any(map(alive, orphans)), "end of the orphans", 30)
    finally:
        for process in orphans:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    assert windows.read_bytes().startswith(before), "what was measured stays"
    kept = [*read_jsonl(windows), *read_jsonl(windows.with_name("trials.jsonl"))]
    assert sorted(record["number"] for record in kept) == list(range(1, len(kept) + 1))
    lives = [record["window"]["life"] for record in read_jsonl(windows)]
    assert lives == sorted(lives), "a process that was lost is measured again from its start"
    assert set(lives) == {1, 2}
    assert json.loads((windows.parent / "search.json").read_text())["sustainable_rate_events_per_s"] == 2000
    searches = [stage.state for stage in RunLog(directory).stages() if stage.stage == "search"]
    assert searches[-1] == "done"

    assert json.loads((directory / "nightly.json").read_text())["state"] == "good"
    stored = {record["metric"]: record["value"] for record in read_jsonl(directory / "results.jsonl")}
    assert stored["sustainable_rate_events_per_s"] == 2000
    assert "event_latency_ms_p50_at_50pct" in stored
    assert (started.artifacts / "dashboard.html").stat().st_size > 0


def test_a_night_that_hangs_is_ended_and_told_and_the_next_one_runs(started: Started) -> None:
    airflow, runs = started.airflow, started.artifacts / "runs"
    started.hanging.touch()
    airflow.trigger(HANGING, "first")
    wait_for(lambda: RunLog(runs / "hang-nightly-first").latest("generate", experiment="stuck"), "a hanging task", 300)
    airflow.trigger(HANGING, "second")  # it waits for the first
    tasks = airflow.finished(HANGING, "first", ["stuck"])
    started.hanging.unlink()
    assert (tasks["per_experiment.generate", "stuck"]["state"], tasks["", ""]["state"]) == ("failed", "failed")
    hung = [one for one in RunLog(runs / "hang-nightly-first").stages() if one.stage == "generate"]
    assert {(one.state, one.cause) for one in hung} == {("failed", "outage")}
    assert "took longer than" in str(hung[-1].error)
    assert "which counts as hung" in str(hung[-1].error)

    tasks = airflow.finished(HANGING, "second", ["stuck"])
    assert {task["state"] for task in tasks.values()} == {"success"}
    beats = [body["run_id"] for path, body in started.told if path == "/beat"]
    assert beats == ["hang-nightly-first", "hang-nightly-second"]
    [first, second] = [body for path, body in started.told if path == "/report"]
    assert (first["state"], second["state"]) == ("bad", "good")
    assert "counts as hung" in json.dumps(first["lines"])


def test_interrupted_run_leaves_no_process_and_nothing_half_built(tmp_path: Path) -> None:
    config = write_config(tmp_path / "solo.yaml", [CALM])
    artifacts, log = tmp_path / "artifacts", tmp_path / "run.log"
    process = start(["run", str(config), "--artifacts", str(artifacts)], log)
    try:
        wait_for(lambda: "started ingest" in log.read_text() or process.poll() is not None, "first stage", 300)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, log.read_text()
    finally:
        process.kill()
    assert left_behind(artifacts) == []
    assert list((artifacts / "data").glob("*/*/manifest.json")) == []
