"""Jobs killed at any moment: nothing of them is taken for finished, and a rerun makes what was never killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark, load
from streamgauge.streams.keys import events_key, stream_key, validation_key
from streamgauge.streams.stages import generate, ingest
from streamgauge.streams.stages.workers import Forked
from tests.conftest import ROOT
from tests.e2e.processes import left_behind, wait_for, write_config

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
SUBMIT = str(Path(sys.executable).with_name("spark-submit"))
SUITES = ROOT / "expectations"
EXPERIMENT = "late30"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kill")
    experiment = f"{{name: {EXPERIMENT}, target_percent: 30, delay: {{max: 2h}}, outputs: [parquet, csv]}}"
    return write_config(folder / "kill.yaml", [experiment])


@pytest.fixture(scope="module")
def undisturbed(config: Path) -> Store:
    """Events and stream, built by nobody who was killed."""
    store, benchmark = Store(config.parent / "undisturbed"), load(config)
    ingest.run(Forked(), benchmark, store)
    generate.run(Forked(), benchmark, store, benchmark.experiment(EXPERIMENT))
    return store


def submitted(stage: str, config: Path, artifacts: Path) -> subprocess.Popen[bytes]:
    """The job as Airflow starts it, leader of a process group of its own."""
    arguments = ["--config", str(config), "--artifacts", str(artifacts), "--run-id", "r"]
    if stage != "ingest":
        arguments += ["--experiment", EXPERIMENT]
    with open(config.parent / f"{stage}.log", "ab") as log:
        return subprocess.Popen(
            [SUBMIT, "--master", "local[2]", str(ROOT / "jobs" / f"{stage}.py"), *arguments],
            env=os.environ | {
                "STREAMGAUGE_ARTIFACTS": str(artifacts),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable,
            },
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def kill(process: subprocess.Popen[bytes], artifacts: Path) -> None:
    """SIGKILL to the whole group. Python workers have one of their own and end when the JVM is gone."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    wait_for(lambda: not left_behind(artifacts), "end of the job's processes", 60)


def complete(artifact: Artifact) -> bool:
    """Checks that the files that the manifest names are there and readable, with all their rows."""
    if artifact.kind == "validation":
        result = json.loads((artifact.path / artifact.manifest["result"]).read_text())
        return bool(result["success"]) and (artifact.path / artifact.manifest["docs"]).is_file()
    found = sum(pq.read_table(file).num_rows for file in artifact.files())
    return found == artifact.manifest["events"] and all(
        (artifact.path / name).is_file() for name in artifact.manifest.get("csv_files", [])
    )


def content(artifact: Artifact) -> Any:
    """Facts of an artifact that do not depend on its builder."""
    if artifact.kind == "stream":
        return artifact.manifest["sha256"], (artifact.path / "stream.csv").read_bytes()
    return [pq.read_table(file).to_pydict() for file in artifact.files()]


def keys(benchmark: Benchmark, store: Store) -> dict[str, tuple[str, str]]:
    experiment = benchmark.experiment(EXPERIMENT)
    return {
        "ingest": ("events", events_key(store, benchmark)),
        "generate": ("stream", stream_key(store, benchmark, experiment)),
        "validate": ("validation", validation_key(store, benchmark, experiment, SUITES)),
    }


@pytest.mark.parametrize(
    "stage", ["generate", *(pytest.param(name, marks=pytest.mark.prove) for name in ("ingest", "validate"))]
)
def test_a_killed_job_leaves_nothing_that_a_rerun_takes_for_finished(
    stage: str, config: Path, undisturbed: Store, tmp_path: Path
) -> None:
    benchmark, store = load(config), Store(tmp_path / "artifacts")
    for kind in {"ingest": [], "generate": ["events"], "validate": ["events", "stream"]}[stage]:
        shutil.copytree(undisturbed.root / "data" / kind, store.root / "data" / kind)
    kind, key = keys(benchmark, undisturbed)[stage]
    place = store.path(kind, key).parent

    def building() -> bool:
        return any(place.glob(f"{key}.tmp-*"))

    process = submitted(stage, config, store.root)
    deadline = time.monotonic() + 120
    while not building() and process.poll() is None:
        assert time.monotonic() < deadline, f"{stage} never began to build"
        time.sleep(0.005)
    time.sleep(random.Random(stage).uniform(0.0, 0.1))
    kill(process, store.root)
    assert building(), "it was killed while it built"
    found = store.find(kind, key)
    assert found is None or complete(found)

    assert submitted(stage, config, store.root).wait(timeout=240) == 0
    rerun = store.need(kind, key, stage)
    assert complete(rerun)
    assert list(store.root.rglob("*.tmp-*")) == []
    if stage != "validate":
        assert content(rerun) == content(undisturbed.need(kind, key, stage))
