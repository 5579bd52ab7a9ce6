"""The course of a trial after a strike, read from the driver's samples: when it goes on, and when it is back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.bench.measurements.recovery.section import STAYS_S
from streamgauge.records.measurement import Sample
from streamgauge.stats.catch_up import Look, live_since, taking


@dataclass(frozen=True)
class Course:
    """Seconds from the strike on; None: not seen before the offering ended."""

    taken_again_s: float | None  # until events are taken that were not taken before
    back_s: float | None  # until no event waits for longer than the bound any more
    peak_age_s: float


def course(
    hand_overs: Sequence[Sample],
    clock: Sequence[Sample],
    struck_s: float,
    bound_s: float,
    stays_s: float = STAYS_S,
    away_s: float = 0.0,
) -> Course:
    """Reads the course from the samples at hand-overs of rows and from those by the clock, both in order of time.

    bound_s: the age within which the query is back, if it stays so for stays_s. away_s: what was taken before that
    instant was taken by a query that had yet to stop.
    """
    after = [one for one in taking(looks(hand_overs)) if one[0] > max(struck_s, away_s)]
    watched = [one for one in looks(clock) if one[0] > struck_s]
    peak_age_s = max((age_s for _, age_s, _ in (*after, *watched)), default=0.0)
    if not after:
        return Course(None, None, peak_age_s)
    back_s = live_since(after, watched, bound_s, stays_s)
    return Course(after[0][0] - struck_s, None if back_s is None else back_s - struck_s, peak_age_s)


def looks(samples: Sequence[Sample]) -> list[Look]:
    return [(one.at_s, one.age_s, one.taken) for one in samples]
