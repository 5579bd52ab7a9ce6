"""Spark, Flink and a job on Kafka catch up, run for long and work on less of a CPU; nothing of a killed run stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.engines.cgroup import quota_parent
from streamgauge.bench.measurements.catchup.record import CatchupRun
from streamgauge.bench.measurements.scaling.record import ScalingRun
from streamgauge.bench.measurements.soak.record import SoakRun
from tests.e2e.processes import QUICK, left_behind, processes_of, start, wait_for, write_config
from tests.e2e.test_recovery import LATE, PATIENT, WINDOWS, job_of, measured
from tests.engines.test_quota import no_quota
from tests.measure.conftest import _alone_and_quick
from tests.told import known

__all__ = ["_alone_and_quick"]
pytestmark = [pytest.mark.e2e, pytest.mark.prove, pytest.mark.timeout(600), pytest.mark.usefixtures("flink_is_made")]
ENGINES = [{"engine": "spark", "memory": "1g"}, {"engine": "flink", "memory": "1g"}]
CATCHUP = {"catchup": {"rate": 1000, "minutes": 0.2, "repeats": 1}}
SOAK = {"soak": {"rate": 1000, "minutes": 0.5, "every_seconds": 0.5}}
SCALING: dict[str, Any] = {
    "search": {"max_age": "3s", "warmup_seconds": 3, "window_seconds": 0.5, "proof_steps": 0, "max_rate": 100_000},
    "replay": {**PATIENT, "densify": 8},
    "scaling": {"quotas": [0.5, 1], "blocks": 2},
}
both = pytest.mark.parametrize("system", ENGINES, ids=lambda one: one["engine"])
by_quota = pytest.mark.usefixtures("has_quotas")


@pytest.fixture
def has_quotas() -> None:
    if why := no_quota():
        pytest.fail(why, pytrace=False)


def assert_live(cell: Path) -> CatchupRun:
    run = CatchupRun.read(cell / "catchup.json")
    assert (run.void, run.correct) == ("", True), run.sentence
    assert run.live_s is not None, run.sentence
    assert run.taken_per_s is not None
    assert run.taken_per_s.value > run.rate_events_per_s
    return run


@both
def test_an_engine_is_live_after_a_backlog_with_late_events(tmp_path: Path, system: dict[str, Any]) -> None:
    run = assert_live(measured(tmp_path, system, WINDOWS, "catchup", ms=LATE, **CATCHUP))
    assert {"resident_memory", "state_bytes"} <= {one.name for one in run.peaks}
    assert run.dropped is not None


def test_a_job_is_live_after_a_backlog(tmp_path: Path, broker: Broker) -> None:
    assert_live(measured(tmp_path, job_of(broker, "static"), {"query": "passthrough"}, "catchup", **CATCHUP))


@both
def test_an_engine_carries_its_rate_and_neither_age_nor_files_grow(tmp_path: Path, system: dict[str, Any]) -> None:
    run = soaked(measured(tmp_path, system, WINDOWS, "soak", ms=LATE, **SOAK))
    assert {"state_bytes", "heap_after_collection"} <= {one.name for one in run.series}


def test_a_job_carries_its_rate_and_neither_age_nor_files_grow(tmp_path: Path, broker: Broker) -> None:
    run = soaked(measured(tmp_path, job_of(broker, "static"), {"query": "passthrough"}, "soak", **SOAK))
    assert {"state_bytes", "heap_after_collection"} <= set(run.unknown)


def soaked(cell: Path) -> SoakRun:
    run = SoakRun.read(cell / "soak.json")
    assert (run.valid, run.correct) == (True, True), run.reason
    assert run.offered == pytest.approx(30_000, rel=0.1)
    kinds = {one.name: one.kind for one in run.series}
    assert {"age", "event_latency_p99", "resident_memory", "open_files", "disk"} <= set(kinds)
    assert "growing" not in (kinds["age"], kinds["open_files"])
    return run


@by_quota
@both
def test_an_engine_carries_less_on_half_a_cpu(tmp_path: Path, system: dict[str, Any]) -> None:
    assert_less(measured(tmp_path, system, WINDOWS, "search", "scaling", **SCALING))


@by_quota
def test_a_job_carries_less_on_a_tenth_of_a_cpu(tmp_path: Path, broker: Broker) -> None:
    """Brokers and publishers have no quota, and may be the limit on more of it."""
    more = {
        "search": {**SCALING["search"], "window_seconds": 1.5},
        "scaling": {"quotas": [0.1, 0.5], "blocks": 2},
    }
    job = job_of(broker, "static")
    assert_less(measured(tmp_path, job, {"query": "passthrough"}, "search", "scaling", replay=PATIENT, **more))


def assert_less(cell: Path) -> None:
    run = ScalingRun.read(cell / "scaling.json")
    less, more = run.points
    assert (len(less.blocks), len(more.blocks)) == (2, 2), (less.reason, more.reason)
    assert known(less.rate_events_per_s) < known(more.rate_events_per_s)
    assert run.refused == "2 sizes were measured, at least 4 are needed"
    assert run.checked is not None
    assert run.checked.correct, run.checked.reason


KILLED = {
    "soak": "{rate: 1000, minutes: 0.4, every_seconds: 0.5}",
    "scaling": "{quotas: [0.5, 1], blocks: 3}",
}


@by_quota
@pytest.mark.parametrize("section", KILLED)
def test_what_a_killed_command_measured_of_flink_leaves_nothing_and_is_measured_again(
    tmp_path: Path, section: str
) -> None:
    """SIGKILL hits the process that a user has started, and no other."""
    artifacts, log = tmp_path / "artifacts", tmp_path / "log"
    file = write_config(tmp_path / "killed.yaml", ["{name: ordered, target_percent: 0}"])
    file.write_text(f"{file.read_text()}{FLINK}{section}: {KILLED[section]}\n")
    cell = artifacts / "runs" / "r" / "cells" / "ordered.all.flink"
    command = ["run", str(file), "--only", section, "--artifacts", str(artifacts)]
    where = {"STREAMGAUGE_ARTIFACTS": str(artifacts), "STREAMGAUGE_LOCKS": str(tmp_path), **QUICK}

    def groups() -> list[Path]:
        """Returns those with a quota, below that of the tests."""
        ours = set(map(str, processes_of(artifacts)))
        return [one for one in quota_parent().rglob("streamgauge-*-*") if one.name.split("-")[1] in ours]

    killed, quotas = start([*command, "--run", "r"], log, **where), list[Path]()
    begun = groups if section == "scaling" else lambda: [*cell.glob("work/trial-*")]
    try:
        wait_for(lambda: begun() or killed.poll() is not None, section, 300)
        assert killed.poll() is None, log.read_text()
        assert len(left_behind(artifacts)) > 2, "Flink runs"
        quotas = groups()
    finally:
        killed.kill()
        killed.wait()
    wait_for(lambda: not left_behind(artifacts), "end of all its processes", 60)
    # the guard of a killed command ends its processes first
    wait_for(lambda: not any(one.exists() for one in quotas), "removal of its control groups", 10)
    assert not (cell / f"{section}.json").exists()
    assert start([*command, "--resume", "r"], log, **where).wait(300) == 0, log.read_text()
    assert not left_behind(artifacts)
    metrics = [one["metric"] for one in read_jsonl(artifacts / "runs" / "r" / "results.jsonl")]
    assert len(metrics) == len(set(metrics))
    if section == "scaling":
        points = ScalingRun.read(cell / "scaling.json").points
        assert [len(one.blocks) for one in points] == [3, 3], [one.reason for one in points]
        assert quotas
    else:
        run = SoakRun.read(cell / "soak.json")
        assert (run.valid, run.correct, len(metrics)) == (True, True, len(run.series)), run.reason


FLINK = """
workloads: [{name: all, query: passthrough}]
systems: [{name: flink, engine: flink, memory: 1g}]
replay: {max_memory_mb: 256, max_slip: 20s, max_clock_offset: 20s}
search: {max_age: 3s, warmup_seconds: 3, window_seconds: 1, proof_steps: 0, yardstick: false}
"""
