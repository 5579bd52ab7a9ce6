"""Tests an Airflow with scheduler and API server over a night, and by `make prove` over two.

Airflow is killed in the middle of the night's search. Started again, it ends the orphan and brings the night to its
end. A second one is refused, and SIGTERM ends it. By `make prove`, a night comes before: its stage is killed, then
hangs, is ended and told of. A single stage that is killed or hangs: tests/airflow/test_hung.py. Retries of single
tasks: test_service.py. What a killed command leaves: test_store.py.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog.run_log import RunLog
from tests.command import Call, run
from tests.e2e.processes import KNOWN_CELL, alive, left_behind, wait_for, write_config
from tests.e2e.rest import come_up, start_ui

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
STUCK = "{name: stuck, target_percent: 20, delay: {distribution: 'hanging:at_will', max: 2h}}"
#: dies once, then hangs for as long as a file is there
MODULE = """
import os, signal, time
def at_will(quantile, low, high):
    place = os.environ["HANGING"]
    if os.path.exists(place) and not os.path.exists(place + ".died"):
        open(place + ".died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    while os.path.exists(place):
        time.sleep(0.1)
    return low + quantile * (high - low)
"""
NIGHT = """
latency: {{fractions: [0.5], seconds: 1}}
nightly:
  repetitions: [4]
  self_tests: 0
  notify: always
  webhook: {{url: "{url}/report"}}
  heartbeat: {{url: "{url}/beat"}}
"""
#: a minute for each task
STRICT = "timeouts: {factor: 1, least: 1s}\n"
DAG = "streamgauge-nightly_night"
#: how long nobody believes that a task is dead
IMPATIENT = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "25",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}

Tasks = dict[tuple[str, str], dict[str, Any]]


class Started:
    """Airflow's processes, which may be started again on the same database and artifacts."""

    def __init__(self, place: Path) -> None:
        self.place, self.artifacts, self._log = place, place / "artifacts", place / "ui.log"
        (place / "configs").mkdir()
        (place / "tmp").mkdir()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._told = http.server.ThreadingHTTPServer(("127.0.0.1", 0), listener(self.told))
        threading.Thread(target=self._told.serve_forever, daemon=True).start()
        (place / "hanging.py").write_text(MODULE)
        self.hanging = place / "hanging.txt"
        self.plan("")
        self.start()

    def plan(self, limits: str) -> None:
        """Writes the benchmark file of the nights."""
        file = write_config(self.place / "configs" / "night.yaml", [STUCK])
        night = NIGHT.format(url=f"http://127.0.0.1:{self._told.server_port}")
        file.write_text(file.read_text() + KNOWN_CELL + night + limits)

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


def ended(process: psutil.Process) -> bool:
    return not alive(process)


def kill(processes: list[psutil.Process]) -> None:
    """Kills all processes, each before its parent, while all stand still: none reacts to the end of another.

    A group of processes that loses its last parent outside gets SIGHUP if one of them stands still: these go first.
    """
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    for process in reversed(processes):
        with suppress(psutil.NoSuchProcess):
            process.kill()
            wait_for(partial(ended, process), "end of a process", 30)
    psutil.wait_procs(processes, timeout=30)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    made = Started(tmp_path_factory.mktemp("airflow"))
    try:
        yield made
    finally:
        made.process.kill()  # and nothing else: its services must end without it
        wait_for(lambda: not left_behind(made.artifacts), "end of Airflow", 60)


def records(started: Started, name: str) -> Path:
    return started.artifacts / "runs" / f"night-nightly-{name}"


@pytest.fixture(scope="module")
def hung(started: Started) -> Tasks:
    """A night that hangs; the next one is triggered meanwhile, and waits for it."""
    started.plan(STRICT)
    started.hanging.touch()
    started.airflow.trigger(DAG, "first")
    wait_for(lambda: RunLog(records(started, "first")).latest("generate", experiment="stuck"), "a hanging task", 300)
    started.airflow.trigger(DAG, "second")
    tasks = started.airflow.finished(DAG, "first", ["stuck"])
    started.hanging.unlink()
    started.plan("")  # a busy machine must not end a task of the second night, which may take half an hour now
    return tasks


@dataclass(frozen=True)
class Night:
    """Facts of the night whose Airflow was killed."""

    tasks: Tasks
    before: bytes
    """its windows when Airflow was killed"""
    resumed: str
    """the log of its second search"""


@pytest.fixture(scope="module")
def night(started: Started) -> Night:
    """A night whose Airflow is killed as it measures."""
    if not started.airflow.told(f"/dags/{DAG}/dagRuns/second"):
        started.airflow.trigger(DAG, "second")
    windows = records(started, "second") / "cells" / "stuck.all.known" / "windows.jsonl"
    orphans: list[psutil.Process] = []
    try:
        wait_for(lambda: windows.exists() and read_jsonl(windows), "first window", 400)
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
        tasks = started.airflow.finished(DAG, "second", ["stuck"])
        log = f"/dags/{DAG}/dagRuns/second/taskInstances/per_cell.search/logs/2?map_index=0"
        resumed = json.dumps(started.airflow(log))
        wait_for(lambda: not any(map(alive, orphans)), "end of the orphans", 30)
    finally:
        for process in orphans:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    return Night(tasks, before, resumed)


@pytest.mark.prove
def test_a_night_that_hangs_is_ended_and_told_and_the_next_one_runs(
    hung: Tasks, night: Night, started: Started
) -> None:
    assert (hung["per_experiment.generate", "stuck"]["state"], hung["", ""]["state"]) == ("failed", "failed")
    tries = [one for one in RunLog(records(started, "first")).stages() if one.stage == "generate"]
    assert [(one.state, one.cause) for one in tries] == [("failed", "outage")] * 2, "it was killed, then it hung"
    assert "took longer than" in str(tries[-1].error)
    assert "which counts as hung" in str(tries[-1].error)

    assert {task["state"] for task in night.tasks.values()} == {"success"}
    beats = [body["run_id"] for path, body in started.told if path == "/beat"]
    assert beats == ["night-nightly-first", "night-nightly-second"]
    [bad, good] = [body for path, body in started.told if path == "/report"]
    assert (bad["state"], good["state"]) == ("bad", "good")
    assert "counts as hung" in json.dumps(bad["lines"])


def test_a_night_whose_airflow_was_killed_measures_nothing_twice_and_is_judged_and_told_of(
    night: Night, started: Started
) -> None:
    assert {task["state"] for task in night.tasks.values()} == {"success"}
    assert {key[0]: task["try_number"] for key, task in night.tasks.items() if key[0]} == {
        "plan": 1, "ingest": 1, "analyze": 1, "per_experiment.generate": 1, "per_experiment.validate": 1,
        "cells": 1, "per_cell.search": 2, "per_cell.latency": 1, "regressions": 1, "notify": 1, "report": 1,
        "finish": 1,
    }  # fmt: skip
    assert "killing an orphaned earlier attempt of this measurement" in night.resumed
    assert "resuming after" in night.resumed

    directory = records(started, "second")
    cell = directory / "cells" / "stuck.all.known"
    assert (cell / "windows.jsonl").read_bytes().startswith(night.before), "what was measured stays"
    windows = read_jsonl(cell / "windows.jsonl")
    kept = [*windows, *read_jsonl(cell / "trials.jsonl")]
    assert sorted(record["number"] for record in kept) == list(range(1, len(kept) + 1))
    lives = [record["window"]["life"] for record in windows]
    assert lives == sorted(lives), "a process that was lost is measured again from its start"
    assert set(lives) == {1, 2}
    assert json.loads((cell / "search.json").read_text())["sustainable_rate_events_per_s"] == 2000
    searches = [stage.state for stage in RunLog(directory).stages() if stage.stage == "search"]
    assert searches[-1] == "done"

    assert json.loads((directory / "nightly.json").read_text())["state"] == "good"
    told = [(path, body["run_id"]) for path, body in started.told if body["run_id"] == directory.name]
    assert sorted(told) == [("/beat", directory.name), ("/report", directory.name)]
    stored = {record["metric"]: record["value"] for record in read_jsonl(directory / "results.jsonl")}
    assert stored["sustainable_rate_events_per_s"] == 2000
    assert "event_latency_ms_p50_at_50pct" in stored
    assert (started.artifacts / "dashboard.html").stat().st_size > 0


@pytest.mark.usefixtures("night")
def test_a_second_airflow_is_refused_and_the_first_ends_by_sigterm_with_all_that_it_has_started(
    started: Started,
) -> None:
    artifacts = started.artifacts
    said = run(Call(["ui", str(started.place / "configs"), "--artifacts", str(artifacts), "--port", "0"]))
    said.refused(f"Airflow of {artifacts}: process {started.process.pid} on host ")
    services = family(psutil.Process(started.process.pid))
    assert len(services) > 3
    started.process.terminate()
    assert started.process.wait(timeout=60) == 0
    wait_for(lambda: not any(map(alive, services)), "end of what it has started", 30)
    assert left_behind(artifacts) == []
