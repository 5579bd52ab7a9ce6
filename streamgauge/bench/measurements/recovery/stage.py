"""The recovery stage: trials at one rate with a fault in each, one fault after the other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from streamgauge.base.errors import Outage
from streamgauge.bench.driver.system import Capabilities
from streamgauge.bench.faults.course import course
from streamgauge.bench.faults.strike import Strike, spared
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.measured import software_of
from streamgauge.bench.measurements.latency.stage import asked_rate, cpu_between
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck, Suffered, uncompared
from streamgauge.bench.measurements.recovery.section import Kind, Recovery, watched_s
from streamgauge.bench.search.estimate import spread_of
from streamgauge.config import Benchmark, System
from streamgauge.records.measurement import TrialObservation
from streamgauge.records.spread import Spread
from streamgauge.records.trial import UNENDED, Compared, TrialResult
from streamgauge.stats.trend import kept_points

log = logging.getLogger("streamgauge")


def measure(cell_run: CellRun, section: Recovery) -> dict[str, object]:
    """Measures; returns facts for the log of stages. Raises UserError if the search found no rate."""
    rate = asked_rate(cell_run, section.rate, section.fraction)
    systems = checkpointing(cell_run.benchmark.system(cell_run.cell.system), section)
    measured = [trials_of(cell_run, section, rate, interval, system) for interval, system in systems.items()]
    is_spared = bool(section.checkpoint_intervals) and "" in systems
    run = RecoveryRun(
        plan=cell_run.plan_key,
        fraction=None if section.rate else section.fraction,
        rate_events_per_s=rate,
        seconds=section.seconds,
        cut_seconds=section.cut_seconds,
        max_age_s=cell_run.benchmark.search.max_age.seconds,
        faults=tuple(one for faults, _ in measured for one in faults),
        no_intervals="its settings have no interval of checkpoints" if is_spared else "",
        software=next((software for _, software in measured if software), {}),
    )
    run.write(cell_run.directory / "recovery.json")
    for one in run.faults:
        log.info("  %s", one.sentence)
        keep(cell_run, one, run.software)
    return {one.name: one.sentence for one in run.faults}


def checkpointing(system: System, section: Recovery) -> dict[str, System]:
    """Maps each interval of checkpoints to the system with it; the empty one to a system that has no such interval."""
    changed = {str(one): system.checkpointing(one) for one in section.checkpoint_intervals}
    return {interval: one for interval, one in changed.items() if one is not None} or {"": system}


def trials_of(
    cell_run: CellRun, section: Recovery, rate: float, interval: str, system: System
) -> tuple[list[Suffered], dict[str, str]]:
    """Measures the cell with that system; returns what each fault costs, and versions of the system."""
    benchmark = cell_run.benchmark
    roomy = replace(cell_run, benchmark=with_room(benchmark, system, section.seconds))
    with roomy.ready(section.cell_seconds(benchmark)) as (bench, token):
        why = {fault: why_not(benchmark, bench.capabilities, fault) for fault in section.faults}
        seen: dict[Kind, list[tuple[Strike, TrialResult]]] = {fault: [] for fault in section.faults}
        for fault in [one for one in section.faults if not why[one]]:
            try:
                for trial in struck(bench, section, fault, rate, token):
                    seen[fault].append(trial)
            except Outage as problem:
                if not any(strike.failure for trials in seen.values() for strike, _ in trials):
                    raise  # no fault is to blame that it does not start
                log.warning("%s: %s", fault, problem)
                why[fault] = "" if seen[fault] else str(problem)
    bound_s = benchmark.search.max_age.seconds
    faults = [
        suffered_of(fault, why[fault], [struck_of(strike, measured, bound_s) for strike, measured in trials], interval)
        for fault, trials in seen.items()
    ]
    versions = [software_of(measured.details) for trials in seen.values() for _, measured in trials]
    return faults, next(filter(None, versions), {})


def with_room(benchmark: Benchmark, system: System, seconds: float) -> Benchmark:
    """The benchmark with that system, and queues that hold all of a trial: nothing is taken while it is away."""
    replay = benchmark.replay
    held_s = max(replay.queue_seconds, seconds)
    replay = replay.model_copy(update={"queue_seconds": held_s})
    systems = tuple(system if one.name == system.name else one for one in benchmark.systems)
    return benchmark.model_copy(update={"replay": replay, "systems": systems})


def why_not(benchmark: Benchmark, capabilities: Capabilities, fault: Kind) -> str:
    """Says why a fault cannot be measured; empty if it can."""
    if fault == "cut" and benchmark.replay.remote and not capabilities.cuts_itself:
        return "the link to drivers at replay.remote is not ours to cut"
    return spared(capabilities, fault)


def struck(
    bench: ReadyCell, section: Recovery, fault: Kind, rate: float, token: int
) -> Iterator[tuple[Strike, TrialResult]]:
    """Runs the trials with a fault; each ends once the system has been back for long enough."""
    bound_s = bench.plan.search.max_age.seconds
    for number, at_s in enumerate(instants(section, fault), 1):
        log.info("%s %d of %d at %.6g events/s", fault, number, section.repeats, rate)
        strike = Strike(fault, at_s, section.cut_seconds, cuts_itself=bench.capabilities.cuts_itself)
        until = partial(is_over, strike, bound_s)
        yield strike, bench.trial(
            rate, section.seconds, token=token, look=strike, through=strike.between, until=until
        )  # fmt: skip


def is_over(strike: Strike, bound_s: float, so_far: TrialObservation) -> bool:
    """True once the system has been back for the allowed age and STAYS_S more."""
    if strike.resumed_s is None:
        return False
    struck_s, stays_s = strike.struck_s or 0.0, watched_s(bound_s)
    return course(so_far.samples, so_far.clock, struck_s, bound_s, stays_s, strike.away_s).back_s is not None


def instants(section: Recovery, fault: Kind) -> list[float]:
    """The instants of a fault in its trials, in seconds, by the seed alone."""
    random = np.random.default_rng([section.seed, *fault.encode()])
    return list(random.uniform(*section.strikes_s, section.repeats))


def struck_of(strike: Strike, measured: TrialResult, bound_s: float) -> Struck:
    """Reads one trial. Its times count only where its answers are not known to be wrong."""
    seen, check, details = measured.observation, measured.check, measured.details
    wrong = (check and check["wrong"]) or ""
    invalid = "" if seen.invalid == wrong else seen.invalid or ""
    if strike.struck_s is None or not seen.clock:
        why = strike.missed or invalid or "the trial ended before its fault"
        return Struck(valid=False, reason=why, offered=seen.offered)
    after = course(seen.samples, seen.clock, strike.struck_s, bound_s, away_s=strike.away_s)
    failure = _failure(strike, measured) or (UNENDED if measured.is_unended and after.back_s is not None else "")
    if failure:  # its own, so the others of its fault are the faster ones
        invalid, after = "", replace(after, back_s=None)
    lost, doubled, by_key = differing(check)
    again = [driver.get("again") for driver in details["drivers"]]
    is_read_once = "rules" in details and len(details["rules"].operators) == 1  # else each frame reads the stream
    is_known = is_read_once and None not in again and not details["system"].get("link_slip_ns")  # a link reads for it
    late = "" if after.back_s is not None else "it was not back when the trial ended; raise recovery.seconds"
    return Struck(
        valid=not (invalid or wrong),
        reason=invalid or failure or late,
        struck_s=strike.struck_s,
        taken_again_s=after.taken_again_s,
        back_s=after.back_s,
        peak_age_s=after.peak_age_s,
        is_within=after.peak_age_s <= bound_s,
        calm_age_s=max((one.age_s for one in seen.clock if one.warm and one.at_s < strike.struck_s), default=None),
        calm_cpu_us=cpu_between(details.get("cpu_track", ()), replace(seen, seconds=strike.struck_s)),
        read_again=sum(filter(None, again)) if is_known else None,
        offered=seen.offered,
        correct=measured.correct,
        wrong=wrong,
        lost=lost,
        doubled=doubled,
        by_key=by_key,
        ages=kept_points([one.at_s - strike.struck_s for one in seen.clock], [one.age_s for one in seen.clock]),
    )


def _failure(strike: Strike, measured: TrialResult) -> str:
    """Says why the system itself ended the trial before it could be back; empty if it did not."""
    seen = measured.observation
    if seen.overflow and not seen.invalid:
        return "the queues overflowed, and the trial ended there; raise replay.max_memory_mb"
    if measured.failure or strike.failure == seen.invalid:  # else its driver failed
        return strike.failure or measured.failure
    return ""


def differing(check: Compared | None) -> tuple[int | None, int | None, bool]:
    """Returns the numbers of answers that are lost and doubled, and whether each answer was looked for by its key.

    Without that, only their difference is known. Where later answers of a key replace earlier ones, no copy is seen.
    """
    if check and "differences" in check:
        each = check["differences"]["each"]
        lost, more = (sum(one["answers"] for one in each if one["kind"] == kind) for kind in ("missing", "in excess"))
        seen = check.get("delivery", "") is not None or more > 0
        return lost, more + (check.get("duplicates") or 0) if seen else None, True
    expected, reported = (check.get("expected_rows"), check.get("reported_rows")) if check else (None, None)
    if expected is None or reported is None:
        return None, None, False
    return max(0, expected - reported), max(0, reported - expected), False


def suffered_of(fault: Kind, why: str, trials: Sequence[Struck], interval: str = "") -> Suffered:
    """Puts the trials with a fault together."""
    seen = Suffered(fault=fault, interval=interval, unmeasurable=why, trials=tuple(trials))
    names = ("taken_again_s", "back_s", "calm_cpu_us")
    return seen.model_copy(update={name: spread_of([getattr(one, name) for one in seen.counted]) for name in names})


def keep(cell_run: CellRun, one: Suffered, software: dict[str, str]) -> None:
    """Keeps the figures of a fault for index and nights; of each, lower is better."""
    if one.unmeasurable:
        return
    suffix = f"_at_checkpoints_every_{one.interval}" if one.interval else ""
    peak, again = (None if most is None else Spread(value=most) for most in (one.peak_age_s, one.read_again))
    tells = any(trial.read_again is not None for trial in one.trials)  # a job never does
    figures = {
        "taken_again_seconds": ("s", one.taken_again_s),
        "seconds": ("s", one.back_s),
        "peak_age": ("s", peak),
        **({"read_again": ("rows", again)} if tells else {}),
        **({"cpu_us_per_event": ("us", one.calm_cpu_us)} if one.interval else {}),
    }
    remark = "; ".join(filter(None, [one.remark, uncompared(one.counted)]))
    for name, (unit, spread) in figures.items():
        value, between = (spread.value, spread.interval) if spread is not None else (None, None)
        cell_run.keep(
            f"recovery_{one.fault}_{name}{suffix}", unit, value, interval=between, samples=len(one.counted),
            void=one.void or ("" if spread else one.unknown), remark=remark, software=software,
        )  # fmt: skip
    samples, least = len(one.compared), f"{one.least}so many" if one.least else ""
    counts = {
        "wrong": ("trials", len(one.wrong), ""),
        "lost_per_trial": ("answers", one.lost, least),
        "doubled_per_trial": ("answers", one.doubled, least),
    }
    for name, (unit, count, only) in counts.items() if samples else ():
        remark = "; ".join(filter(None, [only, uncompared(one.trials)]))
        value = None if count is None else count / (1 if name == "wrong" else samples)
        cell_run.keep(
            f"recovery_{one.fault}_{name}{suffix}", unit, value, samples=samples, remark=remark, software=software,
            void="not known of each trial" if count is None else "",
        )  # fmt: skip
