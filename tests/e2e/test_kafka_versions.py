"""A job on Kafka in a search, and two versions of it in a release check and in a night."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.latency import stage as latency
from streamgauge.bench.measurements.search import stage as search_stage
from streamgauge.config import Cell
from tests.cli.test_cli import call
from tests.e2e.test_kafka import JOB, SQL, topics
from tests.judge.nights import P50, PLAN, night_of, write_nights
from tests.measure.benches import CELL, Bench, write_bench
from tests.measure.conftest import _alone_and_quick

__all__ = ["_alone_and_quick"]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def bench_of(place: Path, broker: Broker, systems: dict[str, str], **more: Any) -> Bench:
    """systems: name -> version of the job."""
    command = [sys.executable, str(JOB), "{bootstrap}", "{input}", "{output}", "{group}", "{version}"]
    answer = {"sql": SQL, "key": ["at", "flight"], "quiet": "200ms"}
    job = {"engine": "job", "bootstrap": broker.bootstrap, "command": command, "answer": answer, "warm": "0s"}
    made = [{"name": name, "version": version, **job} for name, version in systems.items()]
    return write_bench(place, systems=made, replay={"max_memory_mb": 64, "max_slip": "20s"}, **more)


@pytest.mark.prove
@pytest.mark.parametrize(("candidate", "verdict"), [("1.1", "go"), ("1.2", "no-go")])
def test_a_slower_version_of_a_job_is_no_go_and_an_equal_one_go(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidate: str, verdict: str
) -> None:
    if verdict == "no-go":  # the other one warms each job up
        monkeypatch.setattr(ReadyCell, "warm_up", lambda *_, **__: [])
    plan = {"rate": 500, "seconds": 1, "warmup_seconds": 0.1, "reruns": 1, "queries": []}
    plan |= {"tolerance": {"processing_latency_ms_p50": 0.6}}
    bench = bench_of(tmp_path, broker, {"old": "1.0", "new": candidate}, release=plan)
    sides = ("--baseline", "old", "--candidate", "new", "--json")
    answer = call("release-check", bench.file, *sides, "--artifacts", bench.store.root)
    found = json.loads(answer.out)
    assert (found["verdict"], answer.code) == (verdict, ["go", "no-go"].index(verdict)), found["line"]
    assert found["versions"] == {"old": {"job": "1.0"}, "new": {"job": candidate}}
    if verdict == "no-go":
        assert found["reasons"][0]["why"].startswith("slower by ")


@pytest.mark.prove
def test_a_night_measures_both_versions_again_and_confirms_the_slower_one(broker: Broker, tmp_path: Path) -> None:
    plan = PLAN | {"latency": {"fractions": [0.5], "seconds": 1}}
    before = bench_of(tmp_path, broker, {CELL.system: "1.0"}, **plan)
    systems = tuple(system.model_copy(update={"version": "1.2"}) for system in before.benchmark.systems)
    after = Bench(before.file, before.benchmark.model_copy(update={"systems": systems}), before.store)
    write_nights(after, 200.0, 2.5, before)
    (line,) = night_of(after).judge()
    assert (line.state, line.what) == ("regression", f"b e all {CELL.system} streaming {P50}")
    assert line.said.startswith("+150.0 % since 2026-03-21; rerun against the settings of n19: +")
    assert topics(broker) == set()


def test_a_search_and_its_latency_tell_the_version_that_they_measured(broker: Broker, tmp_path: Path) -> None:
    search = {"max_age": "3s", "warmup_seconds": 1, "window_seconds": 0.5, "recovery_seconds": 4, "proof_steps": 1}
    search |= {"margin": 0.4, "processes": 1}
    bench = bench_of(
        tmp_path, broker, {"mine": "1.0"}, search=search, latency={"fractions": [0.5], "seconds": 1.5}
    )  # fmt: skip
    cell, run = Cell(experiment="e", workload="all", system="mine"), bench.store.run("r")
    cell_run = CellRun(bench.benchmark, bench.store, cell, run)
    found = search_stage.run(cell_run)
    assert (found.sustainable_rate_events_per_s or 0) > 100
    assert found.correct is True
    assert found.software == {"job": "1.0"}
    (told,) = latency.run(cell_run)
    assert (told.correct, told.software) == (True, {"job": "1.0"})
    assert {record["software"]["job"] for record in read_jsonl(run / "results.jsonl")} == {"1.0"}
    assert topics(broker) == set()
