"""The course of a trial after a strike, read from the driver's samples: when it goes on, and when it is back. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streamgauge.records.measurement import Sample

#: a system is back for good only if it was seen to stay so for so many seconds
STAYS_S = 3.0


@dataclass(frozen=True)
class Course:
    """Seconds from the strike on; None: not seen before the offering ended."""

    taken_again_s: float | None  # until events are taken that were not taken before
    back_s: float | None  # until no event waits for longer than the bound any more
    peak_age_s: float


def course(
    hand_overs: Sequence[Sample], clock: Sequence[Sample], struck_s: float, bound_s: float, stays_s: float = STAYS_S
) -> Course:
    """Reads it from the samples at hand-overs of rows, and from those by the clock; both are in the order of time.

    The system is back at the first hand-over after which no sample shows an age above the bound. Between two hand-overs
    the age may be low only because one batch has taken all that waited, and works on it.
    """
    # at the end of a trial the driver adds a look that is no hand-over
    real = [*hand_overs[:1], *(late for early, late in pairwise(hand_overs) if late.taken > early.taken)]
    after = [one for one in real if one.at_s > struck_s]
    looks = [*after, *(one for one in clock if one.at_s > struck_s)]
    peak_age_s = max((one.age_s for one in looks), default=0.0)
    if not after:
        return Course(None, None, peak_age_s)
    late_s = max((one.at_s for one in looks if one.age_s > bound_s), default=-math.inf)
    back_s = next((one.at_s for one in after if one.at_s > late_s), None)
    seen_until_s = max(one.at_s for one in looks)
    stays = back_s is not None and seen_until_s - back_s >= stays_s
    return Course(after[0].at_s - struck_s, back_s - struck_s if back_s is not None and stays else None, peak_age_s)
