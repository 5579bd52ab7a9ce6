"""Decides between go, no-go and inconclusive from the records of a release check, by pure functions.

Answers come first: a query is no-go at once if the candidate's answer is worse or missing, or both differ. Then each
series (cell and metric) of repetitions, measured in turns, is judged. It passes when the interval of candidate/baseline
rules out a slowdown of the tolerance. It fails when the candidate is worse by at least the tolerance and the noise
floor; a rate fails when its whole interval lies beyond the tolerance. Else it is open. A series that has not passed is
run again before it counts. One that is open even then leaves the check inconclusive: missing data is never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

from streamgauge.base.words import counted
from streamgauge.config import RELEASE_RATE
from streamgauge.records.answers import Answer, FeatureAbility, Mode
from streamgauge.records.release import Decision, JudgedSeries, Reason, ReasonKind, Repetition, Side, State
from streamgauge.stats.ab import LEAST, compare
from streamgauge.stats.outcomes import Comparison
from streamgauge.stats.paired import LEAST_PROCESSES, Ratio, ratio_of

#: order in a round; the control is the baseline again, so that every round has an A/A pair around the candidate
TURNS: tuple[Side, ...] = ("baseline", "candidate", "control")
#: part of checks in which the loss of a rate would be found that an open series names
POWER = 0.9
#: rank of a status of answers and capabilities: a higher one is worse
_RANK = {"correct": 0, "works": 0, "unchecked": 1, "not run": 1, "unsupported": 2, "wrong": 3}

#: of how many subjects of one reason the names are said
_NAMED = 4


@dataclass(frozen=True)
class Release:
    decision: Decision
    reasons: list[Reason]
    series: list[JudgedSeries] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The verdict and its first reasons, in one line."""
        counts = grouped(reason for reason in self.reasons if reason.state != "note")
        first = "; ".join(f"{reason.what}: {reason.why}" for reason in counts[:3])
        more = f"; and {len(counts) - 3} more" if len(counts) > 3 else ""
        return f"{self.decision}: {first or 'no answer is worse, all series are within their tolerance'}{more}"


def grouped(reasons: Iterable[Reason]) -> list[Reason]:
    """Reasons of which each is said once, with all that it holds for: "3 × (q1 in batch, q2 in batch, q3 in batch)"."""
    holds: dict[tuple[ReasonKind, State, str], list[str]] = {}
    for reason in reasons:
        holds.setdefault((reason.kind, reason.state, reason.why), []).append(reason.what)
    return [Reason(kind, state, _all_of(what), why) for (kind, state, why), what in holds.items()]


def _all_of(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = ", …" if len(names) > _NAMED else ""
    return f"{len(names)} × ({', '.join(names[:_NAMED])}{more})"


def answers(
    baseline: Iterable[Answer], candidate: Iterable[Answer], wanted: Iterable[tuple[str, Mode]] = ()
) -> list[Reason]:
    """Reasons for answers that differ or are missing.

    wanted: (query, mode) of all that was asked, so that what neither side answered is missing too.
    """
    before, after = ({(one.query, one.mode): one for one in side} for side in (baseline, candidate))
    asked = dict.fromkeys([*wanted, *before, *after])
    if not asked:
        return [Reason("answer", "open", "answers", "no query was asked")]
    reasons = [_answer(f"{key[0]} in {key[1]}", before.get(key), after.get(key)) for key in asked]
    return [reason for reason in reasons if reason is not None]


def _answer(what: str, old: Answer | None, new: Answer | None) -> Reason | None:
    if old is None and new is None:
        return Reason("answer", "open", what, "neither side gave an answer")
    if new is None:
        return Reason("answer", "failed", what, "the candidate gave no answer")
    if old is None:
        return Reason("answer", "open", what, "the baseline gave no answer")
    rank = _RANK[new.status] - _RANK[old.status]
    if rank:
        why = f" ({new.why})" if new.why else ""
        return Reason("answer", "failed" if rank > 0 else "note", what, f"{old.status} → {new.status}{why}")
    if new.status != "correct":
        return Reason("answer", "note", what, f"{new.status} with both: {new.why}")
    if (old.rows, old.hash) == (new.rows, new.hash):
        return None
    rows = counted(new.rows or 0, "row")
    why = f"{rows}, with other values" if old.rows == new.rows else f"{old.rows} → {rows}"
    return Reason("answer", "failed", what, why)


def capabilities(baseline: Iterable[FeatureAbility], candidate: Iterable[FeatureAbility]) -> list[Reason]:
    before = {(one.feature, one.mode): one for one in baseline}
    reasons = []
    for new in candidate:
        old = before.get((new.feature, new.mode))
        if old is not None and old.status != new.status:
            state: State = "failed" if _RANK[new.status] > _RANK[old.status] else "note"
            why = f"{old.status} → {new.status}" + (f" ({new.why})" if new.why else "")
            reasons.append(Reason("capability", state, f"{new.feature} in {new.mode}", why))
    return reasons


def outputs(repetitions: Iterable[Repetition]) -> list[Reason]:
    """Reasons for outputs that were wrong: the candidate's are no-go; the baseline's leave nothing to compare with."""
    reasons = {}
    for one in repetitions:
        if one.wrong:
            state: State = "failed" if one.side == "candidate" else "open"
            reasons[one.cell, one.side] = Reason("output", state, f"{one.cell}, {one.side}", one.wrong)
        elif not (one.compared or one.void):
            why = "its output was compared with no independent answer"
            reasons.setdefault((one.cell, one.side), Reason("output", "open", f"{one.cell}, {one.side}", why))
    return list(reasons.values())


def left_out(repetitions: Sequence[Repetition]) -> list[Reason]:
    """A reason for each cell in which some of the candidate's repetitions do not count.

    It is open if these are two or more, half of all, and a larger part than of the baseline's.
    """
    reasons = []
    for cell in dict.fromkeys(one.cell for one in repetitions):
        ours = [one for one in repetitions if one.cell == cell]
        new, old = ([one.void for one in ours if (one.side == "candidate") is is_new] for is_new in (True, False))
        void = [why for why in new if why]
        if void:
            more = len(void) * len(old) > sum(map(bool, old)) * len(new)
            state: State = "open" if more and len(void) > 1 and 2 * len(void) >= len(new) else "note"
            why = f"{len(void)} of {counted(len(new), 'repetition')} do not count; the last one: {void[-1]}"
            reasons.append(Reason("output", state, f"{cell}, candidate", why))
    return reasons


def not_asked(engines: Iterable[str]) -> list[Reason]:
    """Notes that these engines cannot run the suite: then the outputs of all trials decide."""
    why = f"not asked: the suite does not run on {', '.join(engines)}; each output is compared with DuckDB's answer"
    return [Reason("answer", "note", "answers", why)]


def series(repetitions: Sequence[Repetition], tolerance: Mapping[str, float]) -> list[JudgedSeries]:
    """Judges one series for each cell and metric, in the order of their first repetition."""
    judged = []
    for cell, (metric, allowed) in product(dict.fromkeys(one.cell for one in repetitions), tolerance.items()):
        judge = _rates if metric == RELEASE_RATE else _series
        ours = [one for one in repetitions if (one.cell, one.ladder) == (cell, metric == RELEASE_RATE)]
        judged.append(judge(ours, cell, metric, allowed))
    return judged


def sides(number: int) -> tuple[Side, ...]:
    """The sides of a pair in their order: A B, B A, A B …, so that a drift of the machine meets both alike."""
    return ("baseline", "candidate") if number % 2 else ("candidate", "baseline")


def log_ratios(repetitions: Iterable[Repetition], metric: str) -> list[float]:
    """Logarithms of what the candidate has over what the baseline has, of each round in which both count."""
    rounds: dict[int, dict[Side, float]] = {}
    for one in _counting(repetitions, metric):
        rounds.setdefault(one.round, {})[one.side] = one.values[metric]
    pairs = (both for _, both in sorted(rounds.items()) if len(both) == 2)
    return [math.log(both["candidate"] / both["baseline"]) for both in pairs]


def _counting(repetitions: Iterable[Repetition], metric: str) -> list[Repetition]:
    """Repetitions that have a sound figure of which a ratio can be formed."""
    return [one for one in repetitions if one.is_sound and one.values.get(metric, 0) > 0]


def _rates(repetitions: Sequence[Repetition], cell: str, metric: str, tolerance: float) -> JudgedSeries:
    """Judges the ratio of rates by pairs of processes, each of one round."""
    claim = rates_claim(_counting(repetitions, metric))
    about = partial(JudgedSeries, cell=cell, metric=metric, tolerance=tolerance, claim=claim)
    pairs = [[one] for one in log_ratios(repetitions, metric)]
    ratio = ratio_of(pairs) if len(pairs) >= LEAST_PROCESSES else None
    if ratio is None:
        why = f"{counted(len(pairs), 'sound pair')} of processes, at least {LEAST_PROCESSES} are needed"
        return about(state="open", reason=why + _last_void(repetitions))
    state, why = _judged_rate(ratio, tolerance)
    return about(
        state=state,
        reason=why,
        ratio=ratio.ratio,
        interval=(ratio.low, ratio.high),
        detectable_effect=_detectable_loss(ratio, tolerance),
        n_baseline=ratio.processes,
        n_candidate=ratio.processes,
    )


def rates_claim(repetitions: Iterable[Repetition]) -> str:
    """The claim of a figure of several rates: proven if all of them are; empty without any."""
    kinds = {one.claim for one in repetitions}
    return "" if not kinds else "proven" if kinds == {"proven"} else "estimated"


def _judged_rate(ratio: Ratio, tolerance: float) -> tuple[State, str]:
    if ratio.low >= 1 - tolerance:
        return "passed", f"the interval rules out a loss of more than {tolerance:.0%}"
    if ratio.high < 1 - tolerance:
        return "failed", f"the candidate keeps {ratio.ratio:.1%} of the rate; the interval excludes {1 - tolerance:.0%}"
    least = _detectable_loss(ratio, tolerance)
    seen = f"{ratio.processes} such pairs would find a loss of {least:.0%} in {POWER:.0%} of checks"
    return "open", f"the interval neither rules out nor confirms a loss of {tolerance:.0%}; {seen}"


def _detectable_loss(ratio: Ratio, tolerance: float) -> float:
    """The smallest loss that such pairs would find beyond the tolerance, in POWER of checks."""
    return 1 - (1 - tolerance) * math.exp(-ratio.beyond(POWER))


def _last_void(repetitions: Sequence[Repetition]) -> str:
    return next((f"; the last one is void: {one.void}" for one in reversed(repetitions) if one.void), "")


def _series(repetitions: Sequence[Repetition], cell: str, metric: str, tolerance: float) -> JudgedSeries:
    about = partial(JudgedSeries, cell=cell, metric=metric, tolerance=tolerance)
    if not carries(repetitions, "candidate"):
        if carries(repetitions, "baseline", "control"):
            return about(state="failed", reason="the candidate does not sustain this rate; the baseline does")
        why = "neither side sustains this rate, so only queues would be compared; lower release.rate"
        return about(state="open", reason=why)
    sound = _counting(repetitions, metric)
    baseline, candidate, control = ([one.values[metric] for one in sound if one.side == side] for side in TURNS)
    both = [*baseline, *control]
    if len(both) < LEAST or len(candidate) < LEAST:
        why = f"{len(both)} and {counted(len(candidate), 'sound repetition')}, at least {LEAST} of each are needed"
        return about(state="open", reason=why + _last_void(repetitions))
    pair = (baseline, control) if baseline and control else None
    comparison = compare(both, candidate, smallest_effect=tolerance, self_comparison=pair)
    state, why = _judged(comparison, tolerance)
    if state == "passed" and (late := sum(metric in one.bounds for one in sound if one.side == "candidate")):
        state, why = "open", f"{late} of the candidate's {len(candidate)} ended by their patience, so they took longer"
    return about(
        state=state,
        reason=why,
        ratio=comparison.ratio,
        interval=comparison.interval,
        noise_floor=comparison.noise_floor,
        detectable_effect=comparison.detectable_effect,
        n_baseline=comparison.n_baseline,
        n_candidate=comparison.n_candidate,
    )


def carries(repetitions: Iterable[Repetition], *sides: Side) -> bool:
    """True if, of these sides' repetitions, at most half ended because the system fell behind."""
    ours = [one.outcome != "unsustainable" for one in repetitions if one.side in sides]
    return 2 * sum(ours) >= len(ours)


def _judged(comparison: Comparison, tolerance: float) -> tuple[State, str]:
    if comparison.verdict == "worse":
        return "failed", f"slower by {comparison.ratio - 1:.1%}, and the interval excludes 'no change'"
    if comparison.interval is not None and comparison.interval[1] <= 1 + tolerance:
        return "passed", f"the interval rules out a slowdown of more than {tolerance:.0%}"
    return "open", f"the interval neither rules out nor confirms a slowdown of {tolerance:.0%}"


def suspects(judged: Iterable[JudgedSeries]) -> list[tuple[str, bool]]:
    """Cells to run again, those with a series that has not passed; True: their ladders, False: at the fixed rate."""
    return list(dict.fromkeys((one.cell, one.metric == RELEASE_RATE) for one in judged if one.state != "passed"))


def decide(reasons: Sequence[Reason], judged: Sequence[JudgedSeries]) -> Release:
    """The verdict of a check; the suspects among the judged series must have been run again before."""
    measured = [Reason("performance", one.state, one.name, one.reason) for one in judged if one.state != "passed"]
    ordered = sorted([*reasons, *measured], key=lambda reason: ("failed", "open", "note").index(reason.state))
    states = {reason.state for reason in ordered}
    if "failed" not in states and not judged:
        ordered.append(Reason("performance", "open", "series", "nothing was measured"))
        states.add("open")
    decision: Decision = "no-go" if "failed" in states else "inconclusive" if "open" in states else "go"
    return Release(decision, ordered, list(judged))
