"""Real engines are killed in the middle of a trial, and go on from their checkpoints: no answer is lost or doubled."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Suffered
from tests.e2e.test_kafka import JOB, SQL
from tests.measure.benches import CELL, write_bench
from tests.measure.conftest import _alone_and_quick

__all__ = ["_alone_and_quick"]
pytestmark = [pytest.mark.e2e, pytest.mark.prove, pytest.mark.timeout(600)]
WINDOWS = {"query": "windowed_aggregation", "key": "carrier", "value": "flight", "window": "1s", "watermark": "500ms"}
FAULTS = ["kill", "restart", "cut", "rescale"]
#: of these event times, in ms, every fifth comes 0.6 to 2.5 s late
LATE = [ms - 600 - ms * 37 % 1900 if ms % 5 == 0 and ms > 2500 else ms for ms in range(20_000)]
#: everything runs on one host here, which also starts the engines: the driver may be late
PATIENT = {"max_memory_mb": 256, "max_slip": "20s", "max_clock_offset": "20s"}


def measured(place: Path, system: dict[str, Any], workload: dict[str, Any], *stages: str, **more: Any) -> Path:
    """Measures one stage after the other; returns the directory of the cell."""
    cell = {"systems": [{"name": "known", **system}], "workloads": [{"name": "all", **workload}]}
    usual = {"replay": PATIENT, "search": {"max_age": "3s", "warmup_seconds": 3}}
    bench = write_bench(place, **{**cell, **usual, **more})
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    for stage in stages:
        measure(stage, cell_run)
    return cell_run.directory


def suffered(
    place: Path, system: dict[str, Any], section: dict[str, Any], workload: dict[str, Any], ms: list[int] | None = None
) -> list[Suffered]:
    section = {"rate": 1000, "seconds": 80, "repeats": 1, "cut_seconds": 6, **section}
    cell = measured(place, system, workload, "recovery", ms=ms, recovery=section)
    return list(RecoveryRun.read(cell / "recovery.json").faults)


def assert_whole(one: Suffered) -> None:
    assert one.trials, one.unmeasurable
    for trial in one.trials:
        whole = trial.valid, trial.correct, trial.lost, trial.doubled, trial.wrong
        assert whole == (True, True, 0, 0, ""), (one.sentence, trial.reason)
        assert trial.taken_again_s is not None
        assert trial.back_s is not None
        assert trial.peak_age_s is not None
        assert trial.taken_again_s <= trial.back_s


def test_spark_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    kill, restart, cut, rescale = suffered(tmp_path, {"engine": "spark", "memory": "1g"}, {"faults": FAULTS}, WINDOWS)
    assert restart.unmeasurable == "its executors run within its driver"
    for one in (kill, cut, rescale):
        assert_whole(one)
    assert kill.peak_age_s is not None
    assert kill.peak_age_s > 1, "a JVM takes longer to start"


def test_spark_goes_on_with_a_new_executor_for_one_that_was_killed(tmp_path: Path) -> None:
    system = {"engine": "spark", "memory": "1g", "master": "local-cluster[1,1,1024]"}
    [restart] = suffered(tmp_path, system, {"faults": ["restart"]}, WINDOWS, LATE)
    assert_whole(restart)


@pytest.mark.usefixtures("flink_is_made")
def test_flink_goes_on_from_its_checkpoint_and_judges_late_events_as_before(tmp_path: Path) -> None:
    for one in suffered(tmp_path, {"engine": "flink", "memory": "1g"}, {"faults": FAULTS}, WINDOWS, LATE):
        assert_whole(one)


@pytest.mark.usefixtures("flink_is_made")
def test_flink_reads_more_again_after_a_longer_interval_of_checkpoints(tmp_path: Path) -> None:
    section = {"faults": ["kill"], "checkpoint_intervals": ["200ms", "10s"], "repeats": 2}
    often, seldom = suffered(tmp_path, {"engine": "flink", "memory": "1g"}, section, WINDOWS)
    for one in (often, seldom):
        assert_whole(one)
        assert one.calm_cpu_us is not None
        assert one.calm_age_s is not None
    assert (often.read_again or 0) < (seldom.read_again or 0)


def job_of(broker: Broker, fault: str) -> dict[str, Any]:
    """A job that passes flights on, whose member of the group keeps its place when it is started again."""
    command = [sys.executable, str(JOB), "{bootstrap}", "{input}", "{output}", "{group}", fault]
    answer = {"sql": SQL, "key": ["at", "flight"], "quiet": "2s"}
    return {"engine": "job", "bootstrap": broker.bootstrap, "command": command, "answer": answer}


def test_a_job_goes_on_from_its_own_offsets(tmp_path: Path, broker: Broker) -> None:
    kill, restart, cut = suffered(tmp_path, job_of(broker, "static"), {"seconds": 40}, {"query": "passthrough"})
    assert "command" in restart.unmeasurable
    assert "broker" in cut.unmeasurable
    [trial] = kill.trials
    assert (trial.valid, trial.correct, trial.wrong) == (True, True, ""), kill.sentence


def test_a_job_takes_the_faults_whose_commands_it_declares(tmp_path: Path, broker: Broker) -> None:
    """A stopped worker reaches its broker as little as one whose network is cut."""

    def send(signal: str) -> list[str]:
        return ["pkill", signal, "-f", "{group} worker"]

    job = job_of(broker, "supervises")
    again = [*job["command"][:-1], "static"]
    job["faults"] = {"restart": send("-KILL"), "cut": send("-STOP"), "heal": send("-CONT"), "start": again}
    job["faults"]["kill"] = ["pkill", "-KILL", "-f", "{group}"]
    kill, restart, cut, rescale = suffered(
        tmp_path, job, {"seconds": 30, "cut_seconds": 4, "faults": FAULTS}, {"query": "passthrough"}
    )
    assert rescale.unmeasurable.endswith("is declared by faults.rescale")
    for one in (kill, restart, cut):
        [trial] = one.trials
        assert (trial.valid, trial.correct, trial.wrong) == (True, True, ""), (one.sentence, trial.reason)
        assert trial.back_s is not None
    assert cut.trials[0].taken_again_s == pytest.approx(4, abs=1.5)


def test_a_job_that_commits_before_it_answers_is_caught(tmp_path: Path, broker: Broker) -> None:
    """Three kills hardly miss the 0.3 s of each 0.35 s in which it has committed and not answered."""
    section = {"seconds": 30, "repeats": 3, "faults": ["kill"]}
    [kill] = suffered(tmp_path, job_of(broker, "commits first"), section, {"query": "passthrough"})
    print(f"found in {len(kill.wrong)} of {len(kill.trials)} kills: {kill.answers}")
    assert len(kill.wrong) >= 1, kill.sentence
    assert all("missing" in one.wrong for one in kill.wrong)


def test_a_job_that_answers_again_what_it_had_not_committed_is_counted(tmp_path: Path, broker: Broker) -> None:
    """Kills within the 0.3 s between its answers and its commit double them, and none is wrong: at least once."""
    section = {"seconds": 30, "repeats": 3, "faults": ["kill"]}
    [kill] = suffered(tmp_path, job_of(broker, "commits late"), section, {"query": "passthrough"})
    print(f"found in {sum(bool(one.doubled) for one in kill.trials)} of {len(kill.trials)} kills: {kill.answers}")
    assert [(one.correct, one.lost) for one in kill.trials] == [(True, 0)] * 3, kill.sentence
    assert sum(one.doubled or 0 for one in kill.trials) > 0
    assert all(one.by_key for one in kill.trials)
