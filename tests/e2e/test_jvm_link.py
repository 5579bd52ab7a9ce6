"""Spark with its link in the JVM: DuckDB's answers in micro-batches and in Real-time Mode; what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.config import Replay, Workload, parse
from streamgauge.driver.fleet import Fleet
from streamgauge.driver.observed import Bounds, TrialRun
from streamgauge.driver.system import SystemUnderTest, make_system
from streamgauge.driver.trial import run_trial
from streamgauge.engines.flink.settings import FlinkSettings
from streamgauge.engines.known.settings import KnownSettings
from streamgauge.engines.spark import settings
from streamgauge.engines.spark.settings import JAR, SparkSettings
from streamgauge.oracle.check import Check, check
from streamgauge.workloads import Spec
from tests.driver.conftest import COLUMNS
from tests.e2e.during import DuringATrial, our_processes
from tests.e2e.streams import late_stream, offered

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
built = pytest.mark.skipif(not JAR.exists(), reason="`make jvm-link` was not run")
TUMBLING = {"query": "windowed_aggregation", "window": "1s", "watermark": "1s"}
PATIENT = Bounds(max_slip_s=10, drain_s=120)


def workload(**given: Any) -> Workload:
    return Workload.model_validate({"name": "w", "key": "carrier", "value": "flight"} | given)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return late_stream(tmp_path_factory.mktemp("stream"))


@pytest.fixture(scope="module")
def fleet(stream: Path) -> Iterator[Fleet]:
    with Fleet(stream, Replay(partitions=2), tick="ns", columns=COLUMNS) as made:
        yield made


def started(work: Path, **given: Any) -> SystemUnderTest:
    made = make_system(SparkSettings(name="s", memory="1g", link="jvm", **given), work)
    made.start()
    return made


def trial(system: SystemUnderTest, fleet: Fleet, asked: Workload, work: Path, **more: Any) -> TrialRun:
    fleet.start()
    beyond_us = Spec.of(asked, COLUMNS).beyond_us
    return run_trial(
        system, fleet, asked, rate=10_000, seconds=2, work=work, bounds=PATIENT, beyond_us=beyond_us, **more
    )


def checked(run: TrialRun, stream: Path, asked: Workload) -> Check:
    assert run.observation.invalid is None
    assert run.details["drained"]
    assert run.observation.offered == run.observation.taken == 20_000
    rows = offered(run, stream)
    return check(rows, run.details["system"], run.details["epochs"], Spec.of(asked, COLUMNS))


@built
def test_micro_batches_answer_as_duckdb_does(fleet: Fleet, stream: Path, tmp_path: Path) -> None:
    system = started(tmp_path / "system", batch_rows=2_000)
    try:
        for number, asked in enumerate((workload(query="passthrough"), workload(**TUMBLING))):
            run = trial(system, fleet, asked, tmp_path / str(number))
            found = checked(run, stream, asked)
            assert (found.wrong, found.watermarks_checked) == (None, True)
            assert found.reported_rows == found.expected_rows > 20
            assert (found.reported_late > 20) is (number == 1)
            assert max(batch["rows"] for batch in run.details["system"]["batches"]) <= 2_000
    finally:
        system.stop()


@built
def test_an_executor_killed_in_mid_trial_loses_and_doubles_nothing(fleet: Fleet, stream: Path, tmp_path: Path) -> None:
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf = {**local, "spark.executor.memory": "600m", "spark.sql.shuffle.partitions": "1"}
    system = started(tmp_path / "system", batch_rows=2_000, master="local-cluster[1,1,1024]", conf=conf)
    killed: list[int] = []

    def kill() -> None:
        [executor] = our_processes("CoarseGrainedExecutorBackend")
        executor.kill()
        killed.append(executor.pid)

    try:
        during, asked = DuringATrial(kill, 0.7), workload(**TUMBLING)
        found = checked(trial(system, fleet, asked, tmp_path / "killed", progress=during), stream, asked)
        during.done()
        assert (found.wrong, found.watermarks_checked) == (None, True)
        assert found.reported_rows == found.expected_rows > 20
        [executor] = our_processes("CoarseGrainedExecutorBackend")
        assert killed != [executor.pid]
        assert len(killed) == 1
    finally:
        system.stop()


@built
def test_real_time_mode_is_measured_like_any_other_and_refuses_with_spark_s_own_words(
    fleet: Fleet, stream: Path, tmp_path: Path
) -> None:
    slots = {"master": "local[3]", "conf": {"spark.sql.shuffle.partitions": "1"}}
    system = started(tmp_path / "system", mode="real-time", state_store="rocksdb", **slots)
    try:
        asked = workload(query="passthrough")
        run = trial(system, fleet, asked, tmp_path / "passthrough")
        found = checked(run, stream, asked)
        assert (found.wrong, found.reported_rows) == (None, 20_000)
        assert "batches" not in run.details["system"]
        for query, words in (
            ("deduplication", "StreamingDeduplicateWithinWatermarkExec"),
            ("sessions", "session window"),
        ):
            said = rf"systems\.s: unsupported: {query} in mode real-time: \[STREAMING_.*{words}"
            with pytest.raises(UserError, match=said):
                trial(system, fleet, workload(query=query, watermark="10s"), tmp_path / query)
    finally:
        system.stop()


def test_what_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "JAR", tmp_path / "none.jar")
    with pytest.raises(UserError, match=r"systems\.s\.link: found jvm, which was not built; `make jvm-link` builds it"):
        make_system(SparkSettings(name="s", link="jvm"), tmp_path)
    for model, name in ((FlinkSettings, "flink"), (KnownSettings, "known")):
        with pytest.raises(UserError, match=r"systems\.s: link: .*") as refused:
            parse(model, {"name": "s", "engine": name, "link": "jvm"}, "systems.s")
        assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(UserError, match="mode: found real-time, which needs link: jvm and state_store: rocksdb"):
        parse(SparkSettings, {"name": "s", "mode": "real-time"}, "systems.s")
