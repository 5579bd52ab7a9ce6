"""The search for the highest sustained rate: a pure function from (plan, trials so far) to the next step.

An overloaded probe estimates the capacity; it is bracketed, the bracket is bisected on a log scale to the
plan's precision, and the answer is confirmed by longer repeats. With `plan.rates` the candidates are that
finite grid instead, and the search is binary over it. Nothing else is remembered: give the same trials,
from memory or from a file, and the same step follows, so a killed search resumes.

The last verdict at a rate counts. An inconclusive one is repeated once, longer, and all later trials are
longer too; two in a row count as not sustained. A rate that fails its confirmation is not sustained
either, and the search moves below it, whatever was sustained above.

An invalid trial (the driver slipped, a process died, the output was wrong) says nothing about its rate. It is
repeated once; then the search goes on below that rate, which bounds no interval. Where only invalid trials
stand between the answer and a narrower bracket, or all trials are invalid, the search ends as inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from streamgauge.config import Search
from streamgauge.trial import Trial, Verdict

#: A probe is there for the capacity it shows: a driver may keep its queues full instead of overflowing.
Purpose = Literal["probe", "bracket", "bisect", "confirm"]
#: repeats and confirmations last so much longer than a first look
LONGER = 2.0
#: the first bracket around the estimated capacity; its exponent doubles with every miss
_BRACKET = 1.08
#: so many trials and none valid: the next would not be either
_GIVE_UP = 4


@dataclass(frozen=True)
class Rate:
    """Try this rate next, for `seconds_factor` times the plan's seconds."""

    rate_events_per_s: float
    purpose: Purpose
    reason: str
    seconds_factor: float = 1.0

    def tried(self, verdict: Verdict, carried_events_per_s: float | None = None, *, valid: bool = True) -> Trial:
        """Its record once it has run; the rate is the requested one, which is what the search knows it by."""
        details = {"asked": self.reason, "seconds_factor": self.seconds_factor}
        return Trial(self.rate_events_per_s, verdict, self.purpose, carried_events_per_s, valid, details)


@dataclass(frozen=True)
class Done:
    """The answer: the highest rate that was sustained (0 if none), and between what the truth lies."""

    rate_events_per_s: float
    interval: tuple[float, float | None]  # sustained, not sustained, by valid trials; None: nothing failed
    outcome: Literal["found", "none_sustained", "all_sustained", "budget_spent", "inconclusive"]
    reason: str


def next_step(plan: Search, trials: Sequence[Trial]) -> Rate | Done:
    """What to do after these trials, given in the order in which they ran. At most `plan.max_trials` in all."""
    low, high = _bracket(trials)
    left = plan.max_trials - len(trials)
    # where one look was too short, the next would be
    doubtful = any(t.valid and t.verdict.outcome == "inconclusive" and t.purpose != "probe" for t in trials)
    if trials and left > 0 and (what := _undecided(trials)):
        last = trials[-1]
        longer = LONGER if what == "inconclusive" or doubtful or last.purpose == "confirm" else 1.0
        again = f"was {what}: once more" + (", longer" if what == "inconclusive" else "")
        return Rate(last.rate_events_per_s, cast(Purpose, last.purpose), again, longer)

    unconfirmed = 0
    if low is not None:
        passes = sum(t.rate_events_per_s == low and t.verdict.outcome == "sustainable" for t in trials)
        unconfirmed = max(0, 1 + plan.confirmations - passes)
    if left > 0 and len(trials) >= _GIVE_UP and not any(t.valid for t in trials):
        return _inconclusive(low, high, f"all of {len(trials)} trials were invalid: {trials[-1].verdict.reason}")
    candidate = wanted = _candidate(plan, trials, low, high)
    unknown = _unknown(trials, low, high)
    if unknown is not None and wanted:
        candidate = _candidate(plan, trials, low, unknown)
    if left > unconfirmed and candidate:
        return replace(candidate, seconds_factor=LONGER) if doubtful else candidate
    if low is not None and unconfirmed and left > 0:
        if not _latest(trials, low).valid:
            why = f"{low:g} events/s was sustained once and not confirmed: {_latest(trials, low).verdict.reason}"
            return _inconclusive(low, high, why)
        reason = "the bracket is narrow enough" if candidate is None else "the budget ends here"
        return Rate(low, "confirm", f"{reason}: longer, to confirm", LONGER)
    if unknown is not None and wanted and candidate is None and not unconfirmed:
        return _inconclusive(low, high, _nothing_known(trials, unknown))
    return _done(trials, low, high, unknown, unfinished=candidate is not None, unconfirmed=unconfirmed)


def _bracket(trials: Sequence[Trial]) -> tuple[float | None, float | None]:
    """(highest sustained rate below every failed one, lowest failed rate), None where there is none."""
    known = {rate: _sustained(trials, rate) for rate in {t.rate_events_per_s for t in trials}}
    high = min((rate for rate, sustained in known.items() if sustained is False), default=None)
    lows = [rate for rate, sustained in known.items() if sustained and (high is None or rate < high)]
    return max(lows, default=None), high


def _sustained(trials: Sequence[Trial], rate: float) -> bool | None:
    """The latest valid verdict at that rate; the one before it when a single inconclusive one follows it.

    None without a valid trial, or with a single inconclusive one.
    """
    outcomes = [t.verdict.outcome for t in trials if t.rate_events_per_s == rate and t.valid]
    if outcomes[-1:] == ["inconclusive"] and outcomes[-2:] != ["inconclusive"] * 2:
        outcomes.pop()
    return outcomes[-1] == "sustainable" if outcomes else None


def _unknown(trials: Sequence[Trial], low: float | None, high: float | None) -> float | None:
    """The lowest rate within the bracket that was tried and is neither sustained nor not."""
    rates = {t.rate_events_per_s for t in trials if _sustained(trials, t.rate_events_per_s) is None}
    return min((r for r in rates if (low is None or r > low) and (high is None or r < high)), default=None)


def _undecided(trials: Sequence[Trial]) -> str | None:
    """What the last trial was, if its rate has to be tried again: invalid or inconclusive for the first time in a row.

    An overloaded probe is there for the capacity it shows, not for its verdict.
    """
    last = trials[-1]
    if last.verdict.outcome != "inconclusive" or (last.purpose == "probe" and last.carried_events_per_s):
        return None
    same = [t for t in trials[:-1] if t.rate_events_per_s == last.rate_events_per_s]
    if not last.valid:
        return None if same and not same[-1].valid else "invalid"
    outcomes = [t.verdict.outcome for t in same if t.valid]
    return None if outcomes[-1:] == ["inconclusive"] else "inconclusive"


def _latest(trials: Sequence[Trial], rate: float) -> Trial:
    return next(t for t in reversed(trials) if t.rate_events_per_s == rate)


def _candidate(plan: Search, trials: Sequence[Trial], low: float | None, high: float | None) -> Rate | None:
    """A rate strictly between the bracket's ends, None when they are close enough."""
    return _grid(plan.rates, low, high) if plan.rates else _range(plan, trials, low, high)


def _grid(rates: Sequence[float], low: float | None, high: float | None) -> Rate | None:
    """Binary search over the rates strictly between the bracket's ends."""
    open_rates = [r for r in rates if (low is None or r > low) and (high is None or r < high)]
    if not open_rates:
        return None
    return Rate(open_rates[(len(open_rates) - 1) // 2], "bisect", f"the middle of {len(open_rates)} open rates")


def _range(plan: Search, trials: Sequence[Trial], low: float | None, high: float | None) -> Rate | None:
    """Probe up until something fails, bracket the capacity it showed, bisect."""
    if high is None:
        if low is None:
            guess = plan.max_rate if plan.start_rate is None else 2 * plan.start_rate
            return Rate(_tidy(min(guess, plan.max_rate)), "probe", "overload, to see what is carried")
        rate = min(plan.max_rate, _tidy(4 * low))
        return Rate(rate, "probe", "all sustained so far: further up") if rate > low else None

    floor = low or min(plan.min_rate, high)
    if (estimate := _around_capacity(trials, low, high)) and floor < estimate.rate_events_per_s < high:
        return estimate
    if high <= floor * (1 + plan.precision):
        untried = low is None and floor < high
        return Rate(floor, "bracket", "the least allowed rate") if untried else None
    middle = _tidy(math.sqrt(floor * high))
    return Rate(middle, "bisect", f"between {floor:g} and {high:g}") if floor < middle < high else None


def _around_capacity(trials: Sequence[Trial], low: float | None, high: float) -> Rate | None:
    """The next rate around the capacity that the lowest failed rate showed: below it, then above."""
    shown = [
        t.carried_events_per_s
        for t in trials
        if t.rate_events_per_s == high and t.carried_events_per_s and (t.valid or t.purpose == "probe")
    ]
    if not shown:
        return None
    capacity, rates = shown[-1], {t.rate_events_per_s for t in trials}
    if low is not None:
        misses = sum(capacity < rate < high for rate in rates)
        rate = capacity * _BRACKET ** (2**misses)
        reason = f"above the {capacity:.4g} events/s carried under overload"
        return Rate(_tidy(rate), "bracket", reason) if rate * _BRACKET < high else None
    contradicted = [t.rate_events_per_s for t in trials if t.verdict.outcome == "sustainable"]
    if contradicted:
        start, misses = min(contradicted), sum(rate < min(contradicted) for rate in rates)
        reason = f"below {start:g}, which a longer look contradicted"
    else:
        start, misses = capacity, len(rates) - 1
        reason = f"below the {capacity:.4g} events/s carried under overload"
    return Rate(_tidy(start / _BRACKET ** (2**misses)), "bracket", reason)


def _nothing_known(trials: Sequence[Trial], rate: float) -> str:
    return f"nothing is known of {rate:g} events/s: {_latest(trials, rate).verdict.reason}"


def _inconclusive(low: float | None, high: float | None, why: str) -> Done:
    return Done(low or 0.0, (low or 0.0, high), "inconclusive", why)


def _done(
    trials: Sequence[Trial],
    low: float | None,
    high: float | None,
    unknown: float | None,
    *,
    unfinished: bool,
    unconfirmed: int,
) -> Done:
    interval = (low or 0.0, high)
    if unknown is not None and (high is None or unfinished):
        limit = _nothing_known(trials, unknown)
    elif high is None:
        limit = "the highest allowed rate was sustained: the limit lies above"
    else:
        why = [t.verdict.reason for t in trials if t.rate_events_per_s == high][-1]
        limit = f"{high:g} events/s was not sustained: {why}"
    if unfinished or unconfirmed:
        missing = " and ".join(["a narrower bracket"] * unfinished + ["a confirmation"] * bool(unconfirmed))
        return Done(low or 0.0, interval, "budget_spent", f"the trial budget was spent before {missing}; {limit}")
    if low is None:
        return Done(0.0, interval, "none_sustained", f"no rate was sustained; {limit}")
    return Done(low, interval, "found" if high else "all_sustained", limit)


def _tidy(rate: float) -> float:
    """Six digits: readable, and the same after a round trip through a file."""
    return float(f"{rate:.6g}")
