"""A cell made ready: its stream, its driver processes, its system, and one measured trial of it."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge import metrics
from streamgauge.artifacts import Artifact, Store
from streamgauge.config import Benchmark, Cell, System, Workload
from streamgauge.driver.ceiling import Ceiling, ceiling
from streamgauge.driver.fleet import Drivers, drivers
from streamgauge.driver.replay import load_stream, offered_rows
from streamgauge.driver.system import SystemUnderTest, make_system
from streamgauge.driver.trial import Bounds, TrialRun, run_trial
from streamgauge.errors import Outage, UserError
from streamgauge.measure import counted
from streamgauge.schemas import NEXMARK_IDS
from streamgauge.trial import TrialObservation, Verdict
from streamgauge.verdict import carried, judge
from streamgauge.workloads import Spec, find

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

log = logging.getLogger("streamgauge")
PROGRESS_SECONDS = 5.0
WARM_UP_SECONDS = 10.0
#: rows of its micro-batches, at most; and at most so many seconds of the rate that follows
WARM_UP_ROWS, WARM_UP_SHARE = 20_000, 0.1
#: so much more than a rate is more than the system carries
OVERLOAD = 4.0
#: warm when a round carries less than that much of what the round before it carried
STEADY = 1.05
#: a round that carries more of what it was offered shows no limit
SATURATED = 0.9


@dataclass(frozen=True)
class Measured:
    """One trial with its verdict; a wrong output makes it invalid."""

    observation: TrialObservation
    verdict: Verdict
    run: TrialRun
    carried_events_per_s: float | None
    check: dict[str, Any] | None  # expected and reported rows, checksums, late drops; None: not checked

    @property
    def correct(self) -> bool | None:
        return None if self.check is None else self.check["wrong"] is None

    def record(self) -> dict[str, Any]:
        """For a JSON line."""
        return {
            "rate_events_per_s": self.observation.rate_events_per_s,
            "seconds": self.observation.seconds,
            "outcome": self.verdict.outcome,
            "reason": self.verdict.reason,
            "figures": self.verdict.figures,
            "carried_events_per_s": self.carried_events_per_s,
            "observation": dataclasses.asdict(self.observation),
            "correct": self.correct,
            "check": self.check,
            "details": self.run.details,
        }


class ReadyCell:
    """Driver processes and system of a cell; trials run one after the other."""

    def __init__(
        self,
        benchmark: Benchmark,
        cell: Cell,
        stream: Artifact,
        fleet: Drivers,
        work: Path,
        session: Callable[[], SparkSession],
    ) -> None:
        self.benchmark, self.cell, self.fleet = benchmark, cell, fleet
        self.workload: Workload = benchmark.workload(cell.workload)
        system = benchmark.system(cell.system)
        self.settings: System = system.model_copy(update={"cpus": _allowed(system.cpus)})
        self._stream, self._work, self._session = stream, work, session
        self._system: SystemUnderTest | None = None
        self._has_started = False
        self._trials = 0
        self._preparing: threading.Thread | None = None

    def ceiling(self) -> Ceiling:
        """What the driver delivers without a system."""
        return ceiling(self.fleet)

    def trial(self, rate: float, seconds: float, *, token: int, hold: bool = False) -> Measured:
        """One trial in the warm system; a system that failed is replaced for the next one.

        hold: a probe for the carried rate, whose output is not checked. A system that has just started warms up first.
        """
        with metrics.step(self.cell.name):
            if self._system is None:
                self._warm_up(rate, token)
            self._prepared()
            run = self._run(rate, seconds, token=token, hold=hold)
            if self.benchmark.search.fresh == "trial":
                self.stop()
            counted.done(measured := self._judged(run, checked=not hold))
        return measured

    def warm_up(self, rate: float, seconds: float, *, token: int) -> None:
        """A round of that length, in place of those that the first trial would run."""
        self._prepare_check()
        self._run(rate, seconds, token=token, hold=True, warm_up=True)

    def _warm_up(self, rate: float, token: int) -> None:
        """Rounds of small micro-batches, as fast as they go, until one carries hardly more than the one before.

        What a micro-batch costs is compiled last: a JVM needs hundreds of them, and large ones would take minutes.
        """
        rounds = 0 if self.settings.engine == "known" else self.benchmark.search.warmup_rounds  # set, not compiled
        rows, before = max(1, min(WARM_UP_ROWS, round(WARM_UP_SHARE * rate))), 0.0
        more = max(rate, min(OVERLOAD * rate, self.benchmark.search.max_rate))
        if rounds:
            self._prepare_check()
        for number in range(1, rounds + 1):
            if self._system is None:
                before = 0.0  # the one before has died
            run = self._run(more, WARM_UP_SECONDS, token=token, hold=rows, warm_up=True)
            if (carries := carried(run.observation)) is None:
                return
            batches = len(run.observation.samples)
            log.info("  warming up, round %d: %d micro-batches, %.4g events/s", number, batches, carries)
            if carries < STEADY * before and carries < SATURATED * more:
                return
            before = carries

    def _run(self, rate: float, seconds: float, *, token: int, hold: bool | int, warm_up: bool = False) -> TrialRun:
        system = self._started()
        self._trials += 1
        work = self._work / f"trial-{self._trials}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        search, replay = self.benchmark.search, self.benchmark.replay
        bounds = Bounds(
            max_slip_s=replay.max_slip.seconds,
            max_clock_offset_s=replay.max_clock_offset.seconds,
            warmup_batches=search.warmup_batches,
        )
        beyond_us = Spec.of(self.workload, self.fleet.columns).beyond_us
        attempt = f"{token}-{self.cell.name}-{self._trials}-{time.time_ns()}"
        try:
            self._again(self.fleet.start)
            return run_trial(
                system, self.fleet, self.workload, rate=rate, seconds=seconds, work=work, bounds=bounds,
                hold=hold, beyond_us=beyond_us, warm_up=warm_up, attempt=attempt, progress=_Progress(rate),
            )  # fmt: skip
        finally:
            shutil.rmtree(work, ignore_errors=True)
            if not system.alive():
                self.stop()

    def _judged(self, run: TrialRun, *, checked: bool) -> Measured:
        observation, check = run.observation, None
        failure = run.details.get("system", {}).get("failure")
        if observation.invalid is None and failure and not observation.overflow:  # which was cut short
            observation = dataclasses.replace(observation, invalid=f"the system failed: {failure}")
        if checked and observation.invalid is None and run.details.get("drained") and not observation.overflow:
            check = self._check(run)
            if check and check["wrong"]:
                observation = dataclasses.replace(observation, invalid=check["wrong"])
        verdict = judge(observation, self.benchmark.search)
        if checked and verdict.outcome == "sustainable" and run.details.get("drained") is False:
            # its last answers are unknown, and so is whether the others are right
            observation = dataclasses.replace(observation, invalid="the system did not end its work in time")
            verdict = judge(observation, self.benchmark.search)
        return Measured(observation, verdict, run, carried(run.observation), check)

    def close(self) -> None:
        try:
            self.stop()
        finally:
            self._prepared()

    def stop(self) -> None:
        if self._system is not None:
            self._system.stop()
            self._system = None

    def _started(self) -> SystemUnderTest:
        if self._system is None:
            system = make_system(self.settings, self._work / "system")
            log.info("starting system %s", self.settings.name)
            self._again(system.start)
            self._system, self._has_started = system, True
        return self._system

    def _again(self, start: Callable[[], None]) -> None:
        """What came up with these very settings, and now does not, is nobody's mistake: Outage, worth another try."""
        try:
            start()
        except UserError as problem:
            if self._has_started:
                raise Outage(f"it ran before, and does not start again: {problem}") from None
            raise

    def _check(self, run: TrialRun) -> dict[str, Any] | None:
        """The output against the batch answer on the same events; None for a system that keeps no batch log."""
        figures, epochs = run.details["system"], run.details["epochs"]
        if not figures.get("batches") or any(epoch.get("checksum") is None for epoch in epochs):
            return None
        from streamgauge.link.check import check

        rows = self._offered([driver["offered"] for driver in run.details["drivers"]])
        began = time.monotonic()
        try:
            found = check(self._session(), rows, figures, epochs, Spec.of(self.workload, self.fleet.columns))
        except ValueError as problem:
            return {"wrong": f"output not checked: {problem}"}
        log.info("checked %d events against the batch answer in %.1f s", rows.num_rows, time.monotonic() - began)
        return found.to_dict()

    def _offered(self, per_process: Sequence[Sequence[int]]) -> pa.Table:
        """The events behind such counts, which include a sentinel for each partition."""
        replay = self.benchmark.replay
        stream = load_stream(
            self._stream.files(), self.fleet.tick, self.fleet.columns,
            line=self.fleet.line, max_memory_mb=max(1, replay.max_memory_mb // replay.shares),
            densify=replay.densify, salted=_salted(self.workload),
        )  # fmt: skip
        return offered_rows(stream, [[count - 1 for count in counts] for counts in per_process])

    def _prepare_check(self) -> None:
        """Begins to start what checks answers, while the system warms up: its first check would wait for it."""
        if self._preparing is None and self.settings.engine == "spark":
            self._preparing = threading.Thread(target=self._check_nothing, name="prepare-check", daemon=True)
            self._preparing.start()

    def _prepared(self) -> None:
        """Before a trial that counts, and before anybody else asks for the session: it is made by one thread."""
        if self._preparing is not None:
            self._preparing.join()

    def _check_nothing(self) -> None:
        from streamgauge.link.check import answer
        from streamgauge.link.oracle import expectation

        try:
            none = self._offered([[1]])  # a partition with nothing but its sentinel
            answer(self._session(), expectation(none, [], Spec.of(self.workload, self.fleet.columns)))
        except Exception as problem:  # the first check will tell
            log.debug("the checks were not prepared: %s", problem)


@contextmanager
def ready(
    benchmark: Benchmark, store: Store, cell: Cell, work: Path, session: Callable[[], SparkSession]
) -> Iterator[ReadyCell]:
    """A cell whose driver runs; everything it started ends with the block. Raises UserError."""
    if cell not in benchmark.all_cells():
        known = ", ".join(c.name for c in benchmark.all_cells()) or "none"
        raise UserError(f"cell: found {cell.name}, allowed: {known}")
    experiment, workload = benchmark.experiment(cell.experiment), benchmark.workload(cell.workload)
    stream = store.need("stream", store.stream_key(benchmark, experiment), "generate")
    declared: dict[str, str] = stream.manifest["columns"]
    Spec.of(workload, declared)  # tells unusable keys and values before anything starts
    query = find(workload.query)
    needed = {name: declared[name] for name in (*query.columns, workload.key, workload.value) if name is not None}
    fleet = drivers(
        stream, benchmark.replay, tick=stream.manifest["tick"], columns=needed,
        line=query.line, salted=_salted(workload),
    )  # fmt: skip
    with fleet:
        cell_ready = ReadyCell(benchmark, cell, stream, fleet, work, session)
        try:
            yield cell_ready
        finally:
            cell_ready.close()


def software_of(details: Mapping[str, Any]) -> dict[str, str]:
    """What the measured system is, of a trial's details: it may have another Spark than we."""
    system = details.get("system", {})
    return {key: system[key] for key in ("spark", "java") if key in system}


def application_of(details: Mapping[str, Any]) -> dict[str, str]:
    """Where the measured Spark keeps what it did (streamgauge.spark.history)."""
    found: dict[str, str] = details.get("system", {}).get("application", {})
    return found


def _allowed(cpus: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Those that this machine has; pinning is a wish, and the log tells when it is not met."""
    if not cpus:
        return None
    found = tuple(cpu for cpu in cpus if cpu in os.sched_getaffinity(0))
    if found != cpus:
        log.info("CPUs %s are not all here: %s", cpus, f"pinned to {found}" if found else "not pinned")
    return found or None


def _salted(workload: Workload) -> tuple[str, ...]:
    """Its key; of a query that knows its columns, all ids."""
    ids = [name for name in find(workload.query).columns if name in NEXMARK_IDS]
    return tuple(dict.fromkeys([*ids, *([workload.key] if workload.key else [])]))


class _Progress:
    """A log line every few seconds while a trial runs."""

    def __init__(self, rate: float) -> None:
        self._rate, self._next = rate, time.monotonic() + PROGRESS_SECONDS

    def __call__(self, seen: dict[str, Any]) -> None:
        offered, planned = (sum(sum(d[key]) for d in seen["drivers"]) for key in ("offered", "planned"))
        if not offered:
            return
        counted.state(self._rate, offered, planned)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_SECONDS
            log.info(
                "  at %.6g events/s: offered %d, taken %d, waiting %d", self._rate, offered, planned, offered - planned
            )
