"""A run by the command on an S3-compatible store, interrupted and killed. A whole run on one: test_service.py."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from tests.e2e.processes import KNOWN_CELL, left_behind, start, wait_for, write_config
from tests.stores import object_store

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def interrupted(
    arguments: list[str],
    log: Path,
    folder: Path,
    variables: dict[str, str],
    when: Callable[[], object],
    every: float,
    number: signal.Signals,
) -> str:
    """Sends a run a signal at its moment, for which it looks every so many seconds; returns what it printed.

    A look into the store takes 0.1 s of CPU.
    """
    process = start(arguments, log, ["env", "-C", str(folder)], **variables)
    try:
        wait_for(lambda: when() or process.poll() is not None, "the moment", 400, every)
        process.send_signal(number)
        assert process.wait(timeout=60) == (130 if number == signal.SIGINT else -number), log.read_text()
    finally:
        process.kill()
    return log.read_text()


def test_an_interrupted_and_a_killed_run_leave_nothing_half_built_and_goes_on_where_it_was(tmp_path: Path) -> None:
    config = write_config(tmp_path / "solo.yaml", ["{name: calm, target_percent: 0}"])
    config.write_text(config.read_text() + KNOWN_CELL + "latency: {fractions: [0.5], seconds: 1}\n")
    log = tmp_path / "run.log"

    def begun_to_read() -> bool:
        return "started ingest" in log.read_text()

    with object_store("the-store-s-own-secret") as (there, variables):
        store = Store(there)

        def windows() -> list[dict[str, Any]]:
            files = [run / "cells" / "calm.all.known" / "windows.jsonl" for run in store.runs()]
            return [window for file in files if file.exists() for window in read_jsonl(file)]

        begun = ["run", str(config), "--artifacts", there]
        said = interrupted(
            begun, log, tmp_path, variables, lambda: "started ingest" in log.read_text(), 0.2, signal.SIGINT
        )
        [name] = re.findall(r"^run (\S+):", said, re.MULTILINE)
        again = [*begun, "--resume", name]
        assert f"to go on: streamgauge {' '.join(again)}" in said.splitlines()
        assert left_behind(str(store.root)) == []
        [run] = store.runs()
        assert [stage.stage for stage in RunLog(run).stages()] == ["ingest"]
        built = (store.root / "data").changes()  # type: ignore[attr-defined]
        assert [file for file in built if file.name == "manifest.json"] == []
        here = tmp_path / "artifacts"
        left = [file.relative_to(here).parts[3:] for file in here.rglob("*") if file.is_file()]
        assert {parts[0] for parts in left} == {"airflow", "runs"}
        assert sorted(parts[2:] for parts in left if parts[0] == "runs") == [(".claim.json",), ("airflow.log",)]
        written = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert not [file for file in written if variables["AWS_SECRET_ACCESS_KEY"].encode() in file.read_bytes()]

        interrupted(again, log, tmp_path, variables, windows, 2, signal.SIGKILL)
        wait_for(lambda: not left_behind(str(store.root)), "end of Airflow and the stage of the killed run", 30)
        before = windows()

        process = start(again, log, ["env", "-C", str(tmp_path)], **variables)
        assert process.wait(timeout=400) == 0, log.read_text()
        assert windows()[: len(before)] == before, "what was measured stays"
        assert [path.name for path in store.runs()] == [name], "it is one run"
        built = (store.root / "data").changes()  # type: ignore[attr-defined]
        kinds = Counter(
            file.relative_to(store.root / "data").parts[0] for file in built if file.name == "manifest.json"
        )
        # each is built once: the manifest in its folder, and the published one
        assert kinds == dict.fromkeys(("events", "profile", "stream", "validation"), 2)
        last = {stage.stage: stage.state for stage in RunLog(run).stages()}
        assert last == dict.fromkeys(
            ("ingest", "analyze", "generate", "validate", "search", "latency", "report"), "done"
        )
        figures = Counter((one.metric, one.experiment, one.workload, one.system) for one in results.read(run))
        assert set(figures.values()) == {1}, "one set of results"
        assert ("sustainable_rate_events_per_s", "calm", "all", "known") in figures
