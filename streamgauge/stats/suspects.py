"""Judges the change points of nightly runs: those not yet known are suspects, which are judged by a rerun.

A change point alone is never called a regression: the machine may have changed, or the noise. The rerun
measures the software before and after the change in turns, on one machine in one night. Only a change that
this comparison finds again counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from streamgauge.stats.ab import SMALLEST_EFFECT, compare
from streamgauge.stats.changes import SEGMENT
from streamgauge.stats.outcomes import Change, Comparison

Outcome = Literal["regression", "improvement", "refuted", "open"]
#: repetitions per side; a second, longer rerun follows if the first is inconclusive
REPETITIONS = (8, 16)
#: alpha of suspects in a month of looks; above that of changes (changes.ALPHA), since a rerun is cheap
SUSPECT_ALPHA = 0.1
#: a suspect is not rerun again after this many nights whose reruns left it open
OPEN_NIGHTS = 3

#: measures n values of each side in turns and returns them as (baseline, candidate)
Rerun = Callable[[int], tuple[Sequence[float], Sequence[float]]]


@dataclass(frozen=True)
class Confirmed:
    outcome: Outcome
    change: Change
    comparison: Comparison


def higher_is_better(metric: str, unit: str) -> bool:
    """True for rates, and for those of parts of a machine against another part; lower is better for times and costs."""
    return unit.endswith("/s") or unit == "events/unit" or metric.startswith(("scaling_efficiency", "scaling_relative"))


def suspects(changes: Iterable[Change], judged: Iterable[tuple[int, str, str]], segment: int = SEGMENT) -> list[Change]:
    """Changes that need a rerun: not yet judged, and left open in fewer than OPEN_NIGHTS nights.

    judged: (index of the change, outcome, run) of each judgement of the series. A change may still move a little while
    values arrive. A judged index therefore stands for the nearest change, if that is within `segment` values, and for
    no other. A night that is judged again is one night.
    """
    left = list(changes)
    settled = set[int]()
    opened = defaultdict[int, set[str]](set)
    for place, outcome, run in judged:
        nearest = min(left, key=lambda c: abs(c.index - place), default=None)
        if outcome not in get_args(Outcome) or nearest is None or abs(nearest.index - place) > segment:
            continue
        if outcome == "open":
            opened[nearest.index].add(run)
        else:
            settled.add(nearest.index)
    return [c for c in left if c.index not in settled and len(opened[c.index]) < OPEN_NIGHTS]


def confirm(
    change: Change,
    rerun: Rerun,
    *,
    higher_is_better: bool = False,
    smallest_effect: float = SMALLEST_EFFECT,
    repetitions: Sequence[int] = REPETITIONS,
    self_comparison: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Confirmed:
    """Reruns a suspect until the comparison is conclusive, once for each of `repetitions` at most.

    It is refuted if no change in its direction is found, and open if the comparison stays inconclusive.
    self_comparison: both samples of the series' A/A run, which sets the noise floor.
    """
    compared = partial(
        compare, higher_is_better=higher_is_better, smallest_effect=smallest_effect, self_comparison=self_comparison
    )
    baseline: list[float] = []
    candidate: list[float] = []
    for count in repetitions:
        more = rerun(count)
        baseline += more[0]
        candidate += more[1]
        comparison = compared(baseline, candidate)
        if comparison.verdict != "inconclusive":
            break
    return Confirmed(_outcome(change, comparison), change, comparison)


def _outcome(change: Change, comparison: Comparison) -> Outcome:
    if comparison.verdict == "inconclusive":
        return "open"
    if comparison.verdict == "same" or (comparison.ratio > 1) != (change.magnitude > 0):
        return "refuted"
    return "regression" if comparison.verdict == "worse" else "improvement"
