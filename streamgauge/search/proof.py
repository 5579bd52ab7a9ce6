"""What recovery trials prove: all trials at a load count, never one alone.

A load is decided as in Multiple Loss Ratio Search (draft-ietf-bmwg-mlrsearch): it is a lower bound when its exceed
ratio would stay within the goal even if all further trials failed, and an upper bound when it would not even if all
further ones passed. Our goal is an exceed ratio of one half over three looks, of which the ladder is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamgauge.search.records import TrialRecord

#: looks at a load: the ladder's prediction, and two trials
LOOKS = 3
#: trials whose sign stays unclear before one further away is tried
_MOST_UNCLEAR = 1
#: trials at one load before it is left undecided
_MOST_TRIALS = 3
State = Literal["recovers", "falls behind", "open", "undecided"]


@dataclass(frozen=True)
class Load:
    """All recovery trials at one rate."""

    rate_events_per_s: float
    trials: tuple[TrialRecord, ...]


def classify(trials: Sequence[TrialRecord]) -> State:
    """What is known of a load whose trials are all on one side of the ladder's estimate.

    The ladder's own prediction counts as one good look below its estimate and as one bad look above it.
    """
    valid = [t for t in trials if t.valid and t.verdict.outcome != "inconclusive"]
    good = sum(t.verdict.outcome == "sustainable" for t in valid)
    bad = len(valid) - good
    if trials and trials[0].purpose == "below":
        good += 1
    else:
        bad += 1
    if not valid:
        unclear = sum(t.valid for t in trials)
        return "undecided" if unclear >= _MOST_UNCLEAR or len(trials) >= _MOST_TRIALS else "open"
    if 2 * good > LOOKS:
        return "recovers"
    if 2 * bad > LOOKS:
        return "falls behind"
    return "undecided" if len(trials) >= _MOST_TRIALS else "open"
