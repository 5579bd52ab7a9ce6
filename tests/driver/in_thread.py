"""The known system in the thread of a test, and trials of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.bench.driver.client import WireError
from streamgauge.bench.driver.fleet import Fleet, RemoteDrivers
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.system import Adapter, TrialSetup
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.known.process import Wired, run
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay, Workload
from streamgauge.records.rules import Rules
from tests.driver.conftest import COLUMNS

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
    return run_trial(system, fleet, TrialRequest(WORKLOAD, Path("."), rate, seconds, **more))
