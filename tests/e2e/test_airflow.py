"""A real scheduler and API server: one of three experiments fails, is corrected, and is tried again."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.catalog.runs import RunLog
from tests.e2e.processes import left_behind, start, wait_for, write_config
from tests.e2e.rest import Airflow, come_up, end_ui, start_ui

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
CALM = "{name: calm, target_percent: 0}"
WILD = "{name: wild, target_percent: 20, delay: {max: 2h}}"
IMPOSSIBLE = "{name: third, target_percent: 80, delay: {max: 1ms}}"
CORRECTED = "{name: third, target_percent: 30, delay: {max: 2h}}"
DAG = "streamgauge_trio"
NAMES = ["calm", "wild", "third"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "configs").mkdir()
    write_config(folder / "configs" / "trio.yaml", [CALM, WILD, IMPOSSIBLE])
    (folder / "configs" / "broken.yaml").write_text("name: [")
    return folder


@pytest.fixture(scope="module")
def airflow(place: Path) -> Iterator[Airflow]:
    log = place / "ui.log"
    process = start_ui(place, log)
    try:
        yield come_up(process, log)
    finally:
        end_ui(process)
    assert left_behind(place / "artifacts") == []


def test_one_bad_experiment_fails_visibly_and_its_retry_builds_only_what_is_missing(
    airflow: Airflow, place: Path
) -> None:
    airflow.trigger(DAG, "trio+1")
    tasks = airflow.finished(DAG, "trio+1", NAMES)
    states = {key: task["state"] for key, task in tasks.items()}
    assert states == {
        ("", ""): "failed",
        ("plan", ""): "success",
        ("ingest", ""): "success",
        ("analyze", ""): "success",
        ("per_experiment.generate", "calm"): "success",
        ("per_experiment.generate", "wild"): "success",
        ("per_experiment.generate", "third"): "failed",
        ("per_experiment.validate", "calm"): "success",
        ("per_experiment.validate", "wild"): "success",
        ("per_experiment.validate", "third"): "upstream_failed",
        ("report", ""): "success",
        ("finish", ""): "upstream_failed",
    }
    failed = tasks["per_experiment.generate", "third"]
    assert failed["rendered_map_index"] == "third"
    assert failed["try_number"] == 1, "a user's mistake is not tried again"
    log = json.dumps(airflow(f"/dags/{DAG}/dagRuns/trio%2B1/taskInstances/per_experiment.generate/logs/1?map_index=2"))
    directory = place / "artifacts" / "runs" / "trio-trio-1"
    reason = str(RunLog(directory).latest("generate", experiment="third").error)
    assert f"streamgauge generate: {reason[:40]}" in log.replace("\\u00a0", " ")
    assert reason[:40] in (directory / "index.html").read_text()

    [broken] = airflow("/importErrors")["import_errors"]
    assert "broken.yaml: line 1: not valid YAML" in broken["stack_trace"]

    built = {path: path.stat().st_mtime_ns for path in (place / "artifacts" / "data").rglob("manifest.json")}
    write_config(place / "configs" / "trio.yaml", [CALM, WILD, CORRECTED])
    airflow(
        f"/dags/{DAG}/clearTaskInstances",
        {
            "dry_run": False,
            "dag_run_id": "trio+1",
            "only_failed": False,
            "include_downstream": True,
            "task_ids": [["per_experiment.generate", 2]],
        },
    )
    tasks = airflow.finished(DAG, "trio+1", NAMES)
    assert {task["state"] for task in tasks.values()} == {"success"}
    again = {path: path.stat().st_mtime_ns for path in (place / "artifacts" / "data").rglob("manifest.json")}
    assert built.items() <= again.items(), "what was built stays untouched"
    assert sorted(path.parts[-3] for path in again.keys() - built.keys()) == ["stream", "validation"]
    generated = [s.scope["experiment"] for s in RunLog(directory).stages() if s.stage == "generate"]
    assert sorted(generated) == ["calm", "third", "third", "wild"]
    streams = [path for path in again.keys() - built.keys() if path.parts[-3] == "stream"]
    assert json.loads(streams[0].read_text())["sha256"][:8] in (directory / "index.html").read_text()


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
