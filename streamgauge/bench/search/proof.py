"""Decides what proof trials prove, from all trials at a load together.

A load is decided as in Multiple Loss Ratio Search (draft-ietf-bmwg-mlrsearch). It is a lower bound when its exceed
ratio would stay within the goal even if all further trials failed. It is an upper bound when the ratio would exceed the
goal even if all further trials passed. Our goal is an exceed ratio of one half over three looks; the ladder is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamgauge.config import Search
from streamgauge.records.measurement import Measurement, TrialRecord, Window

#: looks at a load: the ladder's prediction, and two trials
LOOKS = 3
#: trials whose sign stays unclear before one further away is tried
_MOST_UNCLEAR = 1
#: trials at one load before it is left undecided
_MOST_TRIALS = 3
State = Literal["recovers", "falls behind", "open", "undecided"]


@dataclass(frozen=True)
class Load:
    """Proof trials at the same rate."""

    rate_events_per_s: float
    trials: tuple[TrialRecord, ...]


def classify(trials: Sequence[TrialRecord]) -> State:
    """State of a load whose trials are all on one side of the ladder's estimate.

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


def is_beyond_reach(trials: Sequence[TrialRecord]) -> bool:
    """True if a load was tried as often as one is, and no trial was valid."""
    return len(trials) >= _MOST_TRIALS and not any(trial.valid for trial in trials)


def refuted(measured: Sequence[Measurement], process: int) -> int:
    """Number of measurements when proof trials first refuted the ladder of that process; 0 if they did not.

    A process whose ladder is refuted has changed since, so it climbs a new ladder and earlier measurements are void.
    """
    seen: list[TrialRecord] = []
    life = 0
    for number, one in enumerate(measured, 1):
        if isinstance(one, Window) and one.process == process and one.life != life:
            seen, life = [], one.life  # trials of a process that was lost say nothing about the next one
        if isinstance(one, TrialRecord) and one.process == process:
            seen.append(one)
            same = [t for t in seen if t.rate_events_per_s == one.rate_events_per_s and t.purpose == one.purpose]
            if classify(same) == ("falls behind" if one.purpose == "below" else "recovers"):
                return number
    return 0


def loads_of(settings: Search, measured: Sequence[Measurement]) -> list[Load]:
    """The proof trials of the process that is there now by rate, ascending."""
    latest = max((m.life for m in measured if isinstance(m, Window) and m.process == settings.processes), default=0)
    trials = [m for m in measured[refuted(measured, settings.processes) :] if isinstance(m, TrialRecord)]
    trials = [trial for trial in trials if not trial.life or trial.life >= latest]
    rates = sorted({t.rate_events_per_s for t in trials})
    return [Load(rate, tuple(t for t in trials if t.rate_events_per_s == rate)) for rate in rates]
