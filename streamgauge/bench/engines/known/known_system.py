"""The calibration instrument: a system of known capacity, noise, delay and stall, over the real wire."""

from __future__ import annotations

import json
import secrets
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from streamgauge.bench.driver.child import spawn
from streamgauge.bench.driver.system import Adapter, Capabilities, TrialSetup
from streamgauge.bench.engines.known import process
from streamgauge.bench.engines.known.process import Wired
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.search.behaviour import Behaviour


class KnownSystem(Adapter):
    """The adapter (`SystemUnderTest`) of the known system; each trial runs in a process of its own."""

    def __init__(self, system: KnownSettings, work: Path, *, stall: tuple[float, float] | None = None) -> None:
        self.name = system.name
        self._work, self._cpus = work, system.cpus
        behaviour = Behaviour(
            capacity=system.capacity,
            batch_cost_s=system.batch_cost.seconds,
            batch_rows=system.batch_rows,
            noise=system.noise,
            hiccups=system.hiccups,
            compile_s=system.compile.seconds,
            between=system.between,
            continuous=system.continuous,
            pipeline_s=system.pipeline.seconds,
        )
        self.capabilities = Capabilities(continuous=behaviour.continuous)
        self._wired = Wired(
            behaviour,
            delay_s=system.delay.seconds,
            interval_s=system.trigger.seconds,
            stall_at_s=stall[0] if stall else None,
            stall_s=stall[1] if stall else 0.0,
            seed=system.seed,
            process=0,
        )
        self._process: subprocess.Popen[str] | None = None
        self._failure: str | None = None

    def start(self) -> None:
        """Chooses the next process of the seed to simulate, a random one if the seed is 0."""
        number = self._wired.process + 1 if self._wired.seed else secrets.randbelow(2**31)
        self._wired = replace(self._wired, process=number, worked_s=0.0)

    def begin_trial(self, setup: TrialSetup) -> None:
        self.stop()
        self._failure = None
        task = {
            "wired": asdict(self._wired),
            "endpoints": [asdict(endpoint) for endpoint in setup.endpoints],
            "attempt": setup.attempt,
            "cpus": ",".join(map(str, self._cpus)) if self._cpus else None,
        }
        self._process = spawn(process.__name__, json.dumps(task))

    def end_trial(self, timeout_s: float) -> dict[str, Any]:
        """Returns rows, batch count, CPU seconds and memory by name; {} if it had to be killed."""
        process = self._process
        if process is None:
            return {}
        try:
            output, _ = process.communicate(timeout=timeout_s)
            figures: dict[str, Any] = json.loads(output)
            self._wired = replace(self._wired, worked_s=figures.get("worked_s", self._wired.worked_s))
            return figures
        except (subprocess.TimeoutExpired, ValueError):
            return {}
        finally:
            self.stop()

    def alive(self) -> bool:
        process = self._process
        if process is None:
            return self._failure is None
        code = process.poll()
        if code and self._failure is None:
            said = process.stderr.read().strip().splitlines() if process.stderr else []
            self._failure = f"system {self.name} ended with {code}: {said[-1] if said else 'no error output'}"
        return not code

    @property
    def failure(self) -> str | None:
        return self._failure

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
