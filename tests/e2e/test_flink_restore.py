"""A Flink job that is stopped in the middle of what it reads goes on with more subtasks: nothing is lost or doubled."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.driver.system import TrialSetup
from streamgauge.bench.engines.flink import queries
from streamgauge.bench.engines.flink.cluster import Cluster
from streamgauge.bench.engines.flink.flink_system import argument
from streamgauge.bench.oracle.check import check
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay, Workload
from streamgauge.records.trial import SystemFigures
from tests.driver.conftest import COLUMNS, stream_table
from tests.e2e.flink import Proxied
from tests.e2e.processes import wait_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("flink_is_made"),
]
RATE, COUNT = 5_000.0, 20_000
ABOUT = {"name": "w", "key": "carrier", "value": "flight"}
WORKLOADS = {
    "windowed": Workload.model_validate(
        {"query": "windowed_aggregation", "window": "1s", "watermark": "500ms", **ABOUT}
    ),
    "sql": Workload.model_validate({"query": "chained_windows", "window": "1s", "watermark": "500ms", **ABOUT}),
}


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An event a millisecond, in order: whatever order two queues are read in, no event is late."""
    place = tmp_path_factory.mktemp("stream")
    pq.write_table(stream_table([n * 1_000_000 for n in range(COUNT)]), place / "part-0.parquet")
    (place / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}))
    return place


@pytest.fixture
def cluster(one_flink: Proxied) -> Cluster:
    assert one_flink._cluster is not None
    return one_flink._cluster


@pytest.mark.parametrize("name", WORKLOADS)
def test_from_one_subtask_to_two(cluster: Cluster, stream: Path, tmp_path: Path, name: str) -> None:
    workload = WORKLOADS[name]
    spec = Spec.of(workload, COLUMNS)
    with (
        Fleet(stream, Replay(partitions=2), tick="ns", columns=COLUMNS) as fleet,
        Connection(fleet.endpoints[0]) as talk,
    ):
        talk.open("a", RATE, COUNT / RATE, beyond_us=spec.beyond_us(queries.rules(spec)))
        given = argument(spec, TrialSetup("a", fleet.endpoints, workload, COLUMNS, "ns", tmp_path, RATE))
        job = cluster.run(given, 1)
        running(cluster, job)
        talk.start(time.time_ns())
        wait_for(lambda: sum(talk.status()["planned"]) > COUNT / 4, "a quarter of the rows", 30)
        saved = stopped_with_savepoint(cluster, job, tmp_path)
        before = sum(talk.status()["committed"])
        assert 0 < before < COUNT
        job = cluster.run(given, 2, saved)
        running(cluster, job)
        wait_for(lambda: bool(talk.status()["finished"]), "end of the stream", 30)
        talk.stop()
        wait_for(lambda: committed(talk), "the last checkpoint", 60)
        time.sleep(0.3)
        cluster.cancel(job)
        seen = talk.observe()
    rows = offered(stream, [count - 1 for count in seen["offered"]])
    figures: SystemFigures = {"stretches": [{"ends": [{"0": 2**62, "1": 2**62}], "watermark_ms": None}]}
    found = check(rows, figures, [report["body"] for report in seen["reports"]], spec, queries.rules(spec))
    assert (found.wrong, found.expected_late, rows.num_rows) == (None, 0, COUNT)
    assert found.reported_rows == found.expected_rows > 5


def test_a_job_that_cannot_go_on_says_why(one_flink: Proxied, stream: Path, tmp_path: Path) -> None:
    windowed, sql = WORKLOADS.values()
    with Fleet(stream, Replay(), tick="ns", columns=COLUMNS) as fleet, Connection(fleet.endpoints[0]) as talk:
        talk.open("a", RATE, COUNT / RATE, beyond_us=0)
        setup = TrialSetup("a", fleet.endpoints, windowed, COLUMNS, "ns", tmp_path, RATE)
        one_flink.begin_trial(setup)
        one_flink._setup = replace(setup, workload=sql)
        with pytest.raises(UserError, match="Cannot map checkpoint/savepoint state for operator"):
            one_flink.rescale()
        assert one_flink.alive(), one_flink.failure
        assert one_flink.end_trial(0)["failure"] is None


def stopped_with_savepoint(cluster: Cluster, job: str, folder: Path) -> str:
    """Ends a job in the middle of what it reads; returns where its savepoint is."""
    given = {"targetDirectory": (folder / "savepoints").as_uri(), "drain": False}
    trigger = cluster.ask("POST", f"/jobs/{job}/stop", given)["request-id"]
    path = f"/jobs/{job}/savepoints/{trigger}"
    wait_for(lambda: cluster.ask("GET", path)["status"]["id"] == "COMPLETED", "a savepoint", 30)
    return str(cluster.ask("GET", path)["operation"]["location"])


def running(cluster: Cluster, job: str) -> None:
    def all_run() -> bool:
        return {vertex["status"] for vertex in cluster.job(job)["vertices"]} == {"RUNNING"}

    wait_for(all_run, "operators", 30)


def committed(talk: Connection) -> bool:
    told = talk.status()
    return bool(told["committed"] == told["offered"])


def offered(stream: Path, counts: list[int]) -> pa.Table:
    table = load_stream([stream / "part-0.parquet"], "ns", COLUMNS, line=False, max_memory_mb=64, densify=1)
    return offered_rows(table, [counts])
