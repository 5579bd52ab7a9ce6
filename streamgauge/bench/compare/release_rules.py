"""Decides between go, no-go and inconclusive from the records of a release check, by pure functions.

Answers come first: a query is no-go at once if the candidate's answer is worse or missing, or both differ.
Then each series (cell and metric) of repetitions, measured in turns, is judged. It passes when the interval of
candidate/baseline rules out a slowdown as large as the tolerance. It fails when the candidate is worse by at least the
tolerance and the noise floor; a rate fails when its whole interval lies beyond the tolerance. Else it is open. A series
that has not passed is suspect and is run again before it counts. One that is open even then leaves the check
inconclusive: missing data is never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from streamgauge.config import RELEASE_RATE
from streamgauge.stats.ab import LEAST, Comparison, compare
from streamgauge.stats.paired import LEAST_PROCESSES, Ratio, ratio_of

Decision = Literal["go", "no-go", "inconclusive"]
Side = Literal["baseline", "candidate", "control"]
_Kind = Literal["answer", "capability", "output", "performance"]
State = Literal["passed", "failed", "open", "note"]
#: order in a round; the control is the baseline again, so that every round has an A/A pair around the candidate
TURNS: tuple[Side, ...] = ("baseline", "candidate", "control")
#: part of the checks in which a loss of the rate is seen that an open one names
POWER = 0.9
#: rank of a status of answers and capabilities: a higher one is worse
_RANK = {"correct": 0, "works": 0, "unchecked": 1, "unsupported": 2, "wrong": 3}

#: of how many subjects of one reason the names are said
_NAMED = 4

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Reason:
    kind: _Kind
    state: State
    what: str
    why: str


@dataclass(frozen=True)
class Repetition:
    """A fresh process measured in turns. void: why its values do not count; wrong: fault of its output."""

    cell: str
    side: Side
    round: int
    values: Mapping[str, float]  # metric -> figure
    outcome: str = "sustainable"
    void: str | None = None
    wrong: str | None = None
    compared: bool = True
    ladder: bool = False  # True: its value is the rate that its ladder found; False: figures at the fixed rate


@dataclass(frozen=True)
class Series:
    """The judgement of one metric of one cell."""

    cell: str
    metric: str
    state: State
    reason: str
    tolerance: float
    comparison: Comparison | Ratio | None  # None: too few figures, or a side that does not carry the rate


@dataclass(frozen=True)
class Release:
    decision: Decision
    reasons: list[Reason]
    series: list[Series] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The verdict and its first reasons, in one line."""
        counts = grouped(reason for reason in self.reasons if reason.state != "note")
        told = "; ".join(f"{reason.what}: {reason.why}" for reason in counts[:3])
        more = f"; and {len(counts) - 3} more" if len(counts) > 3 else ""
        return f"{self.decision}: {told or 'no answer is worse, all series are within their tolerance'}{more}"


def grouped(reasons: Iterable[Reason]) -> list[Reason]:
    """Reasons of which each is said once, with all that it holds for: "3 × (q1 in batch, q2 in batch, q3 in batch)"."""
    holds: dict[tuple[_Kind, State, str], list[str]] = {}
    for reason in reasons:
        holds.setdefault((reason.kind, reason.state, reason.why), []).append(reason.what)
    return [Reason(kind, state, _all_of(what), why) for (kind, state, why), what in holds.items()]


def _all_of(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = ", …" if len(names) > _NAMED else ""
    return f"{len(names)} × ({', '.join(names[:_NAMED])}{more})"


def answers(baseline: Iterable[Row], candidate: Iterable[Row], wanted: Iterable[tuple[str, str]] = ()) -> list[Reason]:
    """Reasons for answers that differ or are missing; rows have query, mode, status, rows, hash, why.

    wanted: (query, mode) of all that was asked, so that what neither side answered is missing too.
    """
    before, after = ({(str(row["query"]), str(row["mode"])): row for row in rows} for rows in (baseline, candidate))
    asked = dict.fromkeys([*wanted, *before, *after])
    if not asked:
        return [Reason("answer", "open", "answers", "no query was asked")]
    found = [_answer(f"{key[0]} in {key[1]}", before.get(key), after.get(key)) for key in asked]
    return [reason for reason in found if reason is not None]


def _answer(what: str, old: Row | None, new: Row | None) -> Reason | None:
    if old is None and new is None:
        return Reason("answer", "open", what, "neither side gave an answer")
    if old is None or new is None:
        which, state = ("baseline", "open") if old is None else ("candidate", "failed")
        return Reason("answer", "failed" if state == "failed" else "open", what, f"the {which} gave no answer")
    rank = _RANK[new["status"]] - _RANK[old["status"]]
    if rank:
        why = f" ({new['why']})" if new.get("why") else ""
        return Reason("answer", "failed" if rank > 0 else "note", what, f"{old['status']} → {new['status']}{why}")
    if new["status"] != "correct":
        return Reason("answer", "note", what, f"{new['status']} with both: {new.get('why')}")
    if (old["rows"], old["hash"]) == (new["rows"], new["hash"]):
        return None
    sizes = (
        f"{old['rows']} → {new['rows']} rows"
        if old["rows"] != new["rows"]
        else f"{new['rows']} rows, with other values"
    )
    return Reason("answer", "failed", what, sizes)


def capabilities(baseline: Iterable[Row], candidate: Iterable[Row]) -> list[Reason]:
    """Reasons for features lost or gained, from a capability matrix' rows (feature, mode, status, why)."""
    before = {(row["feature"], row["mode"]): row for row in baseline}
    found = []
    for row in candidate:
        old = before.get((row["feature"], row["mode"]))
        if old is not None and old["status"] != row["status"]:
            state: State = "failed" if _RANK[row["status"]] > _RANK[old["status"]] else "note"
            why = f"{old['status']} → {row['status']}" + (f" ({row['why']})" if row.get("why") else "")
            found.append(Reason("capability", state, f"{row['feature']} in {row['mode']}", why))
    return found


def outputs(repetitions: Iterable[Repetition]) -> list[Reason]:
    """Reasons for outputs that were wrong while measuring.

    The candidate's are no-go; the baseline's leave nothing to compare with.
    """
    found = {}
    for one in repetitions:
        if one.wrong:
            state: State = "failed" if one.side == "candidate" else "open"
            found[one.cell, one.side] = Reason("output", state, f"{one.cell}, {one.side}", one.wrong)
        elif not (one.compared or one.void):
            why = "its output was compared with no independent answer"
            found.setdefault((one.cell, one.side), Reason("output", "open", f"{one.cell}, {one.side}", why))
    return list(found.values())


def not_asked(engines: Iterable[str]) -> list[Reason]:
    """Notes that these engines cannot run the suite: then the outputs of all trials decide."""
    why = f"not asked: the suite does not run on {', '.join(engines)}; each output is compared with DuckDB's answer"
    return [Reason("answer", "note", "answers", why)]


def series(repetitions: Sequence[Repetition], tolerance: Mapping[str, float]) -> list[Series]:
    """Judges one series for each cell and metric, in the order of their first repetition."""
    judged = []
    for cell, (metric, allowed) in product(dict.fromkeys(one.cell for one in repetitions), tolerance.items()):
        judge = _rates if metric == RELEASE_RATE else _series
        ours = [one for one in repetitions if (one.cell, one.ladder) == (cell, metric == RELEASE_RATE)]
        judged.append(judge(ours, cell, metric, allowed))
    return judged


def sides(number: int, *, ladder: bool) -> tuple[Side, ...]:
    """The sides of a round in their order. Ladders go A B B A, so that a drift of the machine meets both alike."""
    if not ladder:
        return TURNS
    return ("baseline", "candidate") if number % 2 else ("candidate", "baseline")


def _rates(repetitions: Sequence[Repetition], cell: str, metric: str, tolerance: float) -> Series:
    """Judges the ratio of rates by pairs of processes, each of one round."""
    rounds: dict[int, dict[Side, float]] = {}
    for one in repetitions:
        if not one.void and not one.wrong and one.values.get(metric, 0) > 0:
            rounds.setdefault(one.round, {})[one.side] = one.values[metric]
    pairs = [[math.log(both["candidate"] / both["baseline"])] for both in rounds.values() if len(both) == 2]
    found = ratio_of(pairs) if len(pairs) >= LEAST_PROCESSES else None
    if found is None:
        why = f"{len(pairs)} sound pairs of processes, at least {LEAST_PROCESSES} are needed{_last_void(repetitions)}"
        return Series(cell, metric, "open", why, tolerance, None)
    state, why = _judged_rate(found, tolerance)
    return Series(cell, metric, state, why, tolerance, found)


def _judged_rate(found: Ratio, tolerance: float) -> tuple[State, str]:
    if found.low >= 1 - tolerance:
        return "passed", f"the interval rules out a loss of more than {tolerance:.0%}"
    if found.high < 1 - tolerance:
        return "failed", f"the candidate keeps {found.ratio:.1%} of the rate; the interval excludes {1 - tolerance:.0%}"
    seen = f"{found.processes} such pairs would find a loss of {_detectable_loss(found, tolerance):.0%}"
    return "open", (
        f"the interval neither rules out nor confirms a loss of {tolerance:.0%}; {seen} in {POWER:.0%} of checks"
    )


def _detectable_loss(found: Ratio, tolerance: float) -> float:
    """The smallest loss that such pairs would find beyond the tolerance, in POWER of checks."""
    return 1 - (1 - tolerance) * math.exp(-found.beyond(POWER))


def _last_void(repetitions: Sequence[Repetition]) -> str:
    return next((f"; the last one is void: {one.void}" for one in reversed(repetitions) if one.void), "")


def _series(repetitions: Sequence[Repetition], cell: str, metric: str, tolerance: float) -> Series:
    def values(side: Side) -> list[float]:
        ours = (one for one in repetitions if one.side == side and not one.void and not one.wrong)
        return [one.values[metric] for one in ours if one.values.get(metric, 0) > 0]

    baseline, candidate, control = map(values, TURNS)
    both = [*baseline, *control]
    if carries(repetitions, "baseline", "control") and not carries(repetitions, "candidate"):
        return Series(
            cell, metric, "failed", "the candidate does not sustain this rate; the baseline does", tolerance, None
        )
    if repetitions and not carries(repetitions, "baseline", "control") and not carries(repetitions, "candidate"):
        why = "neither side sustains this rate, so only queues would be compared; lower release.rate"
        return Series(cell, metric, "open", why, tolerance, None)
    if len(both) < LEAST or len(candidate) < LEAST:
        why = f"{len(both)} and {len(candidate)} sound repetitions, at least {LEAST} and {LEAST} are needed"
        return Series(cell, metric, "open", why + _last_void(repetitions), tolerance, None)
    pair = (baseline, control) if baseline and control else None
    found = compare(both, candidate, smallest_effect=tolerance, self_comparison=pair)
    state, reason = _judged(found, tolerance)
    return Series(cell, metric, state, reason, tolerance, found)


def carries(repetitions: Iterable[Repetition], *sides: Side) -> bool:
    """True if, of these sides' repetitions, at most half ended because the system fell behind."""
    ours = [one.outcome != "unsustainable" for one in repetitions if one.side in sides]
    return not ours or 2 * sum(ours) >= len(ours)


def _judged(found: Comparison, tolerance: float) -> tuple[State, str]:
    if found.verdict == "worse":
        return "failed", f"slower by {found.ratio - 1:.1%}, and the interval excludes 'no change'"
    if found.interval is not None and found.interval[1] <= 1 + tolerance:
        return "passed", f"the interval rules out a slowdown of more than {tolerance:.0%}"
    return "open", f"the interval neither rules out nor confirms a slowdown of {tolerance:.0%}"


def suspects(judged: Iterable[Series]) -> list[tuple[str, bool]]:
    """Cells to run again, those with a series that has not passed; True: their ladders, False: at the fixed rate."""
    return list(dict.fromkeys((one.cell, one.metric == RELEASE_RATE) for one in judged if one.state != "passed"))


def decide(reasons: Sequence[Reason], judged: Sequence[Series]) -> Release:
    """The verdict of a check; the suspects among the judged series must have been run again before."""
    measured = [
        Reason("performance", one.state, f"{one.cell} {one.metric}", one.reason)
        for one in judged
        if one.state != "passed"
    ]
    found = sorted([*reasons, *measured], key=lambda reason: ("failed", "open", "note").index(reason.state))
    states = {reason.state for reason in found}
    if "failed" not in states and not judged:
        found.append(Reason("performance", "open", "series", "nothing was measured"))
        states.add("open")
    decision: Decision = "no-go" if "failed" in states else "inconclusive" if "open" in states else "go"
    return Release(decision, found, list(judged))


def table(judged: Iterable[Series]) -> list[dict[str, Any]]:
    """Rows for the terminal and the record: each series with its noise floor and its detectable effect."""
    return [
        {
            "cell": one.cell, "metric": one.metric, "state": one.state, "reason": one.reason,
            "tolerance": one.tolerance,
            **_figures(one),
        }
        for one in judged
    ]  # fmt: skip


def _figures(one: Series) -> dict[str, Any]:
    found = one.comparison
    if isinstance(found, Ratio):
        return {
            "ratio": found.ratio, "interval": (found.low, found.high), "noise_floor": None,
            "detectable_effect": _detectable_loss(found, one.tolerance),
            "n_baseline": found.processes, "n_candidate": found.processes,
        }  # fmt: skip
    names = ("ratio", "interval", "noise_floor", "detectable_effect", "n_baseline", "n_candidate")
    return {} if found is None else {name: getattr(found, name) for name in names}
