"""The calibration instrument: a system of known capacity, noise, delay and stall, over the real wire."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import NotRequired

import psutil

from streamgauge.base.processes import Child
from streamgauge.base.words import counted
from streamgauge.bench.driver.client import Connection, WireError, of_each
from streamgauge.bench.driver.system import Adapter, Capabilities, Fault, Share, TrialSetup
from streamgauge.bench.engines.known import process
from streamgauge.bench.engines.known.process import Wired
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.engines.processes import open_files
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Rules
from streamgauge.records.trial import Compared, SystemFigures


class KnownFigures(SystemFigures):
    """Figures of a trial of the known system; none if it had to be killed."""

    rows: NotRequired[int]
    batch_count: NotRequired[int]
    worked_s: NotRequired[float]


class KnownSystem(Adapter):
    """The adapter of the known system; each trial runs in a process of its own."""

    def __init__(self, system: KnownSettings, work: Path) -> None:
        super().__init__(system, work)
        self._cpus = system.cpus
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
            contention=system.contention,
            coherency=system.coherency,
        )
        self.capabilities = Capabilities(
            continuous=behaviour.continuous,
            faults=frozenset({"kill", "cut", "quota"}),
            spared={"restart": "it has no worker", "rescale": "its parallelism is that of its start"},
        )
        self._restart_s = system.restart.seconds
        self._wired = Wired(
            behaviour,
            delay_s=system.delay.seconds,
            interval_s=system.trigger.seconds,
            seed=system.seed,
            process=0,
            leak_bytes_per_s=system.leak,
            parallelism=system.parallelism,
            cpus_file=str(work.absolute() / "cpus"),
            commits_answered=system.commits == "answered",
            report_s=system.checkpoint.seconds,
            reconnect_s=system.reconnect.seconds,
        )
        self._process: Child | None = None
        self._setup: TrialSetup | None = None
        self._killed_s = 0.0

    def rules(self, spec: Spec) -> Rules:
        """The query's own rules with a watermark after each event, though it answers no query."""
        return Rules(spec.operators(), spec.watermark_ms * 1000, late_counted="none")

    def start(self) -> None:
        """Chooses the next process of the seed to simulate, a random one if the seed is 0."""
        number = self._wired.process + 1 if self._wired.seed else secrets.randbelow(2**31)
        self._wired = replace(self._wired, process=number, worked_s=0.0)

    def begin_trial(self, setup: TrialSetup) -> None:
        self.stop()
        self.failure, self._setup, self._killed_s = None, setup, 0.0
        self._launch(setup, 0.0)

    def _launch(self, setup: TrialSetup, from_s: float) -> None:
        """Starts a process that takes part in the trial from that instant on, in seconds since the epoch."""
        task = {
            "wired": asdict(self._wired),
            "endpoints": [asdict(endpoint) for endpoint in setup.endpoints],
            "attempt": setup.attempt,
            "cpus": ",".join(map(str, self._cpus)) if self._cpus else None,
            "from_s": from_s,
        }
        self._process = Child(process.__name__, task=json.dumps(task))

    def end_trial(self, timeout_s: float) -> KnownFigures:
        """Returns rows, batch count, CPU seconds and memory by name; without these if it had to be killed.

        The comparison of answers with events is among them if it was killed in the trial, or commits what is answered.
        """
        process, self._process = self._process, None
        output = "" if process is None else process.end(timeout_s)
        figures: KnownFigures = json.loads(output or "{}")
        self._wired = replace(self._wired, worked_s=figures.get("worked_s", self._wired.worked_s))
        if self._setup is not None and (self._killed_s or self._wired.commits_answered):
            with suppress(WireError):
                figures["check"] = _compared(self._setup)
        return figures

    def alive(self) -> bool:
        process = self._process
        if process is None:
            return self.failure is None
        code = process.poll()
        if code and self.failure is None:
            self.failure = f"system {self.name} ended with {code}: {process.last_error()}"
        return not code

    def vitals(self) -> dict[str, float]:
        """Returns memory and open files of the process of the trial."""
        if self._process is None:
            return {}
        with suppress(psutil.Error):
            process = psutil.Process(self._process.pid)
            return {"resident_memory": process.memory_info().rss, **open_files([process])}
        return {}

    def give(self, share: Share | None) -> None:
        """Lets it work as on so many CPUs; it simulates them, so the machine need not have them."""
        file = Path(self._wired.cpus_file)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(str(self._wired.parallelism if share is None else share.cpus))
        new.replace(file)  # at once, as the process reads the file before each batch

    def strike(self, fault: Fault) -> None:  # noqa: ARG002 it has no worker
        """Kills the process of the trial."""
        if self._process is not None:
            self._process.kill()
            self._killed_s = time.time()

    def resume(self) -> None:
        """Starts a fresh process, which goes on from what the last one has committed."""
        assert self._setup is not None, "begin a trial first"
        if self._process is not None:
            self._process.end()
        self.start()
        self._launch(self._setup, self._killed_s + self._restart_s)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()


def _compared(setup: TrialSetup) -> Compared:
    """Compares the number of answers with that of events: each event is one answer. Raises WireError."""
    seen = of_each(setup.endpoints, "", Connection.observe)
    expected = sum(sum(one["offered"]) - one["partitions"] * (one["state"] == "stopped") for one in seen)
    reported = sum(report["body"]["rows"] for one in seen for report in one["reports"])
    wrong = None if reported == expected else f"output wrong: {counted(reported, 'row')}, {expected} expected"
    return {"wrong": wrong, "expected_rows": expected, "reported_rows": reported}
