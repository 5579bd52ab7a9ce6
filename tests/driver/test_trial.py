"""Whole trials on the real clock and wire: what is known of a system is what is measured."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.closed_loop import ClosedLoop
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.paced_loop import PacedLoop
from streamgauge.bench.driver.trial_request import TrialRequest
from streamgauge.bench.engines.known import process
from streamgauge.bench.engines.known.process import Wired
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.verdict import judge
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay, Search
from streamgauge.records.rules import Rules
from tests.driver.conftest import COLUMNS, stream_table
from tests.driver.in_thread import PATIENT, WORKLOAD, InThread, fleet, trial
from tests.told import extra

__all__ = ["fleet"]


@pytest.mark.usefixtures("favoured")
def test_a_known_delay_is_measured_within_5_ms(artifact: Path) -> None:
    # emitted 100 ms after it was read, so never less; only a busy host adds: one quiet trial will do, and half of its
    # rows, as a host that takes the CPU away for 10 ms in each second is seen in the rest
    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS) as fleet:
        for _ in range(30):
            found = trial(fleet, InThread(Wired(delay_s=0.1)), rate=1000, seconds=1)
            assert found.details["emitted"] == found.event_latency.count == 1000
            both = (found.event_latency, found.processing_latency)
            measured_ms = [(latency.quantile(q) or 0) / 1e6 for latency in both for q in (0.01, 0.5)]
            if max(measured_ms) <= 105:
                break
    parts = found.details["latency_split_ns"]
    assert (parts["micro_batch"] or 0) >= 95e6
    assert parts["watermark_hold"] is parts["commit"] is None
    assert sum(value or 0 for value in parts.values()) == pytest.approx(found.event_latency.mean)
    assert all(100 <= value <= 105 for value in measured_ms), measured_ms


def test_the_sentinel_lies_beyond_the_delay_that_an_engine_declares(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, asked, week_us = Connection.open, list[int](), 7 * 86_400 * 1_000_000

    def open_(self: Connection, *arguments: Any, **more: Any) -> Any:
        asked.append(more["beyond_us"])
        return opened(self, *arguments, **more)

    class Slow(InThread):
        def rules(self, spec: Spec) -> Rules:
            return Rules(spec.operators(), week_us)

    monkeypatch.setattr(Connection, "open", open_)
    trial(fleet, Slow(), rate=1000, seconds=0.2)
    trial(fleet, InThread(), rate=1000, seconds=0.2)
    assert asked == [week_us + 20_000_000, 20_000_000]


def test_streams_take_turns_in_an_open_loop_and_each_has_its_own_latencies(artifact: Path) -> None:
    """The second stream loops in two milliseconds: the times of its successor lie beyond, all the same."""
    (other := artifact.parent / "short").mkdir()
    pq.write_table(stream_table([1_000_000, 2_000_000]), other / "part-0.parquet")
    (other / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}))
    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS, others=[other]) as fleet:
        request = TrialRequest(WORKLOAD, Path("."), 1000, bounds=PATIENT)
        loop = PacedLoop(InThread(Wired(interval_s=0.05)), fleet, request, continuous=False)
        for stream in (0, 1, 1, 0):
            loop.turn(stream, 0.7)
        run = loop.close()
    assert run.observation.invalid is None
    assert len(run.spans) == 4
    assert all(100 < span.count < 1600 for span in run.spans), [span.count for span in run.spans]
    assert sum(span.count for span in run.spans) < run.details["emitted"], "what settles counts in none"
    assert 2800 <= run.observation.offered <= 20_000


def test_a_rate_that_is_not_sustained_ends_the_turns(artifact: Path) -> None:
    slow = Wired(Behaviour(1000, batch_rows=50))
    with Fleet(artifact, Replay(queue_seconds=1), tick="ns", columns=COLUMNS) as fleet:
        request = TrialRequest(WORKLOAD, Path("."), 5000, bounds=PATIENT)
        loop = PacedLoop(InThread(slow), fleet, request, continuous=True)
        loop.turn(0, 4)
        loop.turn(0, 4)
        run = loop.close()
    assert run.observation.invalid == "the rate was not sustained: a queue was full"
    assert run.spans == ()


@pytest.mark.alone
def test_a_stall_shows_in_every_event_offered_meanwhile(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    # read at once but for a stall from 0.5 s to 2.5 s: an event offered at 0.5 + u waits 2 − u
    take, marks = process.Service.take, list[float]()

    def stalled(*arguments: Any) -> int:
        if not marks:
            marks.append(time.monotonic() + 0.5)
        elif len(marks) == 1 and time.monotonic() > marks[0]:
            marks.append(time.monotonic())
            time.sleep(2)
        return take(*arguments)

    monkeypatch.setattr(process.Service, "take", stalled)
    found = trial(fleet, InThread(), rate=1000, seconds=3)
    assert found.observation.offered == found.event_latency.count == 3000
    counts = found.event_latency.to_dict()
    assert found.event_latency.max == pytest.approx(2e9, rel=0.1)
    assert found.event_latency.quantile(1 - 1000 / 3000) == pytest.approx(1e9, rel=0.1)
    assert counts["sum"] == pytest.approx(2000 * 1e9, rel=0.1)  # 2000 events that waited 1 s in the mean
    assert max(s.age_s for s in found.observation.samples) == pytest.approx(2, rel=0.1)


def test_a_short_stream_loops_and_every_row_is_emitted_once_through_several_processes(artifact: Path) -> None:
    with Fleet(artifact, Replay(partitions=3, processes=2), tick="ns", columns=COLUMNS) as fleet:
        found = trial(fleet, InThread(), rate=3000, seconds=1)
    assert found.observation.invalid is None
    assert (found.observation.offered, found.observation.taken, found.details["emitted"]) == (3000, 3000, 3000)
    assert [sum(d["offered"]) for d in found.details["drivers"]] == [1002 + 999 + 2, 999 + 1]
    # 334, 333 and 333 rows in each of 3 loops, and sentinels
    assert max(d["loops"] for d in found.details["drivers"]) == 3
    assert found.details["drivers"][0]["stream_seconds_per_second"] == pytest.approx(3, rel=0.01)
    assert extra(found.details["system"], "rows") == 3003


@pytest.mark.alone
def test_an_overloaded_system_takes_its_capacity_and_grows_older(fleet: Fleet) -> None:
    slow = Wired(Behaviour(capacity=10_000, batch_rows=1000), interval_s=0.05)
    found = trial(fleet, InThread(slow), rate=20_000, seconds=3)
    samples = [s for s in found.observation.samples if s.warm]
    first, last = samples[0], samples[-1]
    assert (last.taken - first.taken) / (last.at_s - first.at_s) == pytest.approx(10_000, rel=0.05)
    assert (last.age_s - first.age_s) / (last.at_s - first.at_s) == pytest.approx(0.5, rel=0.1)


@pytest.mark.alone
def test_a_closed_loop_measures_what_a_batch_costs_at_each_backlog(fleet: Fleet, tmp_path: Path) -> None:
    system = InThread(Wired(Behaviour(capacity=20_000, batch_cost_s=0.05, batch_rows=4000)))
    loop = ClosedLoop(system, fleet, TrialRequest(WORKLOAD, tmp_path), continuous=False)
    found = {rows: loop.window(rows, lambda batches: len(batches) >= 4) for rows in (200, 2000, 8000)}
    loop.pause()
    waiting = loop.window(200, lambda batches: len(batches) >= 2)
    run = loop.close()
    for rows, batches in found.items():
        assert {batch.rows for batch in batches} == {min(rows, 4000)}
        expected = 0.05 + min(rows, 4000) / 20_000
        assert all(abs(batch.seconds - expected) < 0.03 for batch in batches), (rows, batches)
    assert len(waiting) >= 2
    assert loop.invalid is run.observation.invalid is None


@pytest.mark.alone
def test_a_closed_loop_does_not_starve_a_system_that_commits_now_and_then(fleet: Fleet, tmp_path: Path) -> None:
    seldom = Wired(Behaviour(capacity=200_000, batch_rows=5000), commits_answered=True, report_s=2.0)
    loop = ClosedLoop(InThread(seldom), fleet, TrialRequest(WORKLOAD, tmp_path), continuous=True)
    batches = loop.window(10_000, lambda batches: sum(batch.seconds for batch in batches) > 5)
    loop.close()
    carried = sum(batch.rows for batch in batches) / sum(batch.seconds for batch in batches)
    assert carried == pytest.approx(200_000, rel=0.1), "the driver kept rows back while 65,536 were not committed"


@pytest.mark.alone
def test_a_closed_loop_tells_that_uncommitted_rows_filled_its_queues(artifact: Path, tmp_path: Path) -> None:
    """A system that carries 400,000 rows/s and commits every 2 s is held back; one that commits often is not."""
    held_back = []
    for report_s in (2.0, 0.05):
        with Fleet(artifact, Replay(max_memory_mb=64), tick="ns", columns=COLUMNS) as fleet:
            wired = Wired(Behaviour(capacity=400_000, batch_rows=5000), commits_answered=True, report_s=report_s)
            loop = ClosedLoop(InThread(wired), fleet, TrialRequest(WORKLOAD, tmp_path), continuous=True)
            loop.window(10_000, lambda batches: sum(batch.seconds for batch in batches) > 4)
            held_back.append(loop.held_back)
            loop.close()
    assert held_back == [True, False]


def test_a_closed_loop_whose_system_dies_says_so(fleet: Fleet, tmp_path: Path) -> None:
    system = InThread(Wired(Behaviour(capacity=20_000, batch_rows=1000)))
    loop = ClosedLoop(system, fleet, TrialRequest(WORKLOAD, tmp_path), continuous=False)
    assert loop.window(500, lambda batches: len(batches) >= 2)
    system.failure = "it is gone"
    assert loop.window(1000, lambda batches: len(batches) >= 9) == ()
    assert loop.invalid == "it is gone"
    loop.close()


@pytest.mark.alone
@pytest.mark.parametrize(("rate", "rises"), [(15_000, False), (25_000, True)])
def test_a_trial_that_begins_behind_tells_whether_the_system_catches_up(fleet: Fleet, rate: float, rises: bool) -> None:
    system = InThread(Wired(Behaviour(capacity=20_000, batch_rows=2000)))
    found = trial(fleet, system, rate=rate, seconds=3, behind_s=1.5)
    first, last = found.observation.samples[0], found.observation.samples[-1]
    assert found.observation.invalid is None
    assert first.age_s == pytest.approx(1.5, abs=0.1)
    assert (last.age_s > first.age_s) is rises
    ages = [s.age_s for s in found.observation.clock]
    assert len(ages) > 20, "the clock looks every 100 ms"
    verdict = judge(found.observation, Search())
    assert verdict.outcome == ("unsustainable" if rises else "sustainable"), verdict


def test_a_trial_ends_once_enough_was_seen(fleet: Fleet) -> None:
    began = time.monotonic()
    found = trial(
        fleet, InThread(Wired(interval_s=0.05)), rate=1000, seconds=30, over=lambda so_far: len(so_far.clock) > 5
    )
    assert time.monotonic() - began < 15
    assert found.observation.invalid is None
    assert found.observation.offered == found.details["emitted"]


def test_a_proof_trial_ends_once_its_sign_is_clear(fleet: Fleet) -> None:
    began, search = time.monotonic(), Search()
    found = trial(
        fleet, InThread(Wired(Behaviour(capacity=20_000, batch_rows=2000))), rate=5000, seconds=60, behind_s=1.5,
        over=lambda so_far: judge(so_far, search).outcome != "inconclusive",
    )  # fmt: skip
    assert time.monotonic() - began < 30
    assert judge(found.observation, search).outcome == "sustainable"


def test_an_overflow_ends_the_trial(artifact: Path) -> None:
    with Fleet(artifact, Replay(queue_seconds=0.5), tick="ns", columns=COLUMNS) as fleet:
        began = time.monotonic()
        found = trial(fleet, InThread(Wired(Behaviour(capacity=1000, batch_rows=500))), rate=20_000, seconds=60)
    assert found.observation.overflow
    assert found.observation.invalid is None
    assert found.observation.offered < 15_000
    assert time.monotonic() - began < 40
