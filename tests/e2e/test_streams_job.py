"""A job of Kafka Streams, by each record's own time and key: its answers, those it drops, and those it revises."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from streamgauge.app.services.broker import Broker
from streamgauge.app.services.java_server import jars
from streamgauge.base.arrow import replaced
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.serving import Sent
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.job import comparing, life
from streamgauge.bench.engines.job.comparing import STREAMS
from streamgauge.bench.engines.job.job_system import JobSystem
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.publish.answers import without_lost
from streamgauge.config import Replay, Workload
from streamgauge.records.advice import Question
from streamgauge.records.rules import Rules
from streamgauge.streams.advice.engines import Arrivals, Asked, by_engine
from streamgauge.streams.kafka.partitioner import partitions_of
from tests.conftest import ROOT
from tests.driver.conftest import COLUMNS, stream_table
from tests.told import compared

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
JOBS = ROOT / "examples" / "jobs"
EXAMPLE = yaml.safe_load((JOBS / "streams.yaml").read_text())
BEGIN, MINUTE, EVENTS = 1_356_998_400 * 10**9, 60 * 10**9, 1500
#: a busy machine is no fault here, nor is a link that it makes slower than the job
BOUNDS = Bounds(max_slip_s=60, max_clock_offset_s=20, drain_s=90)


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of 25 hours, one event a minute for one of seven carriers; a fifth comes up to two hours late."""
    draw, place = Random(7), tmp_path_factory.mktemp("late")
    times = [BEGIN + number * MINUTE for number in range(EVENTS)]
    arrivals = sorted((at + draw.randrange(120) * MINUTE if draw.random() < 0.2 else at, at) for at in times)
    table = stream_table([at for _, at in arrivals], [arrival for arrival, _ in arrivals])
    carriers = pa.array([draw.choice(["AA", "B6", "DL", "EV", "MQ", "UA", "US"]) for _ in times])
    pq.write_table(replaced(table, {"carrier": pa.chunked_array([carriers])}), place / "part.parquet")
    manifest = {"files": ["part.parquet"], "tick": "ns", "columns": COLUMNS}
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Class path of the example's job."""
    place, others = tmp_path_factory.mktemp("classes"), f"{jars('streams')}/*"
    subprocess.run(["javac", "-cp", others, "-d", str(place), str(JOBS / "StreamsJob.java")], check=True)
    return f"{place}:{others}"


def check(name: str, broker: Broker, late: Path, classes: str, work: Path, **answer: Any) -> dict[str, Any]:
    """The check of a trial of the example's system of that name, with these keys of its answer."""
    (example,) = (one for one in EXAMPLE["systems"] if one["name"] == name)
    at = example["command"].index("StreamsJob.java")
    command = ["java", "-Xmx256m", "-cp", classes, "StreamsJob", *example["command"][at + 1 :]]
    answers = example["answer"] | {"quiet": "1s"} | answer
    given = JobSettings.model_validate(example | {"bootstrap": broker.bootstrap, "command": command, "answer": answers})
    system, (workload,) = JobSystem(given, work / "system"), EXAMPLE["workloads"]
    sent = Sent(tick="ns", columns=COLUMNS, line=False, partition_by=given.partition_by)
    (work / "trial").mkdir(parents=True)
    with Fleet(late, Replay(partitions=3), **sent) as fleet:
        system.start()
        try:
            asked = Workload.model_validate(workload)
            run = run_trial(system, fleet, TrialRequest(asked, work / "trial", 1000, EVENTS / 1000, BOUNDS))
        finally:
            system.stop()
    assert run.observation.invalid is None
    return dict(compared(run.details))


@pytest.fixture(autouse=True)
def _any_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "MOST_STARVED", 1.0)


def test_a_job_drops_what_its_stream_time_has_overtaken_and_nothing_else(
    broker: Broker, late: Path, classes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = list[int]()

    def counting(rows: pa.Table, rules: Rules, key: str | None) -> pa.Table:
        kept = without_lost(rows, rules, key)
        dropped.append(rows.num_rows - kept.num_rows)
        return kept

    monkeypatch.setattr(comparing, "without_lost", counting)
    right = check("strict", broker, late, classes, tmp_path / "declared")
    assert (right["wrong"], right["unchecked"], right["duplicates"]) == (None, None, 0)
    # the advice says what it dropped before it ran; the answers are right without these events, and with all others
    rows = pq.read_table(late / "part.parquet")
    event_us = rows["event_time"].to_numpy() // 1000
    piece = Arrivals(event_us, event_us, partition=partitions_of(rows["carrier"], 3))
    hour = Question(answers="tumbling", length=60 * MINUTE, slide=60 * MINUTE)
    by_streams = by_engine([STREAMS], Asked(hour, 10 * MINUTE, "ns"), [piece], partitions=3)
    assert [one.loss.events for one in by_streams] == dropped
    assert dropped[0] > 20
    # a grace that the job does not have: it drops what it should not
    other = check("strict", broker, late, classes, tmp_path / "other", grace="2h")
    assert other["wrong"] is not None
    assert other["differences"]["cause"] == "late"
    assert {one["kind"] for one in other["differences"]["each"]} <= {"missing", "with other values"}


def test_answers_are_right_once_their_windows_have_closed_and_as_they_change(
    broker: Broker, late: Path, classes: str, tmp_path: Path
) -> None:
    final = check("final", broker, late, classes, tmp_path / "final")
    assert (final["wrong"], final["unchecked"], final["delivery"]) == (None, None, "exactly once")
    updates = check("updates", broker, late, classes, tmp_path / "updates")
    assert (updates["wrong"], updates["unchecked"], updates["delivery"]) == (None, None, None)
    assert final["answers"] == updates["answers"] == final["expected_rows"] > 100
