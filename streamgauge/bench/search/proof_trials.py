"""Plans the open-loop proof trials below and above the estimate, each longer or further away until clear."""

from __future__ import annotations

import math
from collections.abc import Sequence

from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.ladder import estimates
from streamgauge.bench.search.proof import classify, is_beyond_reach, loads_of
from streamgauge.bench.search.steps import Recover
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Measurement, Purpose

#: a trial is worth its time if the expected drift is this many of its standard deviations: the verdict needs 2.5, and
#: with two more nearly every trial reaches that
_CLEAR = 4.5


def next_trial(settings: Search, limits: Limits, measured: Sequence[Measurement]) -> Recover | None:
    """Returns the next proof trial; None when both sides of the last estimate are decided, or tries are spent.

    A trial that agrees with the ladder settles its load. One that contradicts it is repeated, and the majority decides.
    A load that stays undecided is followed by one twice as far from the estimate.
    """
    fits = estimates(settings, limits, measured)
    if len(fits) < settings.processes:
        return None
    own, loads = fits[-1], loads_of(settings, measured)
    rate = min(own.rate_now, limits.max_rate)
    sides: tuple[tuple[Purpose, float], ...] = (("below", -1.0), ("above", 1.0))
    for purpose, sign in sides:
        if purpose == "above" and own.rate_now >= limits.max_rate:
            continue  # more than the driver offers: nothing above can be tried
        tried = [load for load in loads if load.trials[0].purpose == purpose]
        away, steps = _first_load(settings, own)
        for _ in range(steps):
            wanted = float(f"{rate * (1 + sign * away):.6g}")
            if wanted <= 0 or wanted > settings.max_rate:
                break
            load = next((one for one in tried if math.isclose(one.rate_events_per_s, wanted, rel_tol=1e-4)), None)
            state = classify(load.trials) if load else "open"
            if state == "open":
                why = "must catch up" if sign < 0 else "must fall further behind"
                again = f", look {len(load.trials) + 1}" if load else ""
                return Recover(
                    settings.processes, purpose, wanted, _behind_s(settings, limits, wanted),
                    max(settings.recovery_seconds, settings.max_age.seconds), own.noise,
                    f"{abs(wanted / rate - 1):.0%} {purpose} the estimate: {why}{again}",
                )  # fmt: skip
            if state == ("recovers" if sign < 0 else "falls behind"):
                break
            if load and is_beyond_reach(load.trials):
                return None  # what keeps trials from being valid here does so at higher rates, too
            away *= 2
    return None


def has_room_above(settings: Search, limits: Limits, own: Estimate) -> bool:
    """False if search.max_rate lies below the first load above the estimate: nothing above can be tried."""
    away, _ = _first_load(settings, own)
    return min(own.rate_now, limits.max_rate) * (1 + away) <= settings.max_rate


def _behind_s(settings: Search, limits: Limits, rate: float) -> float:
    """Age of the backlog to begin with: the allowed one, or half of what the driver's queues keep.

    Only an engine without micro-batches may begin with less, as its rate does not depend on how far it is behind.
    """
    age = settings.max_age.seconds
    return min(age, limits.most_rows / rate) if limits.continuous else age


def _first_load(settings: Search, own: Estimate) -> tuple[float, int]:
    """Returns the relative distance of the first load from the estimate, and the number of loads left.

    The first load is the nearest whose sign a trial can tell, else the farthest.

    A batch varies by `noise`, so the drift of a trial of S seconds with batches of T varies by noise·√(T/S).
    """
    batch_s = min(settings.max_age.seconds, own.cost.seconds(own.backlog_rows)) if own.batch_cost_s is not None else 0.0
    least = _CLEAR * own.noise * math.sqrt(batch_s / settings.recovery_seconds)
    away, steps = settings.margin, settings.proof_steps
    while away < least and steps > 1:
        away, steps = 2 * away, steps - 1
    return away, steps
