"""Decides between go, no-go and inconclusive from the pairs of a gate, by pure functions.

A series (cell and metric) is slower by d; the file says which slowdown must not be merged. The series passes when the
upper bound of d lies below that. It fails when the lower bound lies above 0 and d is at least half of it. Otherwise it
is open, and goes on for as long as the budget lasts. Accepted slowdowns are taken off d before.
A wrong answer of the head is no-go whatever the speed. So is a head that twice in a row does not run, or that misses
the rate in two trials, where the base runs and holds it in two: one miss may be a neighbour's doing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial
from itertools import pairwise, product
from typing import Literal

from streamgauge.base.words import counted
from streamgauge.bench.compare.release_rules import Release, log_ratios
from streamgauge.config.gate import GATE_SPEED, Accepted, Gate
from streamgauge.records.gate import Acceptance, GateRepetition, GateSeries
from streamgauge.records.release import JudgedSeries, Reason, Repetition, Side, State
from streamgauge.stats.sequential import LEAST, Look, look

#: an equal commit is called slower in at most this part of gates, and one that is slower by `slower_percent` passes in
#: at most this part
ERROR = 0.05
#: what the sides are called here
NAMES: dict[Side, str] = {"baseline": "base", "candidate": "head"}


def slowdowns(repetitions: Iterable[Repetition], cell: str, metric: str) -> list[float]:
    """Logarithms of what the head costs over what the base costs, of each sound pair."""
    sign = -1 if metric == GATE_SPEED else 1
    return [sign * one for one in log_ratios((one for one in repetitions if one.cell == cell), metric)]


def judged(
    repetitions: Sequence[Repetition],
    cells: Sequence[str],
    settings: Gate,
    accepted: Iterable[Accepted] = (),
    *,
    last: bool,
) -> list[GateSeries]:
    """Judges each series. accepted: slowdowns that count, and are taken off. last: no further pair comes."""
    entries, all_series = list(accepted), list(product(cells, settings.metrics))
    series = []
    for cell, metric in all_series:
        logs = slowdowns(repetitions, cell, metric)
        allowed = max((one.slower_percent for one in entries if one.holds_for(cell, metric)), default=0.0) / 100
        beyond = [one - math.log1p(allowed) for one in logs]
        seen = look(beyond, ERROR / len(all_series), miss=ERROR, last=last)
        series.append(_series(cell, metric, logs, seen, settings.slower_percent / 100, allowed))
    return series


def _series(
    cell: str, metric: str, logs: Sequence[float], seen: Look | None, slower: float, allowed: float
) -> GateSeries:
    pairs = len(logs)
    about = partial(
        GateSeries, cell=cell, metric=metric, tolerance=slower, accepted=allowed, n_baseline=pairs, n_candidate=pairs,
        slowdowns=tuple(math.expm1(one) for one in logs),
    )  # fmt: skip
    if seen is None:
        few = f"{counted(pairs, 'sound pair')} of processes, at least {LEAST} are needed"
        return about(state="open", reason=few if pairs < LEAST else "not looked at yet")
    state, why = _state(seen, slower, allowed)
    least = _least(seen, slower)
    low, high = (end * (1 + allowed) for end in seen.interval)
    return about(
        state=state, reason=why, ratio=seen.ratio * (1 + allowed), interval=(low, high), seen=least,
        detectable_effect=least, spread=math.expm1(seen.spread),
    )  # fmt: skip


def _state(seen: Look, slower: float, allowed: float) -> tuple[State, str]:
    beyond = f" beyond the accepted {100 * allowed:g} %" if allowed else ""
    limit = math.log1p(slower)
    if seen.high < limit:
        return "passed", f"a slowdown of {100 * slower:g} %{beyond} is ruled out"
    if seen.low > 0 and seen.middle >= limit / 2:
        return "failed", f"slower by {100 * (seen.ratio - 1):.1f} %{beyond}, and not by chance"
    return "open", (
        f"a slowdown of {100 * slower:g} %{beyond} is neither ruled out nor shown; {seen.pairs} such pairs show "
        f"one of {100 * _least(seen, slower):.0f} % in nine of ten gates"
    )


def _least(seen: Look, slower: float) -> float:
    """The slowdown that such pairs show in nine of ten gates: by its bound, and by the middle that must be reached."""
    half = math.log1p(slower) / 2 + 1.282 * seen.spread / math.sqrt(seen.pairs)
    return math.expm1(max(seen.detectable, half))


def reasons_of(repetitions: Sequence[GateRepetition], settings: Gate) -> list[Reason]:
    """Reasons for answers that are wrong or were not compared, and for a head that does not run or misses the rate."""
    reasons = []
    if settings.answers == "skip" and not any(one.compared for one in repetitions):
        reasons.append(Reason("answer", "note", "answers", "not checked, as gate.answers is skip"))
    for cell in dict.fromkeys(one.cell for one in repetitions):
        asked = [one for one in repetitions if one.cell == cell and one.asked]
        reasons += [one for one in (_misses(asked, cell), _fails(repetitions, cell)) if one]
        for side, name in NAMES.items():
            ours = [one for one in asked if one.side == side]
            wrong = next((one.wrong for one in repetitions if (one.cell, one.side) == (cell, side) and one.wrong), None)
            state: State = "failed" if wrong and side == "candidate" else "open"
            if wrong or (settings.answers == "check" and not any(one.compared for one in ours)):
                why = wrong or f"its answers were compared with no independent ones{_last(ours)}"
                reasons.append(Reason("output", state, f"{cell}, {name}", why))
    return reasons


def asks_again(repetitions: Iterable[GateRepetition], cell: str) -> bool:
    """True if the head has missed the rate, and further trials are to tell whether it does, and the base does not."""
    missed = _misses(repetitions, cell)
    return missed is not None and missed.state == "open"


def _misses(repetitions: Iterable[GateRepetition], cell: str) -> Reason | None:
    """The reason that tells in how many of its clear trials the head has missed the rate; None if in none."""
    missed: dict[Side, list[bool]] = {side: [] for side in NAMES}
    for one in repetitions:
        if one.cell == cell and one.asked and one.outcome in ("sustainable", "unsustainable"):
            missed[one.side].append(one.outcome == "unsustainable")
    base, head = missed.values()
    if not any(head):
        return None
    why = f"the head misses gate.rate in {sum(head)} of {len(head)} trials, and the base in {sum(base)} of {len(base)}"
    state: State = "note"
    if 2 * sum(head) > len(head):
        if min(len(base), len(head)) < 2:  # the head's two are neighbours in time, so one burst may cover both
            state = "open"
        elif 2 * sum(base) < len(base):
            state = "failed"
    return Reason("performance", state, cell, why)


def _fails(repetitions: Iterable[GateRepetition], cell: str) -> Reason | None:
    """The reason that tells how many processes of the head did not run; None if all did."""
    head = [one for one in repetitions if (one.cell, one.side) == (cell, "candidate")]
    failed = [one for one in head if not one.ran]
    if not failed:
        return None
    twice = any(not one.ran and not other.ran for one, other in pairwise(head))
    often = len(failed) > 1 and 2 * len(failed) >= len({one.round for one in head})  # in half of the pairs
    why = f"{len(failed)} of {counted(len(head), 'process')} did not run, and the base's did: {failed[-1].void}"
    return Reason("output", "failed" if twice else "open" if often else "note", f"{cell}, head", why)


def _last(repetitions: Sequence[GateRepetition]) -> str:
    return next((f": {one.unchecked}" for one in reversed(repetitions) if one.unchecked), "")


def line_of(release: Release, series: Iterable[GateSeries], settings: Gate) -> str:
    """The verdict and its reasons, in one line."""
    if release.decision != "go":
        return release.line
    answers = "no answer is wrong" if settings.answers == "check" else "answers were not checked"
    compared = ", ".join(settings.compare)
    beyond = " beyond what is accepted" if any(one.accepted for one in series) else ""
    return f"go: {answers}, and a slowdown of {settings.slower_percent:g} %{beyond} is ruled out (compared: {compared})"


def is_clear(reasons: Iterable[Reason], series: Iterable[JudgedSeries]) -> bool:
    """True if further pairs would change nothing: something has failed, or all is clear, and all series have passed."""
    states, told = [one.state for one in series], list(reasons)
    if "failed" in states or any(one.state == "failed" for one in told):
        return True
    misses = any((one.kind, one.state) == ("performance", "open") for one in told)  # a rate, which is asked again
    return not misses and all(state == "passed" for state in states)


def exit_code(decision: str, inconclusive: Literal["warn", "fail"]) -> int:
    """Exit code: 0 go, 1 no-go; inconclusive is 0 or 2, as the file says."""
    return {"go": 0, "no-go": 1}.get(decision, 2 if inconclusive == "fail" else 0)


def acceptances(
    head: Iterable[Accepted], base: Iterable[Accepted], today: date, series: Iterable[tuple[str, str]]
) -> list[tuple[Accepted, Acceptance]]:
    """Entries of the head's list, and whether each counts: one that the base has too was merged with its slowdown.

    series: cell and metric of all that is compared.
    """
    before, compared = set(base), list(series)
    listed = []
    for one in head:
        state = "in the base" if one in before else "expired" if one.until < today else "counts"
        if state == "counts" and not any(one.holds_for(cell, metric) for cell, metric in compared):
            state = "no series"
        fields = one.model_dump(include={"slower_percent", "author", "reason", "until"})
        listed.append((one, Acceptance.model_validate({"state": state, **fields})))
    return listed
