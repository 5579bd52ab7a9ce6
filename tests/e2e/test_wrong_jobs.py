"""Jobs that are wrong on purpose, behind a real broker: what is said of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.bench.driver.closed_loop import ClosedLoop
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.marking import Marking
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.job import following, life
from streamgauge.bench.engines.job.job_system import JobSystem
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.config import Replay, Workload
from streamgauge.streams.kafka.clients import Access, Topics
from tests.driver.conftest import COLUMNS, stream_table
from tests.told import compared, extra, known

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
JOB = Path(__file__).with_name("wrong_job.py")
WORKLOAD = Workload.model_validate({"name": "w", "query": "passthrough"})
BOUNDS = Bounds(max_slip_s=20, max_clock_offset_s=20, drain_s=20)
WALLS = "max(event_wall) as event_wall, max(offered_wall) as offered_wall from events group by all"
EACH = {"sql": f"select flight, carrier, {WALLS}", "key": ["flight"], "quiet": "300ms"}
WINDOWS = {
    "sql": f"select event_time // 1000000000 * 1000000000 as at, carrier, count(*) as flights, {WALLS}",
    "key": ["at", "carrier"],
    "quiet": "300ms",
}
EVENTS, RATE = 1000, 1000
BEGIN = 1_356_998_400_000_000_000


@pytest.fixture(autouse=True)
def _any_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "MOST_STARVED", 1.0)
    monkeypatch.setattr(following, "FIRST_S", 4.0)
    monkeypatch.setattr(following, "GIVEN_S", 2.0)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Ten events in a second of the stream; each tenth came 1.5 s late."""
    place = tmp_path_factory.mktemp("stream")
    number = np.arange(EVENTS)
    late = (number % 10 == 5) & (number > 20)
    times = BEGIN + number * 100_000_000 - late * 1_500_000_000
    pq.write_table(stream_table(times.tolist()), place / "part-0.parquet")
    manifest = {"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}
    (place / "manifest.json").write_text(json.dumps(manifest))
    with Fleet(place, Replay(), tick="ns", columns=COLUMNS) as started:
        yield started


def measured(broker: Broker, fleet: Fleet, place: Path, fault: str, *, ids: bool = True) -> TrialRun:
    """A trial of that job, which has warmed up before."""
    command = [sys.executable, str(JOB), "{bootstrap}", "{input}", "{output}", "{group}", fault]
    answer = WINDOWS if fault in ("counts", "drops late", "loses the last", "updates") else EACH
    about = {"name": "mine", "engine": "job", "bootstrap": broker.bootstrap, "command": command, "answer": answer}
    more = {"warm": "1s", "ready": {"log": "it has begun"}, "sentinel": {"flight": None}}
    given = JobSettings.model_validate(about | more)
    names = given.ids(COLUMNS) if ids else ()
    system = JobSystem(given, place / "system")
    system.start()
    try:
        for folder in ("loop", "trial"):
            (place / folder).mkdir()
        if fault in ("answers the warm-up alone", "remembers ids"):
            request = TrialRequest(WORKLOAD, place / "loop", bounds=BOUNDS, marking=Marking(names, 2))
            loop = ClosedLoop(system, fleet, request, continuous=True)
            loop.window(200, lambda seen: sum(batch.rows for batch in seen) > EVENTS)
            loop.close()
        request = TrialRequest(WORKLOAD, place / "trial", RATE, 0.9, BOUNDS, marking=Marking(names, 4))
        return run_trial(system, fleet, request)
    finally:
        system.stop()


@pytest.mark.parametrize(
    ("fault", "cause", "said"),
    [
        ("answers the warm-up alone", "warm-up", "900 missing, such as: expected flight="),
        ("drops late", "late", "with other values, such as: expected at="),
        ("loses the last", "last", "missing, such as: expected at="),
        ("updates", "updates", "in excess, such as: expected none, found at="),
    ],
)
def test_wrong_answers_are_told_with_their_likely_cause(
    broker: Broker, fleet: Fleet, tmp_path: Path, fault: str, cause: str, said: str
) -> None:
    run = measured(broker, fleet, tmp_path, fault)
    check = compared(run.details)
    assert extra(check["differences"], "cause") == cause
    assert said in str(check["wrong"])
    assert Path(extra(run.details["system"], "log")).read_text().startswith("it has begun\n")


@pytest.mark.parametrize(
    ("fault", "duplicates"), [("counts", False), ("remembers ids", False), ("every hundredth twice", True)]
)
def test_right_answers_are_right_and_copies_are_counted(
    broker: Broker, fleet: Fleet, tmp_path: Path, fault: str, duplicates: bool
) -> None:
    run = measured(broker, fleet, tmp_path, fault)
    check = compared(run.details)
    assert (run.observation.invalid, check["wrong"]) == (None, None)
    assert (known(check["duplicates"]) > 0) == duplicates
    assert check["delivery"] == ("at least once" if duplicates else "exactly once")
    assert run.details["emitted"] == 900 or fault == "counts"
    assert run.details["negative_latencies"] == 0


def test_answers_to_the_warm_up_that_stand_in_for_the_trial_make_it_invalid(
    broker: Broker, fleet: Fleet, tmp_path: Path
) -> None:
    run = measured(broker, fleet, tmp_path, "remembers ids", ids=False)
    assert str(run.observation.invalid).startswith("900 of 900 answers came before the events that they answer")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("no commits", "its members read that topic: does the job commit?"),
        ("another topic", "its members read streamgauge-"),
        ("another group", "it has no members: does the command get {group} and {input}?"),
    ],
)
def test_a_job_that_commits_nothing_is_told_with_its_last_lines(
    broker: Broker, fleet: Fleet, tmp_path: Path, fault: str, why: str
) -> None:
    told = str(measured(broker, fleet, tmp_path, fault).observation.invalid)
    assert told.startswith("the job committed nothing in ")
    assert why in told
    assert f"; its last lines: it has begun; its log: {tmp_path}" in told


def test_a_job_that_refuses_the_sentinels_nulls_is_told_with_its_log(
    broker: Broker, fleet: Fleet, tmp_path: Path
) -> None:
    run = measured(broker, fleet, tmp_path, "refuses nulls")
    told = str(run.observation.invalid or run.details["system"]["failure"])
    assert told.startswith("the job ended with 1: TypeError: int() argument must be ")
    assert "the stream had ended: does the job refuse the sentinel? " in told
    assert "Traceback" in Path(extra(run.details["system"], "log")).read_text()


def test_topics_that_a_job_makes_go_with_the_trial(broker: Broker, fleet: Fleet, tmp_path: Path) -> None:
    topics = Topics(Access(broker.bootstrap))
    before = topics.names()
    measured(broker, fleet, tmp_path, "makes topics")
    assert topics.names() - before <= {"__consumer_offsets"}
