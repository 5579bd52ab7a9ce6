"""The scaling stage: rates on parts of the machine or over a setting, in turns, and what follows from them."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from streamgauge.base.errors import Outage, UserError
from streamgauge.bench.driver.queues import held_rows
from streamgauge.bench.driver.system import Share
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.measured import software_of
from streamgauge.bench.measurements.latency.stage import sustainable
from streamgauge.bench.measurements.scaling.record import (
    Carried,
    Checked,
    Scalability,
    ScalingRun,
    counts_workers,
    law_of,
    need_of,
)
from streamgauge.bench.measurements.scaling.section import CHECK_S, Scaling
from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.estimate import differ_of, geometric_mean, interval
from streamgauge.bench.search.ladder import warm_up
from streamgauge.bench.search.parts import Point, measure_parts
from streamgauge.bench.search.steps import Hold
from streamgauge.config.changing import why_not, with_setting
from streamgauge.records.measurement import Limits, Window
from streamgauge.records.trial import TrialResult
from streamgauge.stats.scalability import Law, Refused, cost_per_billion

log = logging.getLogger("streamgauge")
#: an engine without micro-batches has so long to work on what it took with other CPUs
SETTLE_S = 1.0
#: part of the rate at which answers are compared
CHECKED = 0.6


def measure(cell_run: CellRun, section: Scaling) -> dict[str, object]:
    """Measures; returns facts for the log of stages. Raises UserError without a rate, or without such parts."""
    searched = _searched(cell_run)
    whole, begin = searched[-1], time.monotonic()
    name, setting = cell_run.cell.system, section.setting
    expected_s = section.cell_seconds(cell_run.benchmark)
    if setting is not None:
        asked = {value: why_not(cell_run.benchmark, name, setting, value) for value in sorted(section.values or ())}
        taken = section.model_copy(update={"values": tuple(value for value, why in asked.items() if not why)})
        carried = [Carried(cpus=value, reason=f"it is not measurable: {why}") for value, why in asked.items() if why]
        checked, software = None, dict[str, str]()
        if taken.values:
            with cell_run.locked(expected_s) as token:  # for all visits: no other measurement comes in between
                begin = time.monotonic()
                rates, checked, software = _measured(_Afresh(cell_run, setting, token), cell_run, taken, whole)
            carried = sorted([*carried, *rates], key=lambda one: one.cpus)
    else:
        with cell_run.ready(expected_s) as (bench, token):
            begin = time.monotonic()
            turns = _Turns(bench, token, section.cores is not None)
            turns.refuse(section.parts)
            carried, checked, software = _measured(turns, cell_run, section, whole)
    seconds = time.monotonic() - begin
    differs = differ_of([one.rate_events_per_s for one in searched])
    percent = cell_run.benchmark.experiment(cell_run.cell.experiment).target_percent or 0.0
    about = {"cell": cell_run.cell, "target_percent": percent, "seconds": seconds}
    run = record_of(cell_run.plan_key, section, carried, differs).model_copy(
        update={**about, "checked": checked, "software": software}
    )
    run.write(cell_run.directory / "scaling.json")
    log.info("  %s", sentence_of(run))
    keep(cell_run, run)
    return {"points": len(run.known), "law": run.refused or "fitted"}


def _searched(cell_run: CellRun) -> Sequence[Estimate]:
    """The estimates that the search found without parts, one of each process."""
    if sustainable(cell_run) is None:
        raise UserError(f"scaling: {cell_run.cell.name} has no rate that counts; search again")
    return cell_run.searched().processes


@dataclass(frozen=True)
class _Turns:
    """A ready cell whose CPUs change between windows."""

    bench: ReadyCell
    token: int
    whole: bool

    def refuse(self, parts: Sequence[float]) -> None:
        """Raises UserError, before anything starts, where the adapter or this machine offers no such parts."""
        name = self.bench.settings.name
        if "quota" not in self.bench.capabilities.faults:
            raise UserError(f"scaling: systems.{name} takes no part of the CPUs: its adapter declares no fault quota")
        try:
            self.bench.give(Share(max(parts), self.whole))
            self.bench.give(None)
        except UserError as problem:
            raise UserError(f"scaling.{'cores' if self.whole else 'quotas'}: {problem}") from None

    @contextmanager
    def visit(self, cpus: float) -> Iterator[Callable[[Hold], Window]]:
        """Yields what carries windows out on so many CPUs."""

        def window(step: Hold) -> Window:
            if not self.bench.running:
                self.bench.give(None)
            if cold := _warm_up(self.bench, self.token):
                return Window(step.process, step.purpose, step.rows, (), cold)
            if not self.bench.continuous:
                self.bench.pause()  # no batch is of two parts
            self.bench.give(Share(cpus, self.whole))
            if self.bench.continuous:
                time.sleep(SETTLE_S)
            return self.bench.window(step, token=self.token)

        yield window

    def trial(self, cpus: float, rate: float) -> TrialResult:
        """Runs an open-loop trial on so many CPUs."""
        self.bench.end_loop()
        self.bench.give(Share(cpus, self.whole))
        return self.bench.trial(rate, CHECK_S, token=self.token)


@dataclass(frozen=True)
class _Afresh:
    """A cell that is made ready anew, and warmed up, for each visit to a value of a setting."""

    cell_run: CellRun
    setting: str
    token: int

    def _started(self, value: float) -> AbstractContextManager[ReadyCell]:
        changed = with_setting(self.cell_run.benchmark, self.cell_run.cell.system, self.setting, int(value))
        return replace(self.cell_run, benchmark=changed).started()

    @contextmanager
    def visit(self, value: float) -> Iterator[Callable[[Hold], Window]]:
        """Yields what carries windows out with that value."""
        with self._started(value) as bench:

            def window(step: Hold) -> Window:
                if cold := _warm_up(bench, self.token):
                    return Window(step.process, step.purpose, step.rows, (), cold)
                return bench.window(step, token=self.token)

            yield window

    def trial(self, value: float, rate: float) -> TrialResult:
        """Runs an open-loop trial with that value."""
        with self._started(value) as bench:
            return bench.trial(rate, CHECK_S, token=self.token)


def _warm_up(bench: ReadyCell, token: int) -> str | None:
    """Warms up a process that is fresh, whose query goes on then. Returns why it is cold, or None."""
    if bench.running:
        return None
    windows = warm_up(bench.plan.search, bench.limits, partial(bench.window, token=token))
    cold = windows[-1].invalid if windows else None
    if cold is None:
        return None
    bench.stop()  # the next window warms up another one
    return f"its warm-up failed: {cold}"


def _measured(
    turns: _Turns | _Afresh, cell_run: CellRun, section: Scaling, whole: Estimate
) -> tuple[list[Carried], Checked | None, dict[str, str]]:
    """Measures all points, and compares answers on one of them; returns versions of the system, too.

    Answers are compared on the smallest part, which has the least to spare, or the largest value, where most workers
    may go wrong.
    """
    benchmark, at = cell_run.benchmark, section.setting or "CPUs"
    # without micro-batches, a batch has no cost
    limits = Limits(most_rows=held_rows(benchmark.replay.max_memory_mb), continuous=whole.batch_cost_s is None)

    @contextmanager
    def visit(part: float) -> Iterator[Callable[[Hold], Window]]:
        with turns.visit(part) as window:

            def logged(step: Hold) -> Window:
                log.info("%s %.15g, %s: %d rows waiting", at, part, step.reason, step.rows)
                measured = window(step)
                log.info("  %s", measured.invalid or f"{measured.rows / measured.seconds:.5g} events/s")
                return measured

            yield logged

    points = measure_parts(
        section.parts, section.blocks, section.seed, benchmark.search, limits, whole, visit,
        in_proportion=section.setting is None,
    )  # fmt: skip
    carried = [carried_of(points, part, section.parts, section.setting) for part in section.parts]
    rates = [(one.rate_events_per_s, one.cpus) for one in carried if one.rate_events_per_s]
    if not rates:
        return carried, None, {}
    most, part = rates[0 if section.setting is None else -1]
    rate = CHECKED * most
    log.info("%s %.15g, answers at %.6g events/s", at, part, rate)
    try:
        checked, software = checked_of(turns.trial(part, rate), rate)
    except (UserError, Outage) as problem:
        if isinstance(problem, Outage) and section.setting is not None:
            raise  # fresh processes did not get that far, which is worth a retry
        checked, software = Checked(rate_events_per_s=rate, outcome="inconclusive", reason=str(problem)), {}
    if checked.outcome == "unsustainable":
        why = f"contradicted: at {CHECKED:.0%} of the estimate, {most:,.0f} events/s, {checked.reason}"
        points = [replace(one, estimate=None, reason=why) if one.cpus == part else one for one in points]
        carried = [carried_of(points, part, section.parts, section.setting) for part in section.parts]
    where = {} if section.setting is None else {"at": f"with {section.setting} {part:.15g}"}
    return carried, checked.model_copy(update=where), software


def checked_of(measured: TrialResult, rate: float) -> tuple[Checked, dict[str, str]]:
    """Reads the trial whose answers were compared; returns versions of the system, too."""
    reason = measured.observation.invalid or measured.reason
    log.info("  %s: %s", measured.outcome, reason)
    checked = Checked(rate_events_per_s=rate, outcome=measured.outcome, correct=measured.correct, reason=reason)
    return checked, software_of(measured.details)


def carried_of(points: Sequence[Point], cpus: float, parts: Sequence[float], setting: str | None = None) -> Carried:
    """The rate on so many CPUs over all blocks, and its efficiency against one CPU, or the least part without one.

    With a setting that is not known to count workers, a value twice as large should carry the same rate.
    """
    base = 1.0 if 1.0 in parts else min(parts)
    more = cpus / base if counts_workers(setting) else 1.0
    rates = {(one.block, one.cpus): one.estimate.rate_events_per_s for one in points if one.estimate}
    own = {block: rate for (block, at), rate in rates.items() if at == cpus}
    if not own:
        reasons = [one.reason for one in points if one.cpus == cpus and one.reason]
        return Carried(cpus=cpus, reason=reasons[-1] if reasons else "it was not measured")
    pairs = [rate / rates[block, base] / more for block, rate in own.items() if (block, base) in rates]
    limits = [one.estimate.constraint for one in points if one.cpus == cpus and one.estimate]
    return Carried(
        cpus=cpus,
        rate_events_per_s=geometric_mean([*own.values()]),
        interval=interval([*own.values()]),
        efficiency=geometric_mean(pairs) if pairs else None,
        efficiency_interval=interval(pairs) if cpus != base else None,
        blocks=tuple(own.values()),
        limited_by=limits[-1],
    )


def record_of(plan: str, section: Scaling, carried: Sequence[Carried], differ: float) -> ScalingRun:
    """The record of what these parts carry. differ: part by which a process differs from the middle of all."""
    points = tuple(carried)
    law = law_of(points, section.setting or "")
    core_hour = None if section.cost is None else section.cost.core_hour
    # the measured process is one draw, too, and a fresh one another; the blocks of a setting are fresh ones
    apart = differ if section.setting else math.sqrt(2) * differ
    return ScalingRun(
        plan=plan,
        kind="setting" if section.setting else "quotas" if section.cores is None else "cores",
        setting=section.setting or "",
        blocks=section.blocks,
        points=points,
        law=Scalability.of(law, section.parts) if isinstance(law, Law) else None,
        refused=law.reason if isinstance(law, Refused) else "",
        need=None if section.demand is None else need_of(section.demand, points, law, core_hour, apart),
        differ=differ,
        core_hour=core_hour,
    )


def keep(cell_run: CellRun, run: ScalingRun) -> None:
    """Keeps the figures of a run among the results."""
    setting = re.sub(r"\W+", "_", run.setting)
    at, of = (f"{setting}_", f"_of_{setting}") if setting else ("", "")
    result = partial(cell_run.keep, software=run.software)
    for one in run.points:
        figures = [
            ("rate", "events/s", one.rate_events_per_s, one.interval),
            ("efficiency" if run.counts_workers else "relative_rate", "ratio", one.efficiency, one.efficiency_interval),
        ]
        if run.core_hour is not None:
            low, high = (run.cost(one.cpus, rate) for rate in one.interval or (None, None))
            money = None if low is None or high is None else (high, low)
            figures.append(("cost_per_billion", "money", run.cost_of(one), money))
        for name, unit, figure, between in figures:
            result(
                f"scaling_{name}_at_{at}{run.shown(one.cpus)}", unit, figure, interval=between, samples=len(one.blocks),
                void=run.void or one.reason, remark=run.fewer(one),
            )  # fmt: skip
    rates = sum(len(one.blocks) for one in run.points)  # all of them bear what follows from the points
    if run.law is not None:
        for name, value in (("contention", run.law.contention), ("coherency", run.law.coherency)):
            ends = (value.low, value.high)
            result(f"scaling_{name}{of}", "ratio", value.value, interval=ends, samples=rates, void=run.void)
    if (need := run.need) is not None:
        between = None if need.low is None or need.high is None else (need.low, need.high)
        about = partial(
            result, samples=rates, void=run.void, remark="" if need.cpus else "no part is known to carry it"
        )
        name, unit = f"for_{need.rate_events_per_s:.15g}_per_s", setting or "cores"
        about(f"scaling_{unit}_{name}", unit, need.cpus, interval=between)
        if run.core_hour is not None:
            price = partial(cost_per_billion, rate=need.rate_events_per_s, core_hour=run.core_hour)
            money = between and (price(between[0]), price(between[1]))
            about(f"scaling_cost_per_billion_{name}", "money", need.cost_per_billion, interval=money)


def sentence_of(run: ScalingRun) -> str:
    """Says what the parts carry, and whether they follow the law."""
    if run.void:
        return f"void: {run.void}"
    known = [(one, run.fewer(one)) for one in run.known]
    rates = ", ".join(f"{one.rate_events_per_s:,.0f} {run.at(one.cpus)}{few and f' ({few})'}" for one, few in known)
    law = run.law
    if law is None:
        return f"events/s: {rates or 'nothing'}; no law: {run.refused}"
    return f"events/s: {rates}; contention {law.contention.value:.3g}, coherency {law.coherency.value:.3g}"
