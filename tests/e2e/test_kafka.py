"""The engine `job` with real brokers and real jobs: what it measures, what it refuses, what it leaves behind."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.base.errors import UserError
from streamgauge.bench.driver.closed_loop import ClosedLoop
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.driver.serving import Sent
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.job import following, life
from streamgauge.bench.engines.job.job_system import JobSystem
from streamgauge.bench.engines.job.life import Job
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.config import Replay, Workload
from streamgauge.streams.kafka.clients import Access
from streamgauge.streams.kafka.schemas import avro_schema
from tests.driver.conftest import COLUMNS, artifact
from tests.told import compared, extra, known

__all__ = ["artifact"]  # fixtures here, too
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
JOB = Path(__file__).with_name("kafka_job.py")
WORKLOAD = Workload.model_validate({"name": "w", "query": "passthrough"})
SQL = """
select event_time as at, flight, max(event_wall) as event_wall, max(offered_wall) as offered_wall
from events group by all
"""
#: a busy machine is no fault here, nor is a link that it makes slower than the job
BOUNDS = Bounds(max_slip_s=20, max_clock_offset_s=20, drain_s=60)


@pytest.fixture(autouse=True)
def _any_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "MOST_STARVED", 1.0)


def settings(broker: Broker, fault: str = "none", **more: Any) -> JobSettings:
    command = [sys.executable, str(JOB), "{bootstrap}", "{input}", "{output}", "{group}", fault]
    answer = {"sql": SQL, "key": ["at", "flight"], "quiet": "200ms"}
    about = {"name": "mine", "engine": "job", "bootstrap": broker.bootstrap, "command": command, "answer": answer}
    return JobSettings.model_validate(about | more)


@contextmanager
def started(given: JobSettings, artifact: Path, work: Path, partitions: int = 1) -> Iterator[tuple[JobSystem, Fleet]]:
    """The job's adapter and a driver; nothing of them is left behind."""
    system = JobSystem(given, work / "system")
    sent = Sent(tick="ns", columns=COLUMNS, line=given.lines, partition_by=given.partition_by)
    with Fleet(artifact, Replay(partitions=partitions), **sent) as fleet:
        system.start()
        try:
            yield system, fleet
        finally:
            system.stop()
    assert not jobs(given.bootstrap)


def jobs(bootstrap: str) -> set[int]:
    """Ids of the job's processes; other test files start it at the same time, with brokers of their own."""
    ours = {str(JOB), bootstrap}
    return {process.pid for process in psutil.process_iter(["cmdline"]) if ours <= set(process.info["cmdline"] or [])}


def trial(system: JobSystem, fleet: Fleet, work: Path, seconds: float = 1.5, **more: Any) -> TrialRun:
    work.mkdir(parents=True)
    return run_trial(system, fleet, TrialRequest(WORKLOAD, work, 600, seconds, BOUNDS, **more))


def topics(broker: Broker) -> set[str]:
    from confluent_kafka.admin import AdminClient

    client = AdminClient(Access(broker.bootstrap).settings())
    return {name for name in client.list_topics(timeout=10).topics if name.startswith("streamgauge-")}


def test_a_job_is_measured_from_outside_and_its_answers_are_checked(
    broker: Broker, artifact: Path, tmp_path: Path
) -> None:
    """Records go to the partitions of their keys; those of the test below have none, and take turns."""
    with started(settings(broker, warm="2s", key="flight"), artifact, tmp_path, partitions=2) as (system, fleet):
        run = trial(system, fleet, tmp_path / "first")
        told = run.details["system"]
        assert run.observation.invalid is None
        assert told["check"] == {
            "answers": 900, "duplicates": 0, "expected_rows": 900, "reported_rows": 900, "delivery": "exactly once",
            "wrong": None, "unchecked": None, "largest_delay_ms": 0.0,
            "differences": {"each": (), "cause": None},
        }  # fmt: skip
        assert run.details["emitted"] == run.observation.offered == 900
        assert 0 < (run.details["event_latency_ns"]["p50"] or 0) < 60 * 10**9
        assert extra(told, "link")["published"] == [457, 445]
        assert (known(told["link_slip_ns"])["p99"] or 0) > 0
        assert (told["cpu_seconds"] or 0) > 0.05
        assert topics(broker) == set()

        # a closed loop keeps the stream's begin, which the next trial's job takes before the first row counts
        (tmp_path / "loop").mkdir()
        loop = ClosedLoop(system, fleet, TrialRequest(WORKLOAD, tmp_path / "loop", bounds=BOUNDS), continuous=True)
        assert sum(batch.rows for batch in loop.window(200, lambda seen: sum(b.rows for b in seen) > 3000))
        loop.close()
        run = trial(system, fleet, tmp_path / "second")
        check = compared(run.details)
        assert (run.observation.invalid, check["wrong"]) == (None, None)
        assert run.details["emitted"] == 900
        assert extra(check, "answers") > 900 + 1000
        assert topics(broker) == set()


def test_a_job_that_is_started_once_goes_on_from_trial_to_trial_until_it_dies(
    broker: Broker, artifact: Path, tmp_path: Path
) -> None:
    with started(settings(broker, started="once"), artifact, tmp_path, partitions=2) as (system, fleet):
        processes: list[set[int]] = []
        for number in (1, 2, 3):
            run = trial(system, fleet, tmp_path / str(number))
            check, processes = compared(run.details), [*processes, jobs(broker.bootstrap)]
            assert run.observation.invalid is None
            assert (check["wrong"], check["duplicates"]) == (None, 0)
            assert extra(check, "answers") == 900 * number, "those of earlier trials are checked again"
            assert run.details["emitted"] == 900, "and are not timed again"
            assert 0 < (run.details["event_latency_ns"]["p50"] or 0) < 10 * 10**9
        assert processes[0] == processes[1] == processes[2] != set()

        killed = [psutil.Process(process) for process in processes[0]]
        for process in killed:
            process.kill()
        psutil.wait_procs(killed, timeout=30)  # a thread that still ends would count as a job that runs
        run = trial(system, fleet, tmp_path / "new")
        assert run.observation.invalid is None
        assert extra(compared(run.details), "answers") == 900
        assert not jobs(broker.bootstrap) & processes[0]
        assert len(topics(broker)) == 2
    assert topics(broker) == set()
    assert list((tmp_path / "system").glob("streamgauge-*")) == []


@pytest.mark.parametrize(
    ("fault", "more", "reason"),
    [
        ("ends", {}, "the job ended with 1: Traceback follows"),
        ("never reads", {"ready": {"seconds": 1}}, "the job committed nothing in "),
        ("never writes", {}, "the job took all rows and wrote nothing to its output topic"),
        ("garbage", {}, "an answer is no JSON object: '<flight/>'"),
        ("none", {"answer": {"carried": {}, "quiet": "200ms"}}, "answer.carried: an answer has no whole number in "),
    ],
)
def test_a_job_that_cannot_be_measured_is_told_in_one_line(
    broker: Broker, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    fault: str, more: dict[str, Any], reason: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(following, "FIRST_S", 4.0)
    monkeypatch.setattr(following, "GIVEN_S", 2.0)
    given = settings(broker, fault, **more)
    bounds = Bounds(max_slip_s=20, max_clock_offset_s=20, drain_s=1)
    with started(given.model_copy(), artifact, tmp_path) as (system, fleet):
        (tmp_path / "trial").mkdir()
        run = run_trial(system, fleet, TrialRequest(WORKLOAD, tmp_path / "trial", 600, 0.5, bounds))
        told = run.observation.invalid or run.details["system"]["failure"]
        assert told is not None
        assert told.startswith(reason)
        assert "\n" not in told
        assert topics(broker) == set()


def test_other_values_are_wrong(broker: Broker, artifact: Path, tmp_path: Path) -> None:
    with started(settings(broker, "wrong"), artifact, tmp_path) as (system, fleet):
        check = compared(trial(system, fleet, tmp_path / "trial", seconds=0.5).details)
    assert (extra(check, "answers"), check["delivery"]) == (300, "exactly once")
    wrong = "output wrong: 300 rows, 300 expected; 299 missing, such as: expected at=0 flight=0, "
    assert str(check["wrong"]).startswith(wrong)


def test_a_job_reads_avro_by_the_schema_of_its_columns(broker: Broker, artifact: Path, tmp_path: Path) -> None:
    schema = tmp_path / "event.avsc"
    schema.write_text(json.dumps(avro_schema(wire_schema(COLUMNS, line=False))))
    with started(settings(broker, str(schema), format="avro"), artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "trial", seconds=0.5)
    assert (run.observation.invalid, compared(run.details)["wrong"]) == (None, None)
    assert run.details["emitted"] == 300


def test_lines_are_published_as_they_are_and_a_loop_of_them_is_refused(
    broker: Broker, artifact: Path, tmp_path: Path
) -> None:
    code = f"exec(open({str(JOB)!r}).read().replace('json.loads(value)', "
    code += '\'dict(zip(("event_time", "flight"), value.decode().split()))\'))'
    command = [sys.executable, "-c", code, "{bootstrap}", "{input}", "{output}", "{group}", "none"]
    sql = "select 'line' as at, seq::varchar as flight, event_wall, offered_wall from events"
    given = settings(broker, command=command, format="line", sentinel="line -1", answer={"sql": sql, "quiet": "200ms"})
    with started(given, artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "first")
        assert compared(run.details)["wrong"] is None
        assert run.details["emitted"] == 900
        run = trial(system, fleet, tmp_path / "second", seconds=2)
        assert str(run.details["system"]["failure"]).startswith("the stream is too short for this trial")


def test_the_job_of_a_trial_is_pinned_though_the_search_pins_before_it_starts(
    broker: Broker, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus, end = sorted(os.sched_getaffinity(0))[-1:], Job.end
    seen: list[set[int]] = []

    def look_and_end(job: Job) -> None:
        seen.extend(os.sched_getaffinity(process) for process in jobs(broker.bootstrap))
        end(job)

    monkeypatch.setattr(Job, "end", look_and_end)
    with started(settings(broker, cpus=cpus), artifact, tmp_path) as (system, fleet):
        system.pin()
        trial(system, fleet, tmp_path / "first")
    assert seen == [set(cpus)] * len(seen) != []


def test_settings_that_the_broker_refuses_are_told_before_anything_starts(broker: Broker, tmp_path: Path) -> None:
    given = settings(broker, command=["/nowhere/job"])
    with pytest.raises(UserError, match=r"^systems.mine.command: found no '/nowhere/job' in "):
        JobSystem(given, tmp_path).start()
    given = settings(broker).model_copy(update={"bootstrap": "127.0.0.1:1"})
    with pytest.raises(UserError, match=r"^systems.mine.bootstrap: the Kafka broker 127.0.0.1:1 cannot be used: "):
        JobSystem(given, tmp_path).start()
