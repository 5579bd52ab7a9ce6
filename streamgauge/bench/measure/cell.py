"""Makes a cell ready (its stream, driver processes and system), and measures windows and trials of it."""

from __future__ import annotations

import dataclasses
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from streamgauge import metrics
from streamgauge.base.errors import Outage, UserError
from streamgauge.bench.driver.closed_loop import LONGEST_WINDOW_S, ClosedLoop
from streamgauge.bench.driver.fleet import Drivers, DriversMaker, drivers
from streamgauge.bench.driver.marking import Marking
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.paced_loop import PacedLoop
from streamgauge.bench.driver.queues import held_rows
from streamgauge.bench.driver.replay import memory_of_each
from streamgauge.bench.driver.system import Adapter, Capabilities, Share, make_system, rules_of
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import LONGEST_LADDER_S, OVERLOAD, Bounds, Through, TrialRequest
from streamgauge.bench.measure import telemetry
from streamgauge.bench.measure.cell_plan import CellPlan
from streamgauge.bench.measure.checks import allowed_cpus, named_ids
from streamgauge.bench.measure.measured import judged
from streamgauge.bench.measure.output_check import compared, salted, size
from streamgauge.bench.measure.overflow import refuse_before_1970, refuse_overflow
from streamgauge.bench.measure.own_speed import own_speed
from streamgauge.bench.measure.telemetry import Progress
from streamgauge.bench.measure.vitals import Look
from streamgauge.bench.measurements.search.record import Declared
from streamgauge.bench.search.ladder import warm_up
from streamgauge.bench.search.steps import Hold
from streamgauge.bench.workloads import Spec, find
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark, Cell, System, Workload, pick
from streamgauge.records.loss import Loss
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.measurement import Limits, TrialObservation, Window
from streamgauge.records.trial import TrialResult
from streamgauge.streams.keys import stream_key

log = logging.getLogger("streamgauge")
_L = TypeVar("_L", bound=ClosedLoop)
#: the first seconds of a trial that begins with empty queues do not count: its query compiles its plan
SETTLE_S = 2.0


class ReadyCell:
    """Driver processes and system of a cell; windows and trials run one after the other."""

    def __init__(self, plan: CellPlan, streams: Sequence[Artifact], fleet: Drivers, work: Path) -> None:
        """Makes the first of the plan's cells ready. streams: of each cell."""
        self.plan, self.cells, self.cell, self.fleet = plan, plan.cells, plan.cells[0], fleet
        self.workload: Workload = plan.workload
        self.settings: System = plan.system.model_copy(update={"cpus": allowed_cpus(plan.system.cpus)})
        self._streams, self._work = streams, work
        self._system: Adapter | None = None
        self._spare: Adapter | None = None
        self._loop: ClosedLoop | None = None
        self._has_started, self._has_taken, self._runs = False, False, 0
        spec, queues = Spec.of(self.workload, fleet.columns), (plan.replay.partitions, plan.system.partition_by)
        rules = rules_of(self._next(), spec)
        self._losses = [own_speed(one, spec, rules, *queues) for one in streams]
        self._ids = named_ids(plan.replay, self.settings, fleet.columns)
        self._warm_up_s: float | None = None  # length of the warm-up, where it is not the search's
        self._cold: str | None = None  # why the last warm-up failed
        self.paused = False  # the system has ended its batch and waits

    def turn_to(self, cell: Cell) -> None:
        """Measures that cell from now on; the process and, in a closed loop, its query go on."""
        self.cell = cell

    @property
    def _number(self) -> int:
        return self.cells.index(self.cell)

    @property
    def lost_at_own_speed(self) -> Loss:
        """Number of events that the cell's query loses at its stream's own speed."""
        return self._losses[self._number]

    @property
    def running(self) -> bool:
        """True while a system runs, cold or warm."""
        return self._system is not None

    @property
    def capabilities(self) -> Capabilities:
        """The declaration of the system's adapter, with these settings."""
        return (self._system or self._next()).capabilities

    def _next(self) -> Adapter:
        self._spare = self._spare or make_system(self.settings, self._work / "system")
        return self._spare

    @property
    def continuous(self) -> bool:
        """True for an engine without micro-batches."""
        return self.capabilities.continuous

    @property
    def limits(self) -> Limits:
        """The limits of a window: the rows that may wait, whatever the rate."""
        return Limits(most_rows=held_rows(self.plan.replay.max_memory_mb), continuous=self.continuous)

    @property
    def semantics(self) -> Declared | None:
        """The engine's declared treatment of event time, and its kind of state; None if nothing is declared."""
        semantics = self.settings.semantics or self.capabilities.semantics
        return None if semantics is None else Declared(**vars(semantics), state=self.settings.state)

    def trial(
        self, rate: float, seconds: float, *, token: int, behind_s: float = 0.0, batch_noise: float | None = None,
        until: Callable[[TrialObservation], bool] | None = None, look: Look | None = None,
        through: Through = nullcontext,
    ) -> TrialResult:  # fmt: skip
        """Runs one open-loop trial at `rate` events/s for at most `seconds`.

        A system that does not run is started and warmed up first; one that failed is replaced for the next trial.
        behind_s: age of the backlog at the start, seconds. until: ends it once that is true of what was seen so far.
        look: is called several times a second, and may strike the system. through: yields the system's endpoints.
        """
        with metrics.step(self.cell.name):
            cold = self._warmed(token) if self._system is None or self._cold else None
            self.end_loop()

            def over(so_far: TrialObservation) -> bool:
                # until the link has handed on the backlog, the trial tells of the link
                return until is not None and system.handed_on() and until(so_far)

            system = self._started()
            self._pin()
            try:
                self._again(self.fleet.start)
                request = dataclasses.replace(
                    self._request(token, rate, seconds, behind_s), batch_noise=batch_noise,
                    over=over if until else None, through=through,
                    progress=Progress(rate, partial(look, system, self._work) if look else None),
                )  # fmt: skip
                run = run_trial(system, self.fleet, request)
            finally:
                self._over()
            measured = self._judged(run, cold)
            telemetry.done(run)
            return measured

    def _warmed(self, token: int) -> str | None:
        """Warms a fresh system up, a second time if the first one failed; returns why it is cold, or None."""
        for _ in range(2):
            self.warm_up(token=token, seconds=self._warm_up_s)
            if self._cold is None:
                return None
        return f"the system is cold, as its warm-up failed twice: {self._cold}"

    def warm_up(self, *, token: int, seconds: float | None = None) -> list[Window]:
        """Runs closed-loop windows until the cost of a batch is steady, or for `seconds`; returns them."""
        settings, self._warm_up_s = self.plan.search, seconds
        settings = settings if seconds is None else settings.model_copy(update={"warmup_seconds": seconds})
        windows = warm_up(settings, self.limits, partial(self.window, token=token))
        self._cold = windows[-1].invalid if windows else None
        if self._cold:
            log.info("  the warm-up ended: %s", self._cold)
        self.end_loop()
        return windows

    def window(self, step: Hold, *, token: int) -> Window:
        """Measures a closed-loop window; the query keeps running from one window to the next."""
        self.paused = False
        loop = self._closed_loop(token)
        if step.purpose != "compile":
            self._pin()
        with metrics.step(self.cell.name):
            longest_s = max(LONGEST_WINDOW_S, 8 * self.plan.search.max_age.seconds)
            batches = loop.window(step.rows, step.enough, longest_s, self._number)
        if loop.invalid is not None:
            failed = not self._system.alive() if self._system is not None else False
            self.end_loop()
            if failed and not self._has_taken and not loop.taken:  # another start would end as this one
                raise UserError(f"systems.{self.settings.name}: {loop.invalid}")
        self._has_taken = self._has_taken or loop.taken
        return Window(
            step.process,
            step.purpose,
            step.rows,
            batches,
            loop.invalid,
            block=step.block,
            held_back=loop.held_back,
            stuck=loop.stuck,
        )

    def _pin(self) -> None:
        """Pins the system to its CPUs from now on, where its adapter can."""
        if self._system is not None and self.settings.cpus:
            self._system.pin()

    def give(self, share: Share | None) -> None:
        """Gives the system that share of the CPUs from now on, as its adapter does. Raises UserError."""
        (self._system or self._next()).give(share)

    def pause(self) -> None:
        """Lets the system end its batch and wait; the next window wakes it."""
        if self._loop is not None:
            self._loop.pause()
        self.paused = True

    def frozen(self) -> AbstractContextManager[None]:
        """A context in which nothing of the system runs, where its adapter can do that."""
        return nullcontext() if self._system is None else self._system.frozen()

    def cpu_seconds(self) -> float | None:
        """CPU seconds of the system that runs; None where they are not known."""
        return None if self._system is None else self._system.cpu_seconds()

    def end_loop(self) -> None:
        """Ends the closed loop's query, if one runs."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()
            self._over()

    def _over(self) -> None:
        """Leaves nothing of the last run, and ends a system that has failed."""
        shutil.rmtree(self._run_directory, ignore_errors=True)
        if self._system is not None and not self._system.alive():
            self.stop()

    def _closed_loop(self, token: int) -> ClosedLoop:
        if self._loop is not None and self._loop.spent():
            self.end_loop()  # the next query begins with the stream's own times
        self._loop = self._loop or self._made(ClosedLoop, token, None)
        return self._loop

    def _made(self, kind: type[_L], token: int, rate: float | None) -> _L:
        """Makes a loop on the system that runs; rate: in events/s, None for a closed one."""
        system = self._started()
        self._again(self.fleet.start)
        request = dataclasses.replace(self._request(token, rate or OVERLOAD), progress=Progress(rate))
        return kind(system, self.fleet, request, continuous=self.continuous)

    def paced(self, rate: float, turns: Sequence[int], seconds: float, *, token: int) -> TrialRun:
        """Offers the streams of these cells, by number, in turns to one query; nothing checks its rows."""
        cold = self._warmed(token) if self._system is None or self._cold else None
        self.end_loop()
        loop = self._made(PacedLoop, token, rate)
        self._pin()
        try:
            for number in turns:
                loop.turn(number, seconds)
            run = loop.close()
            observation = dataclasses.replace(run.observation, invalid=run.observation.invalid or cold)
            return dataclasses.replace(run, observation=observation)
        finally:
            self._over()

    @property
    def _run_directory(self) -> Path:
        return self._work / f"trial-{self._runs}"

    def _request(
        self, token: int, rate: float, seconds: float = LONGEST_LADDER_S, behind_s: float = 0.0
    ) -> TrialRequest:
        """Requests the next run, in a fresh directory; one that begins behind may take as long to drain."""
        self._runs += 1
        shutil.rmtree(self._run_directory, ignore_errors=True)
        self._run_directory.mkdir(parents=True)
        bounds = Bounds.of(self.plan.replay, self.plan.search, self.settings.start_s, SETTLE_S)
        return TrialRequest(
            self.workload, self._run_directory, rate, seconds, behind_s=behind_s, stream=self._number,
            bounds=dataclasses.replace(bounds, drain_s=max(bounds.drain_s, behind_s)),
            attempt=f"{token}-{self.cell.name}-{self._runs}-{time.time_ns()}",
            marking=Marking(self._ids, 2 * self._runs),  # every other round is left for what warms a job up
        )  # fmt: skip

    def _judged(self, run: TrialRun, cold: str | None) -> TrialResult:
        stream, replay = self._streams[self._number], self.plan.replay
        memory = memory_of_each(replay.max_memory_mb, len(self._streams))  # a driver with all streams parts it
        replay = replay.model_copy(update={"max_memory_mb": memory})
        run.details["stream"] = size(stream, replay.densify)
        compare = partial(compared, run, stream, self.fleet, replay, self.workload)
        return judged(run, self.plan.search, cold, compare, self.lost_at_own_speed)

    def stop(self) -> None:
        """Ends the system; the next window or trial starts a fresh one."""
        self.end_loop()
        if self._system is not None:
            self._system.stop()
            self._system = None

    def _started(self) -> Adapter:
        if self._system is None:
            system, self._spare = self._next(), None
            log.info("starting system %s", self.settings.name)
            self._again(system.start)
            self._system, self._has_started = system, True
        return self._system

    def _again(self, start: Callable[[], None]) -> None:
        """Starts something. Raises Outage, not UserError, if the system ran before: then no setting is at fault."""
        try:
            start()
        except UserError as problem:
            if self._has_started:
                raise Outage(f"it started before with these settings, but failed to start again: {problem}") from None
            raise


@contextmanager
def ready(
    benchmark: Benchmark, store: Store, cell: Cell, work: Path, made: DriversMaker = drivers,
    others: Sequence[Cell] = (),
) -> Iterator[ReadyCell]:  # fmt: skip
    """Starts driver processes by `made`, and yields the cell; all that runs ends with the block. Raises UserError.

    others: cells that share its system, and differ from it in their stream alone (`ReadyCell.turn_to`).
    """
    cells = (cell, *others)
    for one in cells:
        pick(benchmark.all_cells(), one.name, "cell")
    workload, system = benchmark.workload(cell.workload), benchmark.system(cell.system)
    experiments = [benchmark.experiment(one.experiment) for one in cells]
    stream, *rest = [store.need("stream", stream_key(store, benchmark, one), "generate") for one in experiments]
    manifest = stream.read(StreamManifest)
    declared = manifest.columns
    Spec.of(workload, declared)  # raises for unusable keys and values before anything starts
    refuse_overflow((stream, *rest), workload)
    refuse_before_1970((stream, *rest), system)
    query = find(workload.query)
    names = declared if system.every_column else (*query.columns, workload.key, workload.value)
    needed = {name: declared[name] for name in names if name is not None}
    fleet = made(
        stream, benchmark.replay, tick=manifest.tick, columns=needed,
        line=query.line or system.lines, salted=salted(workload), others=rest, partition_by=system.partition_by,
    )  # fmt: skip
    with fleet as processes:
        plan = CellPlan(cells, workload, system, benchmark.replay, benchmark.search)
        cell_ready = ReadyCell(plan, [stream, *rest], processes, work)
        log.info("%s: %s", cell.name, cell_ready.lost_at_own_speed.sentence)
        try:
            yield cell_ready
        finally:
            cell_ready.stop()
