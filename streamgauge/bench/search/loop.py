"""The search: a pure function from (settings, measurements so far) to the next step, and the loop around it.

Each fresh process warms up and climbs a ladder of closed-loop windows (`ladder.py`). The last process proves the
estimate by open-loop proof trials below and above it (`proof_trials.py`). Nothing else is remembered: the same
measurements, from memory or from a file, give the same step, so a killed search goes on in the middle of a ladder. An
invalid measurement is repeated, at most `_GIVE_UP` times in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamgauge.bench.measurements.search.record import Constraint, Doubt, Estimate, SearchOutcome
from streamgauge.bench.search.estimate import geometric_mean, interval
from streamgauge.bench.search.ladder import estimates, next_window
from streamgauge.bench.search.proof import classify, loads_of
from streamgauge.bench.search.proof_trials import has_room_above, next_trial
from streamgauge.bench.search.steps import Done, Hold, Recover, Step
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Measurement, Window

_GIVE_UP = 4
_NO_PROOF = "no proof trial was run, as search.proof_steps is 0"
_NO_ROOM_ABOVE = "no proof trial was run above the estimate, as search.max_rate allows no higher rate"
_HELD_BACK = (
    "rows that the system had taken and not committed filled the driver's queues, so fewer were offered than it may "
    "carry: the rate may be too low; raise replay.max_memory_mb, or let it commit more often"
)
_ONE_PROCESS = "one process: how much processes differ is unknown; raise search.processes to know it"


def next_step(
    settings: Search, limits: Limits, measured: Sequence[Measurement], with_lost: Sequence[Measurement] | None = None
) -> Step:
    """Returns the step that follows these measurements, which are given in the order in which they were made.

    with_lost: the same with windows of processes that were lost, if those are left out: they count for giving up.
    """
    if stop := _gives_up(settings, measured if with_lost is None else with_lost):
        return _done(settings, limits, measured, stop)
    begun = max((m.process for m in measured), default=1)  # a process begins once the one before it is complete
    for process in range(begun, settings.processes + 1):
        if hold := next_window(settings, limits, measured, process):
            return hold
    return next_trial(settings, limits, measured) or _done(settings, limits, measured, None)


def run_search(
    settings: Search,
    limits: Limits,
    measure: Callable[[Hold | Recover], Measurement],
    measured: Sequence[Measurement] = (),
) -> Done:
    """Measures step by step until Done. The simulated, the known and the real system all run this loop."""
    done = run_turn(settings, limits, measure, measured, settings.processes)
    assert done is not None, "no step is of a later process"
    return done


def run_turn(
    settings: Search,
    limits: Limits,
    measure: Callable[[Hold | Recover], Measurement],
    measured: Sequence[Measurement],
    process: int,
) -> Done | None:
    """Measures until that process is complete, and returns None; returns the answer once it stands."""
    known = list(measured)
    while not isinstance(step := next_step(settings, limits, known), Done):
        if step.process > process:
            return None
        known.append(measure(step))
    return step


def _gives_up(settings: Search, measured: Sequence[Measurement]) -> str | None:
    """Reason to end the search without an answer: the last measurements were all invalid; None to go on."""
    last = measured[-_GIVE_UP:]
    reasons = [m.invalid if isinstance(m, Window) else (None if m.valid else m.verdict.reason) for m in last]
    lives = {m.life for m in measured if isinstance(m, Window)}
    if len(lives) > settings.processes + _GIVE_UP:
        return f"the system was lost {len(lives) - settings.processes} times: {next(filter(None, reasons), 'it ended')}"
    if len(reasons) == _GIVE_UP and all(reasons):
        return f"the last {_GIVE_UP} measurements were invalid: {reasons[-1]}"
    return None


def _done(settings: Search, limits: Limits, measured: Sequence[Measurement], stop: str | None) -> Done:
    estimated = estimates(settings, limits, measured)
    loads = loads_of(settings, measured)
    passed = [load.rate_events_per_s for load in loads if classify(load.trials) == "recovers"]
    failed = [load.rate_events_per_s for load in loads if classify(load.trials) == "falls behind"]
    proven = (max(passed, default=None), min(failed, default=None))
    if not estimated:
        reason = stop or _no_fit(settings, measured)
        return Done(0.0, None, "fit", proven, "inconclusive", reason, None, ())
    rates = [one.rate_events_per_s for one in estimated]
    rate, own = geometric_mean(rates), estimated[-1]
    between = interval(rates)
    constraint: Constraint = own.constraint
    outcome: SearchOutcome = "found"
    if rate >= limits.max_rate:
        rate, between, constraint, outcome = limits.max_rate, None, "driver's ceiling", "all_sustained"
    expected = min(own.rate_now, limits.max_rate)
    contradicted = [f"{r:,.0f} events/s did not recover" for r in failed if r < expected]
    contradicted += [f"{r:,.0f} events/s recovered" for r in passed if r > expected]
    missing = [side for side, bound in zip(("below", "above"), proven, strict=True) if bound is None]
    if outcome == "all_sustained":
        missing = [side for side in missing if side == "below"]
    doubts = _doubts(settings, estimated, measured)
    if settings.proof_steps and "above" in missing and not has_room_above(settings, limits, own):
        missing.remove("above")
        doubts += (Doubt("no room above", _NO_ROOM_ABOVE),)
    if stop:
        outcome, reason = "inconclusive", stop
    elif contradicted:
        outcome, reason = "contradicted", f"proof trials contradict the estimate: {'; '.join(contradicted)}"
    elif missing:
        outcome, reason = "unproven", f"no proof trial was clear {' and '.join(missing)} the estimate"
        if not settings.proof_steps:
            reason = _NO_PROOF
    else:
        reason = why(own, constraint, settings)
    low_high = between if between else (min(own.low, rate), max(own.high, rate))
    return Done(
        rate, low_high, "processes" if between else "fit", proven, outcome, reason, constraint, tuple(estimated), doubts
    )


def _no_fit(settings: Search, measured: Sequence[Measurement]) -> str:
    """Reason why no window gave an estimate."""
    costs = [w.seconds / len(w.batches) for w in measured if isinstance(w, Window) and w.invalid is None and w.batches]
    if costs and min(costs) >= settings.max_age.seconds:
        return (
            f"a batch takes {1000 * min(costs):,.0f} ms or more, which is above the allowed age of "
            f"{settings.max_age}; raise search.max_age"
        )
    return "no window told what a batch costs"


def why(own: Estimate, constraint: Constraint, settings: Search) -> str:
    """Sentence that says what limits the rate."""
    batch_s, row_s, last_s = own.batch_cost_s, own.row_cost_s, own.cost.last_row_s(own.backlog_rows)
    rows = f"{1e6 * row_s:,.3g}{f' to {1e6 * last_s:,.3g}' if own.row_growth_s else ''} µs a row"
    cost = "" if batch_s is None else f": a batch costs {1000 * batch_s:,.0f} ms and {rows}"
    if constraint == "batch cap":
        return f"limited by the engine's cap of {own.cap_rows:,} rows a batch, which batch_rows sets{cost}"
    if constraint == "age":
        return f"limited by the allowed age of {settings.max_age}{cost}"
    if constraint == "queue memory":
        return f"limited by the rows that the driver's queues hold (replay.max_memory_mb){cost}"
    if constraint == "driver's ceiling":
        return f"limited by the driver or search.max_rate: more was not offered{cost}"
    return "limited by what the engine carries"


def _doubts(settings: Search, estimated: Sequence[Estimate], measured: Sequence[Measurement]) -> tuple[Doubt, ...]:
    """Doubts that a reader should know before trusting the figure."""
    doubts = []
    if len(estimated) == 1:
        doubts.append(Doubt("one process", _ONE_PROCESS))
    if not settings.proof_steps:
        doubts.append(Doubt("no proof", _NO_PROOF))
    drift = max((one.drift for one in estimated), key=abs, default=0.0)
    if abs(drift) > settings.max_drift:
        compared = "more" if drift > 0 else "less"
        sentence = (
            f"when the ladder ended, a batch still cost {abs(drift):.0%} {compared} than in a warm process, for which "
            "the rate is estimated; raise search.warmup_seconds"
        )
        doubts.append(Doubt("drift", sentence))
    if any(isinstance(m, Window) and m.purpose in ("ladder", "pair") and m.held_back for m in measured):
        doubts.append(Doubt("held back", _HELD_BACK))
    if any(one.misfit > 4 for one in estimated):
        misfit = "the cost of a batch is neither a line nor a parabola over its rows"
        if all(one.batch_cost_s is None for one in estimated):
            misfit = "windows at about the same backlog differ by more than their noise"
        doubts.append(Doubt("misfit", f"{misfit}: the estimate may be off"))
    return tuple(doubts)
