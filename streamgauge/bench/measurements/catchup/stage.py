"""The catchup stage: repeats that begin with a backlog while events go on, each of a fresh process."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from functools import partial

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.queues import fitting_rows
from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.faults.course import looks
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.measured import software_of
from streamgauge.bench.measure.vitals import Vitals
from streamgauge.bench.measurements.catchup.record import CatchupRun, Peak, Repeat
from streamgauge.bench.measurements.catchup.section import STAYS_S, Catchup
from streamgauge.bench.measurements.latency.stage import asked_rate
from streamgauge.bench.search.estimate import spread_of
from streamgauge.config import Replay
from streamgauge.records.measurement import TrialObservation
from streamgauge.records.spread import Spread
from streamgauge.records.trial import UNENDED, Details, TrialResult
from streamgauge.stats.catch_up import HOUR_S, CaughtUp, caught_up, live_since, needed
from streamgauge.stats.trend import kept_points

log = logging.getLogger("streamgauge")
#: what is followed, with its unit
UNITS = {"state_rows": "rows", "state_bytes": "bytes", "resident_memory": "bytes"}
EVERY_S = 1.0


def measure(cell_run: CellRun, section: Catchup) -> dict[str, object]:
    """Measures; returns facts for the log of stages. Raises UserError if the backlog does not fit, or has no rate."""
    rate = asked_rate(cell_run, section.rate, section.fraction)
    refuse_backlog(cell_run.benchmark.replay, section.minutes, rate)
    seen: list[tuple[TrialResult, Vitals]] = []
    with cell_run.ready(section.cell_seconds(cell_run.benchmark)) as (bench, token):
        for number in range(1, section.repeats + 1):
            log.info("catch-up %d of %d at %.6g events/s", number, section.repeats, rate)
            seen.append(repeated(bench, section, rate, token))
            bench.stop()  # a process that has caught up once is no fresh one
    run = record_of(cell_run, section, seen)
    run.write(cell_run.directory / "catchup.json")
    log.info("  %s", run.sentence)
    keep(cell_run, run)
    return {"valid": len(run.valid), "repeats": len(run.repeats), "correct": run.correct}


def refuse_backlog(replay: Replay, minutes: float, rate: float) -> None:
    """Raises UserError, which names what fits, if the driver's queues do not hold the backlog and what comes soon."""
    fit = fitting_rows(replay.max_memory_mb)
    if (60 * minutes + replay.queue_seconds) * rate <= fit:
        return
    most = (fit / rate - replay.queue_seconds) / 60
    mb = -(-replay.max_memory_mb * (60 * minutes + replay.queue_seconds) * rate // fit)
    allowed = f"up to {most:.3g}" if most >= 0.01 else "no backlog"
    raise UserError(
        f"catchup.minutes: found {minutes:g}, but {60 * minutes * rate:,.0f} events, at {rate:,.6g} a second, do not "
        f"fit replay.max_memory_mb: {replay.max_memory_mb}; allowed: {allowed}, or max_memory_mb: {mb:.0f}"
    )


def repeated(bench: ReadyCell, section: Catchup, rate: float, token: int) -> tuple[TrialResult, Vitals]:
    """Measures one repeat, until it was live for long enough or patience ends."""
    vitals = Vitals(EVERY_S)
    measured = bench.trial(
        rate, section.most_s, token=token, behind_s=section.behind_s, look=vitals,
        until=partial(is_over, bound_s=bench.plan.search.max_age.seconds),
    )  # fmt: skip
    return measured, vitals


def is_over(so_far: TrialObservation, bound_s: float) -> bool:
    """True once the system has been live for the allowed age and STAYS_S more."""
    if not so_far.clock or so_far.clock[-1].age_s > bound_s:
        return False  # at once: a long backlog is asked for often
    return live_since(looks(so_far.samples), looks(so_far.clock), bound_s, bound_s + STAYS_S) is not None


def record_of(cell_run: CellRun, section: Catchup, seen: Sequence[tuple[TrialResult, Vitals]]) -> CatchupRun:
    """The record of all repeats."""
    bound_s = cell_run.benchmark.search.max_age.seconds
    repeats = [repeat_of(measured, bound_s) for measured, _ in seen]
    first = seen[0][0]
    rate = first.observation.rate_events_per_s
    told = [one for one in repeats if one.valid or one.failed]
    both = zip(seen, repeats, strict=True)
    watched = [(measured.details, vitals, one.live_s) for (measured, vitals), one in both if one.valid]
    taken = spread_of([one.taken_per_s for one in told])
    return CatchupRun(
        plan=cell_run.plan_key,
        fraction=None if section.rate else section.fraction,
        rate_events_per_s=rate,
        behind_s=section.behind_s,
        most_s=section.most_s,
        max_age_s=bound_s,
        live_s=live_of([one.live_s for one in told], section),
        taken_per_s=taken,
        hour=needed(HOUR_S, rate, taken.value if taken else None, taken.interval if taken else None),
        peaks=() if any(one.failed for one in repeats) else tuple(peaks_of(watched)),
        repeats=tuple(repeats),
        lost_at_own_speed=first.lost_at_own_speed,
        software=software_of(first.details),
    )


def live_of(each: Sequence[float | None], section: Catchup) -> Spread | None:
    """The seconds until live over repeats; None where patience leaves them unknown.

    A repeat that would take longer is not seen live. So an interval that reaches that length is of the faster ones.
    """
    spread = spread_of(each)
    is_within = spread is not None and (spread.high or spread.value) < section.most_s - STAYS_S
    return spread if is_within else None


def repeat_of(measured: TrialResult, bound_s: float) -> Repeat:
    """Reads one repeat. After an overflow it says what was taken; its answers are not compared."""
    seen, check = measured.observation, measured.check
    caught = caught_up(looks(seen.samples), looks(seen.clock), bound_s, STAYS_S)
    failure = measured.failure or (UNENDED if measured.is_unended and caught.live_s is not None else "")
    caught = CaughtUp(None, None) if failure else caught
    own = measured.dropped if measured.dropped and measured.dropped.counted_in == "events" else None
    late = check.get("late_events") if check and not measured.dropped else None
    unheld = seen.overflow and measured.outcome == "inconclusive"  # the driver's queues did not hold the backlog
    return Repeat(
        valid=seen.invalid is None and not (failure or seen.uncommitted or unheld),
        failed=bool(failure),
        reason=failure or _reason(measured),
        live_s=caught.live_s,
        taken_per_s=caught.taken_per_s,
        offered=seen.offered,
        correct=measured.correct,
        dropped=own.count if own else late,
        ages=kept_points([one.at_s for one in seen.clock], [one.age_s for one in seen.clock]),
    )


def _reason(measured: TrialResult) -> str:
    seen = measured.observation
    if seen.uncommitted and seen.invalid is None:
        return "rows that it took and has not committed fill the driver's queues; raise replay.max_memory_mb"
    return seen.invalid or measured.reason


def peaks_of(watched: Sequence[tuple[Details, Vitals, float | None]]) -> Iterator[Peak]:
    """Yields the peaks of what the system tells of itself in each repeat; of each: details, samples, when it was live.

    A repeat counts until it is live. One sample more counts, and the state that the batch leaves which begins then.
    """
    told = [told_until(*one) for one in watched]
    for name, unit in UNITS.items():
        each = [series[name] for series in told]
        if each and all(each):
            yield Peak(name=name, unit=unit, each=tuple(map(max, each)))


def told_until(details: Details, vitals: Vitals, live_s: float | None) -> dict[str, list[float]]:
    """Values by name: samples, and the state after each micro-batch, which the next one may evict before a sample."""
    most_s = math.inf if live_s is None else live_s
    told = {name: [value for at, value in vitals.series.get(name, ()) if at <= most_s + EVERY_S] for name in UNITS}
    start_s = min(driver["start_wall_ns"] for driver in details["drivers"]) / NS
    for batch in details["system"].get("batches") or ():
        if "at" in batch and batch["at"] - start_s <= most_s:
            told["state_rows"] += [batch["state_rows"]] if "state_rows" in batch else []
            told["state_bytes"] += [batch["state_bytes"]] if "state_bytes" in batch else []
    return told


def keep(cell_run: CellRun, run: CatchupRun) -> None:
    """Keeps the figures for index and nights; lower is better, but for the events/s."""
    needs, hour = run.hour, None
    if needs.seconds is not None:
        hour = Spread(value=needs.seconds, low=needs.low, high=needs.high, samples=len(run.valid))
    figures: list[tuple[str, str, Spread | None, str]] = [
        ("catchup_seconds", "s", run.live_s, run.not_within),
        ("catchup_taken_per_s", "events/s", run.taken_per_s, "not each repeat tells what it took"),
        ("catchup_hour_seconds", "s", hour, run.after_an_hour),
    ]
    if any(one.dropped is not None for one in run.repeats):
        (dropped, of), samples = run.dropped or (0, 0), sum(one.dropped is not None for one in run.valid)
        share = Spread(value=dropped / max(1, of), samples=samples) if samples else None
        figures.append(("catchup_dropped", "ratio", share, "the repeats that count do not tell it"))
    figures += [
        (f"catchup_peak_{peak.name}", peak.unit, Spread(value=peak.most, samples=len(peak.each)), "")
        for peak in run.peaks
    ]
    for metric, unit, spread, why in figures:
        value, within, samples = (spread.value, spread.interval, spread.samples) if spread else (None, None, 0)
        cell_run.keep(
            metric, unit, value, interval=within, samples=samples, void=run.void or ("" if spread else why),
            remark=run.fewer, software=run.software,
        )  # fmt: skip
