"""Flink as a system under test: its answers are DuckDB's by its own rule, and nothing is lost or doubled by a crash."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.schemas import NEXMARK
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.driver.system import TrialSetup, make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.flink.flink_system import FlinkSystem
from streamgauge.bench.engines.flink.settings import FlinkSettings
from streamgauge.bench.oracle.check import Check, check
from streamgauge.bench.workloads import Spec, find
from streamgauge.config import Nexmark, Replay, Workload
from streamgauge.streams.nexmark.generator import Generator, rows
from tests.driver.conftest import COLUMNS
from tests.driver.proxy import Proxy
from tests.e2e.flink import Proxied, started
from tests.e2e.processes import wait_for
from tests.e2e.streams import late_stream, offered
from tests.told import known

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("flink_is_made"),
]
ABOUT = {"key": "carrier", "value": "flight"}
WORKLOADS = {
    "passthrough": Workload.model_validate({"name": "w", "query": "passthrough", **ABOUT}),
    "tumbling": Workload.model_validate(
        {"name": "w", "query": "windowed_aggregation", "window": "1s", "watermark": "1s", **ABOUT}
    ),
    "sliding": Workload.model_validate(
        {"name": "w", "query": "windowed_aggregation", "window": "3s", "slide": "1s", "watermark": "500ms", **ABOUT}
    ),
}
SQL = Workload.model_validate({"name": "w", "query": "chained_windows", "window": "1s", "watermark": "1s", **ABOUT})
PATIENT = Bounds(max_slip_s=10, drain_s=120)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return late_stream(tmp_path_factory.mktemp("stream"))


@pytest.fixture
def flink(one_flink: Proxied) -> Proxied:
    one_flink.keeps_answer = False
    return one_flink


@pytest.fixture(scope="module")
def fleet(stream: Path) -> Iterator[Fleet]:
    with Fleet(stream, Replay(), tick="ns", columns=COLUMNS) as made:
        yield made


def trial(system: FlinkSystem, fleet: Fleet, name: str, work: Path, *, seconds: float = 4.0, **more: Any) -> TrialRun:
    workload = {**WORKLOADS, "sql": SQL}[name]
    fleet.start()
    return run_trial(system, fleet, TrialRequest(workload, work, 5000, seconds, PATIENT, **more))


def checked(run: TrialRun, stream: Path, name: str) -> Check:
    assert run.observation.invalid is None
    assert run.details["drained"]
    spec = Spec.of({**WORKLOADS, "sql": SQL}[name], COLUMNS)
    return check(offered(run, stream), run.details["system"], run.details["epochs"], spec, run.details["rules"])


@pytest.mark.parametrize(
    "name", ["tumbling", *(pytest.param(name, marks=pytest.mark.prove) for name in ("passthrough", "sliding"))]
)
def test_answers_and_late_events_are_the_oracle_s(
    flink: Proxied, fleet: Fleet, stream: Path, tmp_path: Path, name: str
) -> None:
    run = trial(flink, fleet, name, tmp_path)
    found = checked(run, stream, name)
    assert (found.wrong, found.watermarks_checked) == (None, True)
    assert run.observation.offered == run.observation.taken == 20_000
    assert found.expected_rows == found.reported_rows == run.details["emitted"] > 20
    assert found.expected_late == found.reported_late
    assert (known(found.reported_late) > 100) is (name != "passthrough")
    apart = run.details["outside_event_latency_ns"]["count"]
    assert run.event_latency.count + apart + run.details["negative_latencies"] == found.reported_rows
    assert (run.details["system"]["cpu_seconds"] or 0) > 0

    if name == "tumbling":  # what the engine might claim wrongly is found
        system, rules = run.details["system"], run.details["rules"]
        wrong = copy.deepcopy(system)
        stretches = known(wrong["stretches"])
        middle = stretches[len(stretches) // 2]
        middle["watermark_ms"] = known(middle["watermark_ms"]) + 1
        spec, rows = Spec.of(WORKLOADS[name], COLUMNS), offered(run, stream)
        assert "its rows imply" in str(check(rows, wrong, run.details["epochs"], spec, rules).wrong)
        lost = copy.deepcopy(run.details["epochs"])
        lost[-1]["rows"] -= 1
        assert "rows" in str(check(rows, system, lost, spec, rules).wrong)
        silent = copy.deepcopy(run.details["epochs"])
        for epoch in silent:
            epoch["batch"] = {"late": 0}
        assert str(check(rows, system, silent, spec, rules).wrong).startswith("late events: 0 reported as dropped")


def test_state_in_rocksdb_and_two_queues_give_the_oracle_s_answer(stream: Path, tmp_path: Path) -> None:
    with (
        started(tmp_path / "flink", state_store="rocksdb", conf={"fs.s3a.secret-key": "Mk56secret"}) as flink,
        Fleet(stream, Replay(partitions=2), tick="ns", columns=COLUMNS) as fleet,
    ):
        found = checked(trial(flink, fleet, "tumbling", tmp_path / "work"), stream, "tumbling")
        listed = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
    assert any("TaskManagerRunner" in one for one in listed)
    assert not any("Mk56secret" in one for one in listed), "everybody on a host sees arguments"
    assert (found.wrong, found.watermarks_checked) == (None, True)
    assert found.reported_late == found.expected_late > 100


NEXMARK_QUERIES = {
    "nexmark.q0": {},
    "nexmark.q5": {"window": "2s", "slide": "1s", "watermark": "1s"},
    "nexmark.q7": {"window": "2s", "watermark": "1s"},
    "nexmark.q8": {"window": "5s", "watermark": "1s"},
}


@pytest.fixture(scope="module")
def auctions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nexmark's events, one a millisecond; one in five comes up to five seconds late."""
    place = tmp_path_factory.mktemp("auctions")
    draw = random.Random(5)
    found = rows(Generator(Nexmark(rate=1000)), 0, 20_000, list(NEXMARK))
    times = found["event_time"].to_pylist()
    late = [draw.randrange(5 * 10**9) if draw.random() < 0.2 else 0 for _ in times]
    table = found.append_column("ingestion_time", pa.array([a + b for a, b in zip(times, late, strict=True)]))
    pq.write_table(table.sort_by([("ingestion_time", "ascending"), ("seq", "ascending")]), place / "part-0.parquet")
    manifest = {"files": ["part-0.parquet"], "tick": "ns", "columns": NEXMARK}
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


@pytest.mark.prove
def test_the_auction_s_queries_answer_as_duckdb_does(flink: Proxied, auctions: Path, tmp_path: Path) -> None:
    """Answers of the suite, by late events too, are in test_flink_queries.py."""
    columns = {column: NEXMARK[column] for name in NEXMARK_QUERIES for column in find(name).columns}
    table = load_stream([auctions / "part-0.parquet"], "ns", columns, line=False, max_memory_mb=64, densify=1)
    with Fleet(auctions, Replay(), tick="ns", columns=columns) as fleet:
        for name, windows in NEXMARK_QUERIES.items():
            workload = Workload.model_validate({"name": "w", "query": name, **windows})
            spec = Spec.of(workload, columns)
            run = run_trial(flink, fleet, TrialRequest(workload, tmp_path / name, 5000, 3.5, PATIENT))
            assert run.observation.invalid is None
            counts = [[count - 1 for count in driver["offered"]] for driver in run.details["drivers"]]
            system, rules = run.details["system"], run.details["rules"]
            found = check(offered_rows(table, counts), system, run.details["epochs"], spec, rules)
            assert (name, found.wrong, found.watermarks_checked) == (name, None, True)
            assert found.reported_rows == found.expected_rows > (0 if name == "nexmark.q8" else 5)
            assert found.expected_late == found.reported_late
            assert (found.reported_late > 0) is (name != "nexmark.q0")


def during(action: Callable[[], None]) -> Callable[[list[dict[str, Any]]], None]:
    """Does something once, a second and a half after the trial's start."""
    done: list[float] = []

    def look(seen: list[dict[str, Any]]) -> None:
        if seen[0]["state"] == "started":
            done.append(time.monotonic())
            if done[-1] - done[0] > 1.5 and done[0] > 0:
                done[0] = -1e9
                action()

    return look


@pytest.mark.parametrize(
    "name", ["tumbling", *(pytest.param(name, marks=pytest.mark.prove) for name in ("passthrough", "sql"))]
)
def test_a_killed_task_manager_loses_and_doubles_nothing(
    flink: Proxied, fleet: Fleet, stream: Path, tmp_path: Path, name: str
) -> None:
    killed: list[int] = []

    cluster = known(flink._cluster)

    def kill() -> None:
        for one in cluster.session.processes():
            if "TaskManagerRunner" in " ".join(one.cmdline()):
                killed.append(one.pid)
                one.suspend()
        cluster.vitals("")  # Flink begins a reading of metrics, which the killed one never answers
        time.sleep(0.3)
        flink.strike("restart")

    run = trial(flink, fleet, name, tmp_path, seconds=5, progress=during(kill))
    assert len(killed) == 1
    found = checked(run, stream, name)
    assert (found.wrong, found.expected_rows) == (None, found.reported_rows)
    assert (found.reported_late is None) is (name == "sql")  # Flink's own counter begins anew
    assert run.observation.offered == run.observation.taken == 25_000
    wait_for(lambda: not psutil.pid_exists(killed[0]), "end of the killed one", 10)
    cluster._renew_metrics()


@pytest.mark.prove
def test_a_task_manager_that_dies_long_after_the_start_is_waited_for(
    fleet: Fleet, stream: Path, tmp_path: Path
) -> None:
    """Flink waits for the first ones for `slot.request.timeout`, which is five minutes by default."""
    wait_s = 40.0
    with started(tmp_path / "flink", conf={"slot.request.timeout": f"{wait_s:.0f}s"}) as flink:
        time.sleep(wait_s + 5)
        strike = during(lambda: flink.strike("restart"))
        run = trial(flink, fleet, "tumbling", tmp_path / "trial", seconds=5, progress=strike)
        found = checked(run, stream, "tumbling")
    assert (found.wrong, found.expected_rows) == (None, found.reported_rows)
    assert run.observation.offered == run.observation.taken == 25_000


def test_a_network_that_is_cut_within_an_answer_loses_and_doubles_nothing(
    flink: Proxied, fleet: Fleet, stream: Path, tmp_path: Path
) -> None:
    caught: list[bool] = []

    def cut() -> None:
        proxy.catch()
        caught.append(proxy.caught.wait(30))  # it has begun to read an answer, whose END never comes
        proxy.cut()
        proxy.release()
        proxy.mend()

    with Proxy(fleet.endpoints[0]) as proxy:
        flink.proxy = proxy
        try:
            run = trial(flink, fleet, "passthrough", tmp_path, seconds=5, progress=during(cut))
        finally:
            flink.proxy = None
    assert caught == [True]
    found = checked(run, stream, "passthrough")
    assert (found.wrong, found.reported_rows) == (None, 25_000)


def test_a_driver_that_leaves_ends_the_trial_with_its_reason(flink: Proxied, fleet: Fleet, tmp_path: Path) -> None:
    with Proxy(fleet.endpoints[0]) as proxy:
        flink.proxy = proxy
        try:
            run = trial(flink, fleet, "passthrough", tmp_path, seconds=60, progress=during(proxy.cut))
        finally:
            flink.proxy = None
    assert run.observation.invalid is not None
    assert "\n" not in run.observation.invalid


def test_an_orderly_close_instead_of_end_is_a_failure(flink: Proxied, fleet: Fleet, tmp_path: Path) -> None:
    with Proxy(fleet.endpoints[0]) as proxy:
        flink.proxy = proxy
        try:
            run = trial(flink, fleet, "passthrough", tmp_path, seconds=60, progress=during(proxy.swallow_ends))
        finally:
            flink.proxy = None
    assert "closed the connection" in str(run.observation.invalid)
    assert not run.details.get("drained")


def test_what_flink_is_not_asked_is_one_line(tmp_path: Path, fleet: Fleet) -> None:
    system = make_system(FlinkSettings(name="f", engine="flink"), tmp_path)
    workload = Workload.model_validate({"name": "w", "query": "nexmark.q10"})
    setup = TrialSetup("a", fleet.endpoints, workload, NEXMARK, "ns", tmp_path, 1.0)
    with pytest.raises(UserError, match=r"systems\.f\.engine: flink has no nexmark.q10: it writes files"):
        system.begin_trial(setup)
    finer = Workload.model_validate({"name": "w", "query": "chained_windows", "window": "1500us", **ABOUT})
    with pytest.raises(UserError, match=r"windows in flink's SQL are whole milliseconds; chained_windows has finer"):
        system.begin_trial(replace(setup, workload=finer, columns=COLUMNS))
    missing = make_system(FlinkSettings(name="f", engine="flink", flink_home=str(tmp_path)), tmp_path)
    with pytest.raises(UserError, match=r"systems\.f\.engine: found no Flink with Streamgauge's part in .*make flink"):
        missing.start()
