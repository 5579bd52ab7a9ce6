"""A wall clock that is set while a trial runs: how far is told, and the trial and the window are invalid."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

import pytest

from streamgauge.bench.driver.clock import Clock
from streamgauge.bench.driver.closed_loop import ClosedLoop
from streamgauge.bench.driver.fleet import RemoteDrivers
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.server import Server
from streamgauge.bench.driver.serving import Serving
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.config import Workload
from tests.driver.conftest import COLUMNS, stream_of
from tests.driver.in_thread import InThread

MS = 1_000_000
WORKLOAD = Workload(name="pass", query="passthrough")
PATIENT = Bounds(ready_s=20, max_slip_s=5)


class Hands:
    """A clock's hands, which somebody moves."""

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def read(self) -> int:
        return self.ns


def test_steps_add_up_in_both_directions_and_slow_adjustment_is_none() -> None:
    wall, steady = Hands(10**18), Hands(5)
    clock = Clock(wall.read, steady.read)
    seen = []
    for by, meanwhile in [(0, 1000), (-3000, 10), (0, 10), (3000, 10), (4, 10), (4, 10)]:
        steady.ns += meanwhile * MS
        wall.ns += (meanwhile + by) * MS
        seen.append(clock.stepped_ns() // MS)
    assert seen == [0, 3000, 3000, 6000, 6000, 6008], "what is below 5 ms is told once it has become more"


def test_a_thread_that_waits_between_two_readings_takes_that_for_no_step() -> None:
    steady = Hands(0)
    waits_ms = chain([0, 50, 50, 0], repeat(0))  # the first reading is that of the start

    def wall() -> int:
        steady.ns += next(waits_ms) * MS
        return steady.ns

    clock = Clock(wall, steady.read)
    assert clock.stepped_ns() == 0


class Settable:
    """The wall clock of this host, as if somebody had set it."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def read(self) -> int:
        return time.time_ns() + self.ahead_ns


@contextmanager
def driver_with(clock: Settable) -> Iterator[RemoteDrivers]:
    driver = Driver(stream_of([i * MS for i in range(1000)]), Serving(), clock=Clock(clock.read))
    server = Server(driver, "127.0.0.1", 0)
    try:
        yield RemoteDrivers((Endpoint("127.0.0.1", server.port, len(driver.partitions), ""),), "ns", COLUMNS)
    finally:
        server.close()


@contextmanager
def set_after(seconds: float, clock: Settable, by_s: float) -> Iterator[None]:
    def move() -> None:
        clock.ahead_ns += round(by_s * 1e9)

    timer = threading.Timer(seconds, move)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.mark.parametrize("by_s", [3.0, -3600.0])
def test_a_trial_whose_clock_is_set_ends_at_once_with_that_reason(by_s: float) -> None:
    clock = Settable()
    with driver_with(clock) as drivers, set_after(1.5, clock, by_s):
        began = time.monotonic()
        found = run_trial(InThread(), drivers, TrialRequest(WORKLOAD, Path("."), 1000, 20, PATIENT))
        took_s = time.monotonic() - began
    assert (found.observation.invalid or "").startswith("the driver's clock was set meanwhile, by ")
    [told] = found.details["drivers"]
    assert told["clock_step_ns"] == pytest.approx(abs(by_s) * 1e9, abs=10 * MS)
    assert took_s < 15


def enough(seconds: float) -> Callable[[object], bool]:
    until = time.monotonic() + seconds
    return lambda _: time.monotonic() > until


@pytest.mark.parametrize("by_s", [-3.0, 3.0])
def test_a_window_whose_clock_is_set_is_invalid_and_the_one_before_it_is_not(by_s: float) -> None:
    clock = Settable()
    with driver_with(clock) as drivers:
        loop = ClosedLoop(InThread(), drivers, TrialRequest(WORKLOAD, Path("."), bounds=PATIENT), continuous=False)
        assert loop.window(500, enough(1.5))
        assert loop.invalid is None
        with set_after(0.5, clock, by_s):
            assert loop.window(500, enough(2)) == ()
        assert (loop.invalid or "").startswith("the driver's clock was set meanwhile, by ")
        loop.close()
