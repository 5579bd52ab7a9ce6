"""A night through Airflow's REST API, killed in the middle of its search: started again, Airflow brings it to its end.

The retry ends the orphan and goes on after it; then the night is judged and told of.
"""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog.runs import RunLog
from tests.e2e.processes import alive, left_behind, wait_for, write_config
from tests.e2e.rest import come_up, end_ui, start_ui

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
DAG, RUN = "streamgauge-nightly_night", "killed"
NIGHT = """
workloads: [{name: all, query: passthrough}]
systems: [{name: known, engine: known, capacity: 1e6, trigger: 50ms}]
replay: {max_memory_mb: 64, max_slip: 5s}
search: {max_rate: 2000, warmup_seconds: 0, window_seconds: 3, max_age: 1s, proof_steps: 1, margin: 0.3}
latency: {fractions: [0.5], seconds: 1}
nightly: {repetitions: [4], self_tests: 0}
"""
#: how long nobody believes that a task is dead
IMPATIENT = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def of_airflow_and_of_its_job(ui: subprocess.Popen[bytes]) -> tuple[list[psutil.Process], list[psutil.Process]]:
    everyone = family(psutil.Process(ui.pid))
    submitted = [process for process in everyone if is_submit(process)]
    job = [one for process in submitted for one in family(process)]
    return [process for process in everyone if process not in job], job


def is_submit(process: psutil.Process) -> bool:
    """The JVM, which ends when its Python does."""
    with suppress(psutil.Error):
        return "org.apache.spark.deploy.SparkSubmit" in process.cmdline()
    return False


def kill(processes: list[psutil.Process]) -> None:
    """At one stroke: none lives to see another one's end."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
    psutil.wait_procs(processes, timeout=30)


def test_a_night_whose_airflow_was_killed_measures_nothing_twice_and_is_judged_and_told_of(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    config = write_config(tmp_path / "configs" / "night.yaml", ["{name: calm, target_percent: 0}"])
    config.write_text(config.read_text() + NIGHT)
    artifacts, log = tmp_path / "artifacts", tmp_path / "ui.log"
    directory = artifacts / "runs" / f"night-nightly-{RUN}"
    windows = directory / "cells" / "calm.all.known" / "windows.jsonl"
    (tmp_path / "tmp").mkdir()
    variables = {**IMPATIENT, "TMPDIR": str(tmp_path / "tmp")}  # of the measuring lock too

    ui, orphans = start_ui(tmp_path, log, **variables), []
    try:
        come_up(ui, log).trigger(DAG, RUN)
        wait_for(lambda: ui.poll() is not None or (windows.exists() and read_jsonl(windows)), "first window", 300)
        airflow, orphans = of_airflow_and_of_its_job(ui)
        assert len(orphans) > 1, "the job, and its driver"
        kill(airflow)
        ui.wait(timeout=30)
        held = [process for process in orphans if alive(process) and not is_submit(process)]
        for process in held:  # as if it hung: it must neither end by itself nor measure on
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        before = windows.read_bytes()
        assert held

        ui = start_ui(tmp_path, log, **variables)
        again = come_up(ui, log)
        tasks = again.finished(DAG, RUN, ["calm"])
        assert {task["state"] for task in tasks.values()} == {"success"}
        assert {key[0]: task["try_number"] for key, task in tasks.items() if key[0]} == {
            "plan": 1, "ingest": 1, "analyze": 1, "per_experiment.generate": 1, "per_experiment.validate": 1,
            "cells": 1, "per_cell.search": 2, "per_cell.latency": 1, "regressions": 1, "notify": 1, "report": 1,
            "finish": 1,
        }  # fmt: skip
        said = json.dumps(again(f"/dags/{DAG}/dagRuns/{RUN}/taskInstances/per_cell.search/logs/2?map_index=0"))
        assert "killing an orphaned earlier attempt of this measurement" in said
        assert "resuming after" in said
        wait_for(lambda: not any(map(alive, orphans)), "end of the orphans", 30)
    finally:
        if ui.poll() is None:
            end_ui(ui)
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
    assert left_behind(artifacts) == []

    assert json.loads((directory / "nightly.json").read_text())["state"] == "good"
    stored = {record["metric"]: record["value"] for record in read_jsonl(directory / "results.jsonl")}
    assert stored["sustainable_rate_events_per_s"] == 2000
    assert "event_latency_ms_p50_at_50pct" in stored
    assert (artifacts / "dashboard.html").stat().st_size > 0
