"""What becomes of a change point: new or known, then a suspect, then judged by running it again.

A change point alone is never called a regression: the machine may have changed, or the noise. A suspect
is rerun, the software before and after it taking turns on one machine in one night, and only what the
comparison finds again counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from streamgauge.compare.ab import SMALLEST_EFFECT, Comparison, compare
from streamgauge.compare.changes import SEGMENT, Change

Outcome = Literal["regression", "improvement", "refuted", "open"]
#: repetitions of each side in a first rerun, and in the one that follows where that left it open
REPETITIONS = (8, 16)
#: for a month of looks: a rerun is cheap, so more is suspected than would be called a change at once
SUSPECT_ALPHA = 0.1
#: a judgement that is none: the standing comparison of a series with itself
SELF = "self"
#: a suspect that so many nights' reruns left open is not rerun again
OPEN_NIGHTS = 3

#: gives n values of each side, measured in turns
Rerun = Callable[[int], tuple[Sequence[float], Sequence[float]]]


@dataclass(frozen=True)
class Confirmed:
    outcome: Outcome
    change: Change
    comparison: Comparison


def higher_is_better(unit: str) -> bool:
    """Rates are; times and costs are not."""
    return unit.endswith("/s")


def known_moments(judged: Iterable[tuple[str, str]]) -> list[str]:
    """Moments of changes that need no rerun any more, of (moment, outcome) pairs of a series' judgements."""
    outcomes = [(moment, outcome) for moment, outcome in judged if outcome in get_args(Outcome)]
    opened = Counter(moment for moment, outcome in outcomes if outcome == "open")
    return sorted({m for m, outcome in outcomes if outcome != "open" or opened[m] >= OPEN_NIGHTS})


def suspects(changes: Iterable[Change], known: Iterable[int], segment: int = SEGMENT) -> list[Change]:
    """Those not yet reported; a place may still move a little while values arrive.

    A known place is the change that is nearest to it, and no other.
    """
    left = list(changes)
    told = {
        nearest.index
        for place in known
        if left and abs((nearest := min(left, key=lambda c: abs(c.index - place))).index - place) <= segment
    }
    return [change for change in left if change.index not in told]


def confirm(
    change: Change,
    rerun: Rerun,
    *,
    higher_is_better: bool = False,
    smallest_effect: float = SMALLEST_EFFECT,
    repetitions: Sequence[int] = REPETITIONS,
    self_comparison: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Confirmed:
    """Reruns a suspect until the comparison has an answer, a few times at most. refuted: no change in its direction.

    self_comparison: the series' standing A/A run, which sets the noise floor.
    """
    baseline: list[float] = []
    candidate: list[float] = []
    for count in repetitions:
        more = rerun(count)
        baseline += more[0]
        candidate += more[1]
        found = compare(
            baseline, candidate, higher_is_better=higher_is_better, smallest_effect=smallest_effect,
            self_comparison=self_comparison,
        )  # fmt: skip
        if found.verdict != "inconclusive":
            break
    return Confirmed(_outcome(change, found), change, found)


def _outcome(change: Change, found: Comparison) -> Outcome:
    if found.verdict == "inconclusive":
        return "open"
    if found.verdict == "same" or (found.ratio > 1) != (change.magnitude > 0):
        return "refuted"
    return "regression" if found.verdict == "worse" else "improvement"
