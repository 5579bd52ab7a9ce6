"""A run by the command with artifacts on an S3-compatible store, interrupted. A whole run on one: test_service.py."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from tests.e2e.processes import left_behind, start, wait_for, write_config
from tests.stores import object_store

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_an_interrupted_run_leaves_no_process_and_nothing_half_built(tmp_path: Path) -> None:
    config = write_config(tmp_path / "solo.yaml", ["{name: calm, target_percent: 0}"])
    log = tmp_path / "run.log"
    with object_store("the-store-s-own-secret") as (there, variables):
        process = start(["run", str(config), "--artifacts", there], log, ["env", "-C", str(tmp_path)], **variables)
        try:
            wait_for(lambda: "started ingest" in log.read_text() or process.poll() is not None, "first stage", 300)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130, log.read_text()
            [name] = re.findall(r"^run (\S+):", log.read_text(), re.MULTILINE)
            again = f"to go on: streamgauge run {config} --artifacts {there} --resume {name}"
            assert again in log.read_text().splitlines()
        finally:
            process.kill()
        store = Store(there)
        assert left_behind(str(store.root)) == []
        [run] = store.runs()
        assert [stage.stage for stage in RunLog(run).stages()] == ["ingest"]
        built = (store.root / "data").changes()  # type: ignore[attr-defined]
        assert [file for file in built if file.name == "manifest.json"] == []
        here = tmp_path / "artifacts"
        left = [file.relative_to(here).parts[3:] for file in here.rglob("*") if file.is_file()]
        assert {parts[0] for parts in left} == {"airflow", "runs"}
        assert [parts[2:] for parts in left if parts[0] == "runs"] == [("airflow.log",)]
        written = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert not [file for file in written if variables["AWS_SECRET_ACCESS_KEY"].encode() in file.read_bytes()]
