"""Compares measurements that stand beside a release check: each was made once of each side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamgauge.records.release import Beside, Reason, State
from streamgauge.records.result import Result
from streamgauge.records.spread import Spread

#: units of figures that are exact without an interval: they count
_COUNTS = ("trials",)
_SAID = {True: "correct", False: "wrong", None: "not compared"}
#: whether the answers of a part were right; numbers: so many of all trials were compared, and none was wrong
Compared = bool | tuple[int, int] | None


@dataclass(frozen=True)
class OneSide:
    """A measurement that stands beside, of one side: its figures, and whether the answers of each part were right."""

    figures: Sequence[Result] = ()
    outputs: Mapping[str, Compared] = field(default_factory=dict)
    problem: str = ""  # why it was not measured


def figures(cell: str, baseline: OneSide, candidate: OneSide) -> list[Beside]:
    """Figures of both sides, each from one measurement of it."""
    before, after = ({one.metric: one for one in side.figures} for side in (baseline, candidate))
    return [_beside(cell, metric, before.get(metric), after.get(metric)) for metric in {**before, **after}]


def _beside(cell: str, metric: str, old: Result | None, new: Result | None) -> Beside:
    before, after = (_spread(one) for one in (old, new))
    unit = next(one.unit for one in (old, new) if one)
    said = "one of them has no interval"
    if before is None or after is None:
        reasons = (one.reason for one in (old, new) if one and one.reason and _spread(one) is None)
        said = "; ".join(dict.fromkeys(reasons)) or "one side has none"
    elif before.value == after.value and not (before.interval or after.interval):
        said = "the same"
    elif (old_ends := _ends(before, unit)) and (new_ends := _ends(after, unit)):
        (low, high), (least, most) = old_ends, new_ends
        said = "higher" if least > high else "lower" if most < low else "no difference that shows"
    return Beside(cell=cell, metric=metric, unit=unit, baseline=before, candidate=after, said=said)


def _ends(one: Spread, unit: str) -> tuple[float, float] | None:
    return (one.value, one.value) if unit in _COUNTS else one.interval


def _spread(one: Result | None) -> Spread | None:
    if one is None or one.value is None or not one.valid:
        return None
    return Spread(value=one.value, low=one.low, high=one.high, samples=one.samples)


def outputs(cell: str, name: str, baseline: OneSide, candidate: OneSide) -> list[Reason]:
    """Reasons for answers of a measurement that stands beside: those that only the candidate has wrong are no-go.

    Others are judged as those of the suite, but are open where at most half of the trials were compared, and a smaller
    part than of the baseline's. What was not measured is one reason, not one of each part. A search only supplies the
    rate: only a wrong one is a reason.
    """
    reasons = [
        Reason("output", "open", f"{cell}, {side}", f"{name} was not measured: {one.problem}")
        for side, one in (("baseline", baseline), ("candidate", candidate))
        if one.problem
    ]
    for part in {**baseline.outputs, **candidate.outputs}:
        output = candidate.outputs.get(part)
        if output is not False and (baseline.problem or candidate.problem or (part == "search" and output is None)):
            continue
        old, new = (
            _said(one.outputs[part]) if part in one.outputs else "not measured" for one in (baseline, candidate)
        )
        is_known = _share(output) > min(_share(baseline.outputs.get(part)), 0.5)
        state: State = "failed" if output is False else "note" if is_known else "open"
        if old != new:
            reasons.append(Reason("output", state, f"{cell} {part}", f"{old} → {new}"))
        elif new != "correct":
            reasons.append(Reason("output", "note", f"{cell} {part}", f"{new} with both"))
    return reasons


def _said(output: Compared) -> str:
    return f"{output[0]} of {output[1]} trials were compared" if isinstance(output, tuple) else _SAID[output]


def _share(output: Compared) -> float:
    """Returns the part of the trials that were compared."""
    return output[0] / output[1] if isinstance(output, tuple) else output is not None
