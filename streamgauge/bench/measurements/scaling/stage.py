"""The scaling stage: rates on parts of the machine, in turns in one warm process, and what follows from them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.base.errors import Outage, UserError
from streamgauge.bench.driver.queues import held_rows
from streamgauge.bench.driver.system import Share
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.measured import software_of
from streamgauge.bench.measurements.latency.stage import sustainable
from streamgauge.bench.measurements.scaling.record import (
    Carried,
    Checked,
    Interval,
    Scalability,
    ScalingRun,
    law_of,
    need_of,
)
from streamgauge.bench.measurements.scaling.section import Scaling
from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.estimate import differ_of, geometric_mean, interval
from streamgauge.bench.search.ladder import warm_up
from streamgauge.bench.search.parts import Point, measure_parts
from streamgauge.bench.search.steps import Hold
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Window
from streamgauge.stats.scalability import Law, Refused

log = logging.getLogger("streamgauge")
#: an engine without micro-batches has so long to work on what it took with other CPUs
SETTLE_S = 1.0
#: part of the rate on the smallest part of the machine at which answers are compared
CHECKED = 0.6


def measure(cell_run: CellRun, section: Scaling) -> dict[str, object]:
    """Measures; returns facts for the log of stages. Raises UserError without a rate, or without such parts."""
    searched = _searched(cell_run)
    with cell_run.ready(timing.scaling_seconds(cell_run.benchmark)) as (bench, token):
        begin = time.monotonic()
        turns = _Turns(bench, token, cell_run.benchmark.search, section.cores is not None)
        turns.refuse(section.parts)
        points = turns.points(section, searched[-1])
        carried = [carried_of(points, cpus, section.parts) for cpus in section.parts]
        checked, software = turns.checked(carried)
        seconds = time.monotonic() - begin
    differs = differ_of([one.rate_events_per_s for one in searched])
    percent = cell_run.benchmark.experiment(cell_run.cell.experiment).target_percent or 0.0
    about = {"cell": cell_run.cell, "target_percent": percent, "seconds": seconds}
    run = record_of(cell_run.plan_key, section, carried, differs).model_copy(
        update={**about, "checked": checked, "software": software}
    )
    run.write(cell_run.directory / "scaling.json")
    log.info("  %s", sentence_of(run))
    _keep(cell_run, run)
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
    settings: Search
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

    def points(self, section: Scaling, whole: Estimate) -> list[Point]:
        """Measures all points in a warm process."""
        rows = held_rows(self.bench.plan.replay.max_memory_mb)
        limits = Limits(most_rows=rows, continuous=self.bench.continuous)

        def window(cpus: float, step: Hold) -> Window:
            if not self.bench.running:
                self.bench.give(None)
                warm_up(self.settings, limits, self._window)
            if not limits.continuous:
                self.bench.pause()  # no batch is of two parts
            self.bench.give(Share(cpus, self.whole))
            if limits.continuous:
                time.sleep(SETTLE_S)
            log.info("%g CPUs, %s: %d rows waiting", cpus, step.reason, step.rows)
            measured = self._window(step)
            log.info("  %s", measured.invalid or f"{measured.rows / measured.seconds:.5g} events/s")
            return measured

        points = measure_parts(section.parts, section.blocks, section.seed, self.settings, limits, whole, window)
        self.bench.end_loop()
        return points

    def _window(self, step: Hold) -> Window:
        return self.bench.window(step, token=self.token)

    def checked(self, carried: Sequence[Carried]) -> tuple[Checked | None, dict[str, str]]:
        """Compares the answers of an open-loop trial on the smallest part; returns versions of the system, too."""
        least = next((one for one in carried if one.rate_events_per_s), None)
        if least is None or least.rate_events_per_s is None:
            return None, {}
        rate = CHECKED * least.rate_events_per_s
        try:
            self.bench.give(Share(least.cpus, self.whole))
            log.info("%g CPUs, answers at %.6g events/s", least.cpus, rate)
            measured = self.bench.trial(rate, timing.CHECK_S, token=self.token)
        except (UserError, Outage) as problem:
            return Checked(rate_events_per_s=rate, outcome="inconclusive", reason=str(problem)), {}
        seen, verdict = measured.observation, measured.verdict
        log.info("  %s: %s", verdict.outcome, seen.invalid or verdict.reason)
        checked = Checked(
            rate_events_per_s=rate,
            outcome=verdict.outcome,
            correct=measured.correct,
            reason=seen.invalid or verdict.reason,
        )
        return checked, software_of(measured.run.details)


def carried_of(points: Sequence[Point], cpus: float, parts: Sequence[float]) -> Carried:
    """The rate on so many CPUs over all blocks, and its efficiency against one CPU, or the least part without one."""
    base = 1.0 if 1.0 in parts else min(parts)
    rates = {(one.block, one.cpus): one.estimate.rate_events_per_s for one in points if one.estimate}
    own = {block: rate for (block, at), rate in rates.items() if at == cpus}
    if not own:
        reasons = [one.reason for one in points if one.cpus == cpus and one.reason]
        return Carried(cpus=cpus, reason=reasons[-1] if reasons else "it was not measured")
    pairs = [rate / cpus / (rates[block, base] / base) for block, rate in own.items() if (block, base) in rates]
    limits = [one.estimate.constraint for one in points if one.cpus == cpus and one.estimate]
    return Carried(
        cpus=cpus,
        rate_events_per_s=geometric_mean([*own.values()]),
        interval=interval([*own.values()]),
        efficiency=geometric_mean(pairs) if pairs else None,
        efficiency_interval=_around(pairs) if cpus != base else None,
        blocks=tuple(own.values()),
        limited_by=limits[-1],
    )


def _around(values: Sequence[float]) -> Interval | None:
    return interval(values) if len(values) > 1 else None


def record_of(plan: str, section: Scaling, carried: Sequence[Carried], differ: float) -> ScalingRun:
    """The record of what these parts carry. differ: part by which fresh processes differ from the measured one."""
    points = tuple(carried)
    law = law_of(points)
    core_hour = None if section.cost is None else section.cost.core_hour
    return ScalingRun(
        plan=plan,
        kind="quotas" if section.cores is None else "cores",
        blocks=section.blocks,
        points=points,
        law=Scalability.of(law, section.parts) if isinstance(law, Law) else None,
        refused=law.reason if isinstance(law, Refused) else "",
        need=None if section.demand is None else need_of(section.demand, points, law, core_hour, differ),
        differ=differ,
        core_hour=core_hour,
    )


def _keep(cell_run: CellRun, run: ScalingRun) -> None:
    """Keeps the figures of a run among the results."""
    wrong = "answers were wrong on the smallest part" if run.checked and run.checked.correct is False else ""
    for one in run.points:
        rate = ("rate", "events/s", one.rate_events_per_s, one.interval)
        for name, unit, figure, between in (rate, ("efficiency", "ratio", one.efficiency, one.efficiency_interval)):
            cell_run.keep(
                f"scaling_{name}_at_{one.cpus:g}", unit, figure, interval=between, samples=len(one.blocks),
                void=wrong or one.reason, remark=run.fewer(one), software=run.software,
            )  # fmt: skip
    rates = sum(len(one.blocks) for one in run.points)  # all of them bear what follows from the points
    if run.law is not None:
        for name, value in (("contention", run.law.contention), ("coherency", run.law.coherency)):
            ends = (value.low, value.high)
            cell_run.keep(
                f"scaling_{name}",
                "ratio",
                value.value,
                interval=ends,
                samples=rates,
                void=wrong,
                software=run.software,
            )
    if run.need is not None:
        low, high = run.need.low, run.need.high
        ends_of_need = None if low is None or high is None else (low, high)
        missing = "" if run.need.cpus is not None else "no part is known to carry it"
        cell_run.keep(
            f"scaling_cores_for_{run.need.rate_events_per_s:g}_per_s", "cores", run.need.cpus, interval=ends_of_need,
            samples=rates, void=wrong or missing, software=run.software,
        )  # fmt: skip


def sentence_of(run: ScalingRun) -> str:
    """Says what the parts carry, and whether they follow the law."""
    known = [(one, run.fewer(one)) for one in run.known]
    rates = ", ".join(f"{one.rate_events_per_s:,.0f} on {one.cpus:g}{few and f' ({few})'}" for one, few in known)
    law = run.law
    if law is None:
        return f"events/s: {rates or 'nothing'}; no law: {run.refused}"
    return f"events/s: {rates}; contention {law.contention.value:.3g}, coherency {law.coherency.value:.3g}"
