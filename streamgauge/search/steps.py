"""The search: a pure function from (plan, measurements so far) to the next step.

Each fresh process warms up, then climbs a ladder of closed-loop windows, each next one where the fit so far puts the
answer. The last process proves the estimate by open-loop recovery trials below and above it. Nothing else is
remembered: give the same measurements, from memory or from a file, and the same step follows, so a killed search goes
on in the middle of a ladder. An invalid measurement is repeated, at most `_GIVE_UP` times in a row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from streamgauge.config import Search
from streamgauge.search.estimate import (
    Constraint,
    Estimate,
    Point,
    best_rows,
    fit,
    geometric_mean,
    interval,
    relative_error,
)
from streamgauge.search.proof import Load, classify
from streamgauge.search.records import Batch, Measurement, Purpose, TrialRecord, Window

#: rows held while a process warms up: small batches, as their fixed cost is compiled last
WARM_UP_ROWS = 20_000
#: seconds of one window of the warm-up
_ROUND_S = 5.0
#: the cost of a batch is steady when its trend over so many seconds is known to be below that part
_TREND_S, _STEADY = 15.0, 0.03
#: the part of the warm-up in which a pinned system may use all CPUs
UNPINNED = 0.4
#: from one rung of the ladder to the next while batches hardly grow with their rows
_RUNG = 16
#: batches clearly grow when their rows cost this part of their fixed cost
_GROWN = 0.7
#: the last rungs: batches that last these parts of the allowed age
_PARTS = (0.25, 0.5)
#: rungs at most, whatever the fit says
_MOST_RUNGS = 12
_LEAST_BATCHES = 4
#: hiccups that have added this part double the windows where the answer lies: a few batches do not tell how often
_ROUGH = 0.02
#: two rungs of such likeness are one
_ALIKE = 0.8
_GIVE_UP = 4
#: a trial is worth its time where the drift to see is so many of its deviations
_TOLD = 1.5


@dataclass(frozen=True)
class Limits:
    """What the driver allows: its own ceiling, and the rows that its queues hold."""

    max_rate: float = math.inf
    most_rows: float = math.inf
    continuous: bool = False  # the engine has no micro-batches
    pinned: bool = False  # the system keeps to some CPUs once it has compiled


@dataclass(frozen=True)
class Hold:
    """Keep so many rows waiting, until the window says enough."""

    process: int
    purpose: Purpose
    rows: int
    reason: str
    least_s: float
    most_s: float
    error: float = 0.0  # relative standard error of its mean that is enough
    least_batches: int = _LEAST_BATCHES

    def enough(self, batches: Sequence[Batch]) -> bool:
        """True once the window has lasted for long enough and its mean is known well enough."""
        seconds = sum(batch.seconds for batch in batches)
        if len(batches) < self.least_batches or seconds < self.least_s:
            return False
        return seconds >= self.most_s or relative_error(batches) <= self.error


@dataclass(frozen=True)
class Recover:
    """Offer at this rate from a backlog of that age on, until the sign is clear."""

    process: int
    purpose: Purpose
    rate_events_per_s: float
    behind_s: float
    longest_s: float
    noise: float  # relative deviation of a batch, for the error of the sign
    reason: str


@dataclass(frozen=True)
class Done:
    """The answer, what it rests on, and what is left in doubt."""

    rate_events_per_s: float
    interval: tuple[float, float] | None
    interval_of: Literal["processes", "fit"]
    proven: tuple[float | None, float | None]  # the highest rate that recovered, the lowest that did not
    outcome: Literal["found", "all_sustained", "contradicted", "unproven", "inconclusive"]
    reason: str
    constraint: Constraint | None
    processes: tuple[Estimate, ...]
    doubts: tuple[str, ...] = field(default=())


Step = Hold | Recover | Done


def next_step(plan: Search, limits: Limits, measured: Sequence[Measurement]) -> Step:
    """What to do after these measurements, given in the order in which they were made."""
    if stop := _gives_up(plan, measured):
        return _done(plan, limits, measured, stop)
    begun = max((m.process for m in measured), default=1)  # a process begins once the one before it is complete
    for process in range(begun, plan.processes + 1):
        windows = _windows(measured, process)
        if hold := _next_window(plan, limits, process, windows, again=_refuted(measured, process) > 0):
            return hold
    return _proof(plan, limits, measured) or _done(plan, limits, measured, None)


def run_search(
    plan: Search, limits: Limits, measure: Callable[[Hold | Recover], Measurement], measured: Sequence[Measurement] = ()
) -> Done:
    """Measures step by step until the answer stands. One loop for the virtual, the wire and the real system."""
    known = list(measured)
    while not isinstance(step := next_step(plan, limits, known), Done):
        known.append(measure(step))
    return step


# -- the ladder of one process


def _next_window(plan: Search, limits: Limits, process: int, windows: Sequence[Window], *, again: bool) -> Hold | None:
    """The next window of a process; None when its ladder is complete. again: it was warm, and climbs once more."""
    most = limits.most_rows
    compiled = sum(w.seconds for w in windows if w.purpose == "compile" and w.invalid is None)
    if not again and limits.pinned and len(windows) < _MOST_RUNGS and compiled < plan.warmup_seconds * UNPINNED:
        return dataclasses.replace(warm_up_step(process, most), purpose="compile", reason="on all CPUs, to compile")
    warm = [w for w in windows if w.purpose == "warm-up" and w.invalid is None]
    ladder = [w for w in windows if w.purpose == "ladder" and w.invalid is None]
    first = int(min(WARM_UP_ROWS, most))
    if not ladder and not again and not is_warm(plan, warm):
        return warm_up_step(process, most)
    if len(ladder) >= _MOST_RUNGS:
        return None
    sound = [*warm, *ladder]
    estimate = fit(sound, plan.max_age.seconds, continuous=limits.continuous, most_rows=most)
    rows, reason, long = _next_rung(plan, limits, estimate, warm, ladder, first)
    if rows is None:
        return None
    seconds = plan.window_seconds * (2 if long else 1)
    rough = long and estimate is not None and estimate.hiccups > _ROUGH
    return Hold(process, "ladder", rows, reason, seconds * (2 if rough else 1), 2 * seconds, plan.window_error)


def _next_rung(
    plan: Search,
    limits: Limits,
    estimate: Estimate | None,
    warm: Sequence[Window],
    ladder: Sequence[Window],
    first: int,
) -> tuple[int | None, str, bool]:
    """(rows to hold or None, why, whether the answer lies there)."""
    age, most = plan.max_age.seconds, limits.most_rows
    held = [w.held_rows for w in ladder]
    if estimate is None:
        return first, "the first rung", False
    if limits.continuous:
        # what it carries is asked at two backlogs: a quarter and half of what it may be behind
        for part in _PARTS:
            rows = int(min(most, max(first, estimate.rate_events_per_s * age * part)))
            if not _has(held, rows):
                return rows, f"a backlog of {part * age:.3g} s", True
        return None, "", False
    a, b = estimate.batch_cost_s or 0.0, estimate.row_cost_s
    top = max(held, default=first)
    points = [Point.of(w) for w in ladder]
    if estimate.cap_rows is None and top < most and not (b * top > _GROWN * a and ladder):
        # the line's slope is not known yet; no rung may take longer than the answer's own would
        rung = int(min(_RUNG * top, most, max(best_rows(estimate, age, _PARTS[-1]), 2.0 * first)))
        if not _has(held, rung):
            return rung, "until a batch clearly grows with its rows", False
    if estimate.cap_rows is not None and estimate.constraint == "batch cap":
        at_cap = sum(p.count for p in points if p.rows >= _ALIKE * estimate.cap_rows)
        rungs = sum(p.rows >= _ALIKE * estimate.cap_rows for p in points)
        if rungs < 2 or (at_cap < 2 * _LEAST_BATCHES and rungs < 4):
            return int(min(most, 2 * estimate.cap_rows)), "at the engine's own cap of a batch", True
        below = max(1, estimate.cap_rows // 3)
        if not _has([round(p.rows) for p in points] + [round(Point.of(w).rows) for w in warm], below):
            return below, "below the cap, to tell the fixed cost from the rows", False
        return None, "", False
    for part in _PARTS:
        rows = int(min(most, max(first, best_rows(estimate, age, part))))
        if not _has(held, rows):
            return rows, f"where a batch lasts {part * age:.3g} s", True
    return None, "", False


def _windows(measured: Sequence[Measurement], process: int) -> list[Window]:
    """The windows of a process since it was last begun anew: one that was lost is measured again from its warm-up."""
    windows = [m for m in measured[_refuted(measured, process) :] if isinstance(m, Window) and m.process == process]
    return [w for w in windows if w.life == windows[-1].life]


def _refuted(measured: Sequence[Measurement], process: int) -> int:
    """How many measurements there were when recovery trials first refuted the ladder of that process; 0: they did not.

    A process whose ladder is refuted has changed since: it climbs once more, and what was measured before is void.
    """
    seen: list[TrialRecord] = []
    for number, one in enumerate(measured, 1):
        if isinstance(one, TrialRecord) and one.process == process:
            seen.append(one)
            same = [t for t in seen if t.rate_events_per_s == one.rate_events_per_s and t.purpose == one.purpose]
            if classify(same) == ("falls behind" if one.purpose == "below" else "recovers"):
                return number
    return 0


def _has(held: Sequence[float], rows: float) -> bool:
    return any(_ALIKE <= (h + 1) / (rows + 1) <= 1 / _ALIKE for h in held)


def warm_up_step(process: int, most_rows: float) -> Hold:
    """One window of small batches."""
    rows = int(min(WARM_UP_ROWS, most_rows))
    return Hold(process, "warm-up", rows, "until the cost of a batch is steady", _ROUND_S, _ROUND_S, 1.0, 2)


def is_warm(plan: Search, warm: Sequence[Window]) -> bool:
    """True once the cost of a batch has no trend over several windows, or the time for it is over."""
    spent = sum(w.seconds for w in warm)
    if spent >= plan.warmup_seconds:
        return True
    points = [Point.of(w) for w in warm if w.batches]
    recent = points[len(points) // 3 :]
    if len(points) < 4 or recent[-1].at_s - recent[0].at_s < 0.6 * _TREND_S:
        return False
    at, cost = np.array([p.at_s for p in recent]), np.log([p.seconds / max(1.0, p.rows) for p in recent])
    weight = np.array([p.error**-2 for p in recent])
    centre = at - (weight * at).sum() / weight.sum()
    information = float((weight * centre**2).sum())
    trend = float((weight * centre * cost).sum()) / information * _TREND_S
    if abs(trend) + _TREND_S / math.sqrt(information) > _STEADY:
        return False
    found = fit(warm, plan.max_age.seconds, continuous=True, most_rows=math.inf)
    return found is not None and abs(found.drift) <= _STEADY


# -- the proof


def estimates(plan: Search, limits: Limits, measured: Sequence[Measurement]) -> list[Estimate]:
    """The estimate of each process that has one."""
    found = []
    for process in range(1, plan.processes + 1):
        windows = _windows(measured, process)
        one = fit(windows, plan.max_age.seconds, continuous=limits.continuous, most_rows=limits.most_rows)
        if one is not None:
            found.append(one)
    return found


def _loads(plan: Search, measured: Sequence[Measurement]) -> list[Load]:
    """The recovery trials by rate, ascending."""
    trials = [m for m in measured[_refuted(measured, plan.processes) :] if isinstance(m, TrialRecord)]
    rates = sorted({t.rate_events_per_s for t in trials})
    return [Load(rate, tuple(t for t in trials if t.rate_events_per_s == rate)) for rate in rates]


def _proof(plan: Search, limits: Limits, measured: Sequence[Measurement]) -> Recover | None:
    """The next recovery trial; None when both sides of the last process's estimate are decided, or tries are spent.

    A trial that agrees with the ladder settles its load. One that contradicts it is looked at again, and the majority
    decides; what is refuted is followed by one twice as far away.
    """
    found = estimates(plan, limits, measured)
    if len(found) < plan.processes:
        return None
    own, loads = found[-1], _loads(plan, measured)
    rate = min(own.rate_now, limits.max_rate)
    sides: tuple[tuple[Purpose, float], ...] = (("below", -1.0), ("above", 1.0))
    for purpose, sign in sides:
        if purpose == "above" and own.rate_now >= limits.max_rate:
            continue  # more than the driver offers: nothing above can be tried
        tried = [load for load in loads if load.trials[0].purpose == purpose]
        away, steps = _first_load(plan, own)
        for _ in range(steps):
            wanted = float(f"{rate * (1 + sign * away):.6g}")
            if wanted <= 0:
                break
            load = next((one for one in tried if math.isclose(one.rate_events_per_s, wanted, rel_tol=1e-4)), None)
            state = classify(load.trials) if load else "open"
            if state == "open":
                why = "must catch up" if sign < 0 else "must fall further behind"
                again = f", look {len(load.trials) + 1}" if load else ""
                return Recover(
                    plan.processes, purpose, wanted, plan.max_age.seconds, plan.recovery_seconds, own.noise,
                    f"{abs(wanted / rate - 1):.0%} {purpose} the estimate: {why}{again}",
                )  # fmt: skip
            if state == ("recovers" if sign < 0 else "falls behind"):
                break
            away *= 2
    return None


def _first_load(plan: Search, own: Estimate) -> tuple[float, int]:
    """(How far away the first load is, how many there may be): the first whose sign a trial may tell, or the last one.

    A batch varies by `noise`, so the drift of a trial of S seconds with batches of T varies by noise·√(T/S).
    """
    a, b = own.batch_cost_s or 0.0, own.row_cost_s
    batch_s = 0.0 if own.batch_cost_s is None else min(plan.max_age.seconds, a + b * own.backlog_rows)
    least = _TOLD * own.noise * math.sqrt(batch_s / plan.recovery_seconds)
    away, steps = plan.margin, plan.proof_steps
    while away < least and steps > 1:
        away, steps = 2 * away, steps - 1
    return away, steps


def _gives_up(plan: Search, measured: Sequence[Measurement]) -> str | None:
    """Why the search ends without an answer: everything that was tried last was invalid."""
    last = measured[-_GIVE_UP:]
    reasons = [m.invalid if isinstance(m, Window) else (None if m.valid else m.verdict.reason) for m in last]
    lives = {m.life for m in measured if isinstance(m, Window)}
    if len(lives) > plan.processes + _GIVE_UP:
        return f"the system was lost {len(lives) - plan.processes} times: {next(filter(None, reasons), 'it ended')}"
    if len(reasons) == _GIVE_UP and all(reasons):
        return f"the last {_GIVE_UP} measurements were invalid: {reasons[-1]}"
    return None


def _done(plan: Search, limits: Limits, measured: Sequence[Measurement], stop: str | None) -> Done:
    found = estimates(plan, limits, measured)
    loads = _loads(plan, measured)
    passed = [load.rate_events_per_s for load in loads if classify(load.trials) == "recovers"]
    failed = [load.rate_events_per_s for load in loads if classify(load.trials) == "falls behind"]
    proven = (max(passed, default=None), min(failed, default=None))
    if not found:
        reason = stop or "no window told what a batch costs"
        return Done(0.0, None, "fit", proven, "inconclusive", reason, None, ())
    rates = [one.rate_events_per_s for one in found]
    rate, own = geometric_mean(rates), found[-1]
    between = interval(rates)
    constraint: Constraint = own.constraint
    outcome: Literal["found", "all_sustained", "contradicted", "unproven", "inconclusive"] = "found"
    if rate >= limits.max_rate:
        rate, between, constraint, outcome = limits.max_rate, None, "driver's ceiling", "all_sustained"
    expected = min(own.rate_now, limits.max_rate)
    contradicted = [f"{r:,.0f} events/s did not recover" for r in failed if r < expected]
    contradicted += [f"{r:,.0f} events/s recovered" for r in passed if r > expected]
    missing = [side for side, bound in zip(("below", "above"), proven, strict=True) if bound is None]
    if outcome == "all_sustained":
        missing = [side for side in missing if side == "below"]
    if not plan.proof_steps:
        missing = []  # nobody asked for a proof, which is told as a doubt
    doubts = _doubts(plan, found)
    if stop:
        outcome, reason = "inconclusive", stop
    elif contradicted:
        outcome, reason = "contradicted", f"recovery trials contradict the estimate: {'; '.join(contradicted)}"
    elif missing:
        outcome, reason = "unproven", f"no recovery trial was clear {' and '.join(missing)} the estimate"
    else:
        reason = why(own, constraint, plan)
    low_high = between if between else (min(own.low, rate), max(own.high, rate))
    return Done(
        rate, low_high, "processes" if between else "fit", proven, outcome, reason, constraint, tuple(found), doubts
    )


def why(own: Estimate, constraint: Constraint, plan: Search) -> str:
    """What limits the rate, in one sentence."""
    a, b = own.batch_cost_s, own.row_cost_s
    cost = "" if a is None else f": a batch costs {1000 * a:,.0f} ms and {1e6 * b:,.3g} µs a row"
    if constraint == "batch cap":
        return f"limited by the engine's cap of {own.cap_rows:,} rows a batch{cost}"
    if constraint == "age":
        return f"limited by the allowed age of {plan.max_age}{cost}"
    if constraint == "queue memory":
        return f"limited by the rows that the driver's queues hold (replay.max_memory_mb){cost}"
    if constraint == "driver's ceiling":
        return f"limited by the driver or search.max_rate: more was not offered{cost}"
    return "limited by what the engine carries"


def _doubts(plan: Search, found: Sequence[Estimate]) -> tuple[str, ...]:
    """What a reader should know before trusting the figure."""
    doubts = []
    if len(found) == 1:
        doubts.append("one process: how much processes differ is unknown; raise search.processes to know it")
    if not plan.proof_steps:
        doubts.append("no recovery trial proved the estimate, as search.proof_steps is 0")
    if (drift := max((abs(one.drift) for one in found), default=0.0)) > plan.max_drift:
        doubts.append(
            f"a batch still became {drift:.0%} cheaper when the ladder ended, which was estimated; raise "
            "search.warmup_seconds"
        )
    if any(one.misfit > 4 for one in found):
        doubts.append("the cost of a batch is no straight line over its rows: the estimate may be off")
    return tuple(doubts)
