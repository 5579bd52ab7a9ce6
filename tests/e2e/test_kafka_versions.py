"""Two versions of a job on Kafka in a release check, in a night, and in a run of several cells."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from streamgauge.judge import release_check
from streamgauge.kafka.broker import Broker
from tests.e2e.test_kafka import JOB, SQL
from tests.kafka.conftest import broker
from tests.measure.benches import Bench, write_bench
from tests.measure.conftest import _alone_and_quick

__all__ = ["_alone_and_quick", "broker"]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def bench_of(place: Path, broker: Broker, *versions: str, **more: Any) -> Bench:
    command = [sys.executable, str(JOB), "{bootstrap}", "{input}", "{output}", "{group}", "{version}"]
    answer = {"sql": SQL, "key": ["at", "flight"], "quiet": "400ms"}
    job = {"engine": "job", "bootstrap": broker.bootstrap, "command": command, "answer": answer, "warm": "0s"}
    systems = [{"name": f"v{version}", "version": version, **job} for version in versions]
    return write_bench(place, systems=systems, replay={"max_memory_mb": 64, "max_slip": "20s"}, **more)


@pytest.mark.parametrize(("candidate", "verdict"), [("1.1", "go"), ("1.2", "no-go")])
def test_a_slower_version_of_a_job_is_no_go_and_an_equal_one_go(
    broker: Broker, tmp_path: Path, candidate: str, verdict: str
) -> None:
    plan = {"rate": 500, "seconds": 1, "warmup_seconds": 0.1, "reruns": 1, "queries": []}
    plan |= {"tolerance": {"event_latency_ms_p50": 0.6}}
    bench = bench_of(tmp_path, broker, "1.0", candidate, release=plan)
    directory = bench.store.run("check")
    found = release_check.run(bench.benchmark, bench.store, "v1.0", f"v{candidate}", directory)
    assert found["verdict"] == verdict, found["line"]
    assert found["versions"] == {"v1.0": {"job": "1.0"}, f"v{candidate}": {"job": candidate}}
    if verdict == "no-go":
        assert found["reasons"][0]["why"].startswith("slower by ")
