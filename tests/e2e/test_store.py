"""A run by the command on an S3-compatible store, interrupted; and, by `make prove`, killed and brought to its end.

A killed night on a disk: test_airflow.py. A killed search: test_faults.py. A killed builder on a store:
tests/spark/test_object_store.py. A whole run on one: test_service.py.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.jsonl import read_jsonl
from streamgauge.base.places import Remote
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from tests.e2e.processes import KNOWN_CELL, left_behind, start, wait_for, write_config
from tests.stores import object_store

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@dataclass
class OnStore:
    """A benchmark whose artifacts lie on a store, and its command."""

    place: Path
    root: str
    variables: dict[str, str]

    def __post_init__(self) -> None:
        self.log, self.store = self.place / "run.log", Store(self.root)
        config = write_config(self.place / "solo.yaml", ["{name: calm, target_percent: 0}"])
        config.write_text(config.read_text() + KNOWN_CELL + "latency: {fractions: [0.5], seconds: 1}\n")
        self.command = ["run", str(config), "--artifacts", self.root]

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        own = self.variables | {"STREAMGAUGE_LOCKS": str(self.place)}  # this host may measure something else meanwhile
        return start([*self.command, *more], self.log, ["env", "-C", str(self.place)], **own)

    def interrupted(self, when: Callable[[], object], every: float, number: signal.Signals) -> str:
        """Sends a run a signal at its moment, for which it looks every so many seconds; returns its name.

        A look into the store takes 0.1 s of CPU.
        """
        process = self.start()
        try:
            wait_for(lambda: when() or process.poll() is not None, "the moment", 400, every)
            process.send_signal(number)
            assert process.wait(timeout=60) == (130 if number == signal.SIGINT else -number), self.log.read_text()
        finally:
            process.kill()
        [name] = re.findall(r"^run (\S+):", self.log.read_text(), re.MULTILINE)
        return str(name)

    def manifests(self) -> Counter[str]:
        """Number of manifests by kind of artifact."""
        data = self.store.root / "data"
        assert isinstance(data, Remote)
        return Counter(file.relative_to(data).parts[0] for file in data.changes() if file.name == "manifest.json")


@pytest.fixture
def on_store(tmp_path: Path) -> Iterator[OnStore]:
    with object_store("the-store-s-own-secret") as (there, variables):
        yield OnStore(tmp_path, there, variables)


def test_an_interrupted_run_leaves_nothing_half_built_and_says_how_to_go_on(on_store: OnStore) -> None:
    log, here = on_store.log, on_store.place / "artifacts"
    name = on_store.interrupted(lambda: "started ingest" in log.read_text(), 0.2, signal.SIGINT)
    again = " ".join([*on_store.command, "--resume", name])
    assert f"to go on: streamgauge {again}" in log.read_text().splitlines()
    assert left_behind(str(on_store.store.root)) == []
    [run] = on_store.store.runs()
    assert [stage.stage for stage in RunLog(run).stages()] == ["ingest"]
    assert on_store.manifests() == {}
    left = [file.relative_to(here).parts[3:] for file in here.rglob("*") if file.is_file()]
    assert {parts[0] for parts in left} == {"airflow", "runs"}
    assert sorted(parts[2:] for parts in left if parts[0] == "runs") == [("airflow.log",)]
    secret = on_store.variables["AWS_SECRET_ACCESS_KEY"].encode()
    written = [file for file in on_store.place.rglob("*") if file.is_file()]
    assert not [file for file in written if secret in file.read_bytes()]


@pytest.mark.prove
def test_a_killed_run_goes_on_where_it_was(on_store: OnStore) -> None:
    store = on_store.store

    def windows() -> list[dict[str, Any]]:
        files = [run / "cells" / "calm.all.known" / "windows.jsonl" for run in store.runs()]
        return [window for file in files if file.exists() for window in read_jsonl(file)]

    name = on_store.interrupted(windows, 2, signal.SIGKILL)
    wait_for(lambda: not left_behind(str(store.root)), "end of Airflow and the stage of the killed run", 30)
    before = windows()
    assert on_store.start("--resume", name).wait(timeout=400) == 0, on_store.log.read_text()
    assert windows()[: len(before)] == before, "what was measured stays"
    [run] = store.runs()
    assert run.name == name, "it is one run"
    # each is built once: the manifest in its folder, and the published one
    assert on_store.manifests() == dict.fromkeys(("events", "profile", "stream", "validation"), 2)
    last = {stage.stage: stage.state for stage in RunLog(run).stages()}
    assert last == dict.fromkeys(("ingest", "analyze", "generate", "validate", "search", "latency", "report"), "done")
    figures = Counter((one.metric, one.experiment, one.workload, one.system) for one in results.read(run))
    assert set(figures.values()) == {1}, "one set of results"
    assert ("sustainable_rate_events_per_s", "calm", "all", "known") in figures
