"""Spark with its link in the JVM: DuckDB's answers in micro-batches and in Real-time Mode; what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.answers import wire_suite
from streamgauge.bench.answers.finite_stream import make_events, wanted_stream
from streamgauge.bench.answers.nexmark_suite import chosen
from streamgauge.bench.answers.systems import named
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.system import Adapter, make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.flink.settings import FlinkSettings
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.engines.spark import settings
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.oracle.check import Check, check
from streamgauge.bench.workloads import Spec
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Replay, Workload, parse
from tests.driver.conftest import COLUMNS
from tests.e2e.during import DuringATrial, our_processes
from tests.e2e.streams import late_stream, offered
from tests.told import batches, known

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
built = pytest.mark.usefixtures("jvm_link_is_made")
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


def started(work: Path, **given: Any) -> Adapter:
    made = make_system(SparkSettings(name="s", memory="1g", link="jvm", **given), work)
    made.start()
    return made


def trial(system: Adapter, fleet: Fleet, asked: Workload, work: Path, **more: Any) -> TrialRun:
    fleet.start()
    return run_trial(system, fleet, TrialRequest(asked, work, 10_000, 2, PATIENT, **more))


def checked(run: TrialRun, stream: Path, asked: Workload) -> Check:
    assert run.observation.invalid is None
    assert run.details["drained"]
    assert run.observation.offered == run.observation.taken == 20_000
    rows = offered(run, stream)
    return check(rows, run.details["system"], run.details["epochs"], Spec.of(asked, COLUMNS), run.details["rules"])


@built
def test_micro_batches_answer_as_duckdb_does(fleet: Fleet, stream: Path, tmp_path: Path) -> None:
    system = started(tmp_path / "system", batch_rows=2_000)
    try:
        for number, asked in enumerate((workload(query="passthrough"), workload(**TUMBLING))):
            run = trial(system, fleet, asked, tmp_path / str(number))
            found = checked(run, stream, asked)
            assert (found.wrong, found.watermarks_checked) == (None, True)
            assert found.reported_rows == found.expected_rows > 20
            assert (known(found.reported_late) > 20) is (number == 1)
            assert max(batch["rows"] for batch in batches(run.details["system"])) <= 2_000
    finally:
        system.stop()


@built
@pytest.mark.prove
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


@pytest.fixture(scope="module")
def real_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapter]:
    with wire_suite.started(named("spark-real-time"), tmp_path_factory.mktemp("real-time")) as made:
        yield made


@built
def test_real_time_mode_is_measured_like_any_other_and_refuses_with_spark_s_own_words(
    real_time: Adapter, fleet: Fleet, stream: Path, tmp_path: Path
) -> None:
    asked = workload(query="passthrough")
    run = trial(real_time, fleet, asked, tmp_path / "passthrough")
    found = checked(run, stream, asked)
    assert (found.wrong, found.reported_rows) == (None, 20_000)
    assert "batches" not in run.details["system"]
    for query, words in (
        ("deduplication", "StreamingDeduplicateWithinWatermarkExec"),
        ("sessions", "session window"),
    ):
        said = rf"systems\.spark-real-time: unsupported: {query} in mode real-time: \[STREAMING_.*{words}"
        with pytest.raises(UserError, match=said):
            trial(real_time, fleet, workload(query=query, watermark="10s"), tmp_path / query)


@built
def test_real_time_mode_is_asked_the_suite_over_the_wire(real_time: Adapter, tmp_path: Path) -> None:
    """A query is right, unchecked where it emits running answers, or refused; a rule that needs rows is no obstacle."""
    events = make_events(Store(tmp_path / "store"), wanted_stream(1000, 1, 20.0))
    asked = chosen("q2,q3,q16,q17")
    found = {record.query: record for record in wire_suite.run_over_wire(real_time, events, asked, tmp_path / "asked")}
    bids = [row for row in events.rows.to_pylist() if row["kind"] == "bid"]
    assert (found["q2"].status, found["q2"].rows) == ("correct", sum(bid["auction"] % 123 == 0 for bid in bids))
    assert (found["q16"].status, found["q16"].rows) == ("unchecked", len(bids))
    assert found["q16"].why == "it emits running answers instead of final ones"
    assert (found["q3"].status, found["q17"].status) == ("unsupported", "unsupported")
    assert str(found["q3"].why).startswith("[STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST]")
    assert str(found["q17"].why).startswith("[STDS_FAILED_TO_READ_OPERATOR_METADATA]")
    assert str(tmp_path) not in str(found["q17"].why)


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
