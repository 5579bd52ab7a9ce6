"""Whole trials with a fault: every end has its reason, and nothing of such a trial is taken for a figure."""

from __future__ import annotations

import os
import re
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration
from streamgauge.bench.driver.client import Connection, RefusedError
from streamgauge.bench.driver.fleet import Fleet, RemoteDrivers
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.server import Answer, Server
from streamgauge.bench.driver.serving import Serving
from streamgauge.bench.driver.system import Endpoint, TrialSetup, make_system
from streamgauge.bench.driver.trial_request import Bounds
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay
from streamgauge.config.systems import OwnSettings
from streamgauge.records.rules import Operator, Rules
from tests.driver.conftest import COLUMNS, stream_of, stream_table
from tests.driver.in_thread import PATIENT, WORKLOAD, InThread, fleet, trial
from tests.told import extra

__all__ = ["fleet"]


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

        def watch(seen: list[dict[str, Any]]) -> None:
            if seen[0]["state"] == "started" and not started:
                started.append(during(0.5, lambda: system.strike("kill")))

        found = trial(fleet, system, rate=100, seconds=60, progress=watch)
    assert found.observation.invalid is not None
    assert found.observation.invalid.startswith("system k ended with -9")
    assert found.details["system"]["failure"] == found.observation.invalid
    assert system._process is None


def test_a_trial_that_the_driver_limited_says_so(fleet: Fleet) -> None:
    pid = fleet.pids[0]
    stopped: list[threading.Thread] = []

    def watch(seen: list[dict[str, Any]]) -> None:
        if seen[0]["state"] == "started" and not stopped:
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
    def take(seen: list[dict[str, Any]]) -> None:
        if seen[0]["state"] == "started":
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
    stream = stream_of([i * 1_000_000 for i in range(1000)])
    one = Serving(columns=dict(COLUMNS))
    two = [one.model_copy(update={"partitions": 2, "share": f"{number}/2"}) for number in range(2)]
    drivers = [Driver(stream, two[0], share=(0, 2)), Ahead(stream, two[1], share=(1, 2)), Ahead(stream, one)]
    servers = [Server(driver, "127.0.0.1", 0) for driver in drivers]

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


class Dependent(InThread):
    """A system that fails at once with its driver."""

    def begin_trial(self, setup: TrialSetup) -> None:
        self._driver = setup.endpoints[0]
        super().begin_trial(setup)

    def alive(self) -> bool:
        with Connection(self._driver) as asked:
            self.failure = self.failure or (asked.status()["failure"] and "its source is gone")
        return super().alive()


def test_a_driver_that_cannot_go_on_says_why(tmp_path: Path) -> None:
    # the second loop would end in 2315, beyond 63 bits of ns
    table = stream_table([0, 2**61, 2**62])
    pq.write_table(table, tmp_path / "part.parquet")
    (tmp_path / "manifest.json").write_text('{"files": ["part.parquet"], "tick": "ns"}')
    with Fleet(tmp_path, Replay(), tick="ns", columns=COLUMNS) as fleet:
        found = trial(fleet, Dependent(), rate=100, seconds=1)
    assert found.observation.invalid is not None
    assert "the driver failed: " in found.observation.invalid
    assert "64 bits" in found.observation.invalid


def test_the_known_system_is_an_engine_and_measures_in_its_own_process(fleet: Fleet) -> None:
    wanted = KnownSettings(name="k", engine="known", capacity=50_000, delay=Duration.parse("20ms"), noise=0.1)
    system = make_system(wanted, Path("."))
    found = trial(fleet, system, rate=2000, seconds=1)
    assert found.details["emitted"] == 2000
    assert (found.processing_latency.min or 0) >= 20e6
    assert extra(found.details["system"], "rows") == 2001
    assert system.alive()


@pytest.mark.parametrize(
    "engine", ["streamgauge.bench.engines.known.known_system:Nobody", "no.such:Thing", "json:Decoder"]
)
def test_an_unknown_engine_is_one_line(engine: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"systems\.k\.engine: "):
        make_system(OwnSettings(name="k", engine=engine), tmp_path)
