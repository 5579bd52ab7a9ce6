"""Whole trials on the real clock and wire: what is known of a system is what is measured; every end has its reason."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration
from streamgauge.bench.driver.client import Connection, RefusedError, WireError
from streamgauge.bench.driver.closed_loop import ClosedLoop
from streamgauge.bench.driver.fleet import Fleet, RemoteDrivers
from streamgauge.bench.driver.observed import Bounds, TrialRun
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.paced_loop import PacedLoop
from streamgauge.bench.driver.server import Answer, Server
from streamgauge.bench.driver.system import Adapter, Endpoint, TrialSetup, make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.engines.known.process import Wired, run
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.verdict import judge
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay, Search, Workload
from streamgauge.config.systems import OwnSettings
from streamgauge.records.rules import Operator, Rules
from tests.driver.conftest import COLUMNS, stream_of, stream_table

WORKLOAD = Workload(name="pass", query="passthrough")
#: another test process may have the CPU for a while
PATIENT = Bounds(ready_s=20, max_slip_s=5)


class InThread(Adapter):
    """The known system within this process: nothing to start up."""

    name = "known"

    def __init__(self, wired: Wired | None = None) -> None:
        self._wired = wired or Wired()
        self._stop = threading.Event()
        self.figures: dict[str, Any] = {}
        self.failure: str | None = None

    def rules(self, spec: Spec) -> Rules:
        return Rules(spec.operators())

    def start(self) -> None: ...

    def begin_trial(self, setup: TrialSetup) -> None:
        def work() -> None:
            try:
                self.figures = run(self._wired, list(setup.endpoints), setup.attempt, self._stop)
            except WireError as problem:
                time.sleep(0.5)  # a process takes a moment to end, too: until then its driver is known to be dead
                self.failure = str(problem)

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def end_trial(self, timeout_s: float) -> dict[str, Any]:
        self._thread.join(min(timeout_s, 5))
        self.stop()
        return self.figures

    def alive(self) -> bool:
        return self.failure is None

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)


@pytest.fixture(scope="module")
def fleet(artifact: Path) -> Iterator[Fleet]:
    """A driver process for most trials."""
    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS) as started:
        yield started


def trial(fleet: Fleet | RemoteDrivers, system: Adapter, *, rate: float, seconds: float, **more: Any) -> TrialRun:
    more = {"bounds": PATIENT, **more}
    return run_trial(system, fleet, WORKLOAD, rate=rate, seconds=seconds, work=Path("."), **more)


@pytest.mark.usefixtures("favoured")
def test_a_known_delay_is_measured_within_5_ms(artifact: Path) -> None:
    # emitted 100 ms after it was read, so never less; only a busy host adds: one quiet trial will do
    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS) as fleet:
        for _ in range(30):
            found = trial(fleet, InThread(Wired(delay_s=0.1)), rate=1000, seconds=1)
            assert found.details["emitted"] == found.event_latency.count == 1000
            both = (found.event_latency, found.processing_latency)
            measured_ms = [(latency.quantile(q) or 0) / 1e6 for latency in both for q in (0.5, 0.99)]
            if max(measured_ms) <= 105:
                break
    parts = found.details["latency_split_ns"]
    assert parts["micro_batch"] >= 95e6
    assert parts["watermark_hold"] is parts["commit"] is None
    assert sum(value or 0 for value in parts.values()) == pytest.approx(found.event_latency.mean)
    assert all(100 <= value <= 105 for value in measured_ms), measured_ms


def test_streams_take_turns_in_an_open_loop_and_each_has_its_own_latencies(artifact: Path) -> None:
    """The second stream loops in two milliseconds: the times of its successor lie beyond, all the same."""
    (other := artifact.parent / "short").mkdir()
    pq.write_table(stream_table([1_000_000, 2_000_000]), other / "part-0.parquet")
    (other / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}))
    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS, others=[other]) as fleet:
        loop = PacedLoop(
            InThread(Wired(interval_s=0.05)),
            fleet,
            WORKLOAD,
            work=Path("."),
            continuous=False,
            bounds=PATIENT,
            rate=1000,
        )
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
        loop = PacedLoop(InThread(slow), fleet, WORKLOAD, work=Path("."), continuous=True, bounds=PATIENT, rate=5000)
        loop.turn(0, 4)
        loop.turn(0, 4)
        run = loop.close()
    assert run.observation.invalid == "the rate was not sustained: a queue was full"
    assert run.spans == ()


@pytest.mark.alone
def test_a_stall_shows_in_every_event_offered_meanwhile(fleet: Fleet) -> None:
    # read at once but for a stall from 0.5 s to 2.5 s: an event offered at 0.5 + u waits 2 − u
    stalled = Wired(stall_at_s=0.5, stall_s=2.0)
    found = trial(fleet, InThread(stalled), rate=1000, seconds=3)
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
    assert found.details["system"]["rows"] == 3003


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
    loop = ClosedLoop(system, fleet, WORKLOAD, work=tmp_path, continuous=False)
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


def test_a_closed_loop_whose_system_dies_says_so(fleet: Fleet, tmp_path: Path) -> None:
    system = InThread(Wired(Behaviour(capacity=20_000, batch_rows=1000)))
    loop = ClosedLoop(system, fleet, WORKLOAD, work=tmp_path, continuous=False)
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


def test_a_recovery_trial_ends_once_its_sign_is_clear(fleet: Fleet) -> None:
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


def during(seconds: float, action: Any) -> threading.Thread:
    thread = threading.Timer(seconds, action)
    thread.start()
    return thread


def test_a_killed_driver_makes_the_trial_invalid_and_is_replaced(artifact: Path) -> None:
    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS) as fleet:
        pid = fleet.pids[0]
        timer = during(1.5, lambda: os.kill(pid, signal.SIGKILL))
        found = trial(fleet, InThread(), rate=100, seconds=20)
        timer.join()
        assert found.observation.invalid == f"driver process 0 (pid {pid}) ended with -9: its measurements are lost"
        fleet.start()
        again = trial(fleet, InThread(), rate=100, seconds=0.5)
        assert again.observation.invalid is None
        assert again.details["emitted"] == 50
        pids = fleet.pids
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.e2e
def test_a_killed_system_makes_the_trial_invalid(artifact: Path) -> None:
    system = KnownSystem(KnownSettings(name="k", engine="known"), artifact)

    with Fleet(artifact, Replay(), tick="ns", columns=COLUMNS) as fleet:
        started: list[threading.Thread] = []

        def watch(seen: dict[str, Any]) -> None:
            if seen["drivers"][0]["state"] == "started" and not started:
                started.append(during(0.5, lambda: system.strike("kill")))

        found = trial(fleet, system, rate=100, seconds=60, progress=watch)
    assert found.observation.invalid is not None
    assert found.observation.invalid.startswith("system k ended with -9")
    assert system._process is None


def test_a_trial_that_the_driver_limited_says_so(fleet: Fleet) -> None:
    pid = fleet.pids[0]
    stopped: list[threading.Thread] = []

    def watch(seen: dict[str, Any]) -> None:
        if seen["drivers"][0]["state"] == "started" and not stopped:
            stopped.append(during(0.8, lambda: os.kill(pid, signal.SIGSTOP)))
            stopped.append(during(1.8, lambda: os.kill(pid, signal.SIGCONT)))

    found = trial(fleet, InThread(), rate=1000, seconds=3, progress=watch, bounds=Bounds(ready_s=20, max_slip_s=0.5))
    assert found.observation.invalid is not None
    assert "the driver limited this trial: its schedule slipped by" in found.observation.invalid


def test_a_system_that_is_never_ready(fleet: Fleet) -> None:
    class Silent(InThread):
        def begin_trial(self, setup: TrialSetup) -> None:
            assert setup.endpoints
            self._thread = threading.Thread(target=lambda: None)
            self._thread.start()

    found = trial(fleet, Silent(), rate=10, seconds=1, bounds=Bounds(ready_s=0.3))
    assert found.observation.invalid == "the system was not ready within 0.3 s"


def test_a_report_that_is_none_is_refused_and_its_trial_is_invalid(fleet: Fleet) -> None:
    class Babbling(InThread):
        def end_trial(self, timeout_s: float) -> dict[str, Any]:
            figures = super().end_trial(timeout_s)
            with (
                Connection(fleet.endpoints[0]) as connection,
                pytest.raises(RefusedError, match=r"body\.event_latency"),
            ):
                connection.report(connection.attempt, 99, {"rows": 5})
            return figures

    found = trial(fleet, Babbling(), rate=100, seconds=0.3)
    assert str(found.observation.invalid).startswith("a report was refused: body.event_latency: found nothing, allowed")
    assert found.details["emitted"] == 30


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "the system's figures: found None, allowed: an object"),
        ([1], "the system's figures: found [1], allowed: an object"),
        ({"cpu_seconds": float("nan")}, "the system's figures: cpu_seconds: found nan, allowed: "),
        (
            {"rules": Rules((Operator("event"),))},
            "the system's figures: rules: found operators (Operator(kind='event', ",
        ),
    ],
)
def test_figures_that_are_none_make_the_trial_invalid(fleet: Fleet, told: Any, why: str) -> None:
    class Babbling(InThread):
        def end_trial(self, timeout_s: float) -> Any:
            super().end_trial(timeout_s)
            return told

    found = trial(fleet, Babbling(), rate=100, seconds=0.3)
    assert str(found.observation.invalid).startswith(why)
    assert found.details["system"] == {}
    assert found.details["rules"] == Rules(Spec.of(WORKLOAD, COLUMNS).operators())


def test_drivers_of_another_host_serve_trial_after_trial(fleet: Fleet) -> None:
    remote = RemoteDrivers(fleet.endpoints, "ns", COLUMNS)
    found = [trial(remote, InThread(), rate=100, seconds=0.3) for _ in range(2)]
    assert [(f.observation.offered, f.details["emitted"], f.observation.invalid) for f in found] == [(30, 30, None)] * 2


def test_a_driver_that_another_controller_takes_makes_the_trial_invalid(fleet: Fleet) -> None:
    def take(seen: dict[str, Any]) -> None:
        if seen["drivers"][0]["state"] == "started":
            with Connection(fleet.endpoints[0]) as other:
                other.open("somebody-else-s", 10, 1)

    found = trial(fleet, InThread(), rate=100, seconds=30, progress=take)
    assert found.observation.invalid == (
        f"driver {fleet.endpoints[0].address} was given another trial in the middle of this one (somebody-else-s): "
        "two controllers share it"
    )
    assert (found.observation.offered, found.details["emitted"]) == (0, 0), "nothing of the other one's is counted"


class Ahead(Driver):
    """A system whose host's clock is 0.3 s ahead."""

    def _latest(self) -> Answer:
        answer = super()._latest()
        return {**answer, "wall_ns": int(str(answer["wall_ns"])) + 300_000_000}


def test_clocks_out_of_step_make_a_trial_invalid() -> None:
    two, stream = Replay(partitions=2), stream_of([i * 1_000_000 for i in range(1000)])
    servers = [
        Server(kind(stream, two, share=(i, 2)), "127.0.0.1", 0)
        for i, kind in enumerate((Driver, Ahead))
    ]  # fmt: skip
    servers.append(Server(Ahead(stream, Replay(), share=(0, 1)), "127.0.0.1", 0))

    def reason(bound_s: float, servers: list[Server]) -> str | None:
        remote = RemoteDrivers(tuple(Endpoint("127.0.0.1", server.port) for server in servers), "ns", COLUMNS)
        bounds = replace(PATIENT, max_clock_offset_s=bound_s)
        run = trial(remote, InThread(), rate=100, seconds=0.3, bounds=bounds)
        assert run.details["emitted"] == 30
        return run.observation.invalid

    assert re.match(
        r"two drivers' clocks differ by 0\.[23]\d\d ± 0\.\d+ s, allowed: 0\.1 s; .*NTP", str(reason(0.1, servers[:2]))
    )
    assert reason(2.0, servers[:2]) is None
    assert re.match(r"the system's and the first driver's clocks differ by 0\.[23]", str(reason(0.1, servers[2:])))
    for server in servers:
        server.close()


def test_a_driver_that_cannot_go_on_says_why(tmp_path: Path) -> None:
    # the second loop would end in 2315, beyond 63 bits of ns
    table = stream_table([0, 2**61, 2**62])
    pq.write_table(table, tmp_path / "part.parquet")
    (tmp_path / "manifest.json").write_text('{"files": ["part.parquet"], "tick": "ns"}')
    with Fleet(tmp_path, Replay(), tick="ns", columns=COLUMNS) as fleet:
        found = trial(fleet, InThread(), rate=100, seconds=1)
    assert found.observation.invalid is not None
    assert "the driver failed: " in found.observation.invalid
    assert "64 bits" in found.observation.invalid


def test_the_known_system_is_an_engine_and_measures_in_its_own_process(fleet: Fleet) -> None:
    wanted = KnownSettings(name="k", engine="known", capacity=50_000, delay=Duration.parse("20ms"), noise=0.1)
    system = make_system(wanted, Path("."))
    found = trial(fleet, system, rate=2000, seconds=1)
    assert found.details["emitted"] == 2000
    assert (found.processing_latency.min or 0) >= 20e6
    assert found.details["system"]["rows"] == 2001
    assert system.alive()


@pytest.mark.parametrize(
    "engine", ["streamgauge.bench.engines.known.known_system:Nobody", "no.such:Thing", "json:Decoder"]
)
def test_an_unknown_engine_is_one_line(engine: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"systems\.k\.engine: "):
        make_system(OwnSettings(name="k", engine=engine), tmp_path)
