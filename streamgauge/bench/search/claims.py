"""Decides what may be said of a cell's rate, by one rule over its search and its latency runs.

Pages, summaries, commands and records read a `Claim`; none of them tests the outcome of a search itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.records.claim import Claim, Kind

#: an interval is too wide if its ends are further apart than this factor
WIDEST = 2.0


def claim_of(search: SearchAnswer | None, runs: Sequence[LatencyRun] = ()) -> Claim:
    if search is None:
        return Claim(kind="none", sentence="No rate was measured.")
    rate, interval = search.sustainable_rate_events_per_s, search.interval
    reason = " ".join((search.reason or "no reason is given").split())
    if search.correct is False:
        return Claim(kind="wrong", sentence="The answers are wrong, so the rate does not count.")
    if search.outcome == "contradicted":
        return Claim(
            kind="contradicted", sentence=f"The measurements contradict each other, so no rate counts: {reason}."
        )
    if not rate or search.outcome == "inconclusive":
        return Claim(kind="none", sentence=f"No rate was found: {reason}.")
    unsustained = [run.rate_events_per_s for run in runs if run.valid and run.outcome == "unsustainable"]
    if any(load < (interval[0] if interval else rate) for load in unsustained):
        why = "a latency run below the rate's interval was not sustained"
        return Claim(kind="contradicted", sentence=f"The measurements contradict each other, so no rate counts: {why}.")
    is_bound = search.outcome == "all_sustained"
    is_too_wide = interval is not None and not is_bound and interval[1] > WIDEST * interval[0]
    doubts = []
    if any(load <= rate for load in unsustained):
        doubts.append("a latency run at this rate or below was not sustained")
    if any(run.correct is False for run in runs):
        doubts.append("the answer of a latency run was wrong")
    if is_too_wide:
        doubts.append(f"its interval is too wide, beyond a factor of {WIDEST:g}")
    sides = ("below", "above") if not is_bound else ("below",)
    missing = [side for side, load in zip(sides, search.proven, strict=False) if load is None]
    if search.outcome == "unproven":
        doubts.append(reason)
    elif missing:
        doubts.append(f"no proof trial {' or '.join(missing)} it was clear")
    kind: Kind = "at least" if is_bound else "proven"
    sentence = {
        "proven": "Proof trials below and above it confirm the rate.",
        "at least": "The system sustained all that was offered, so it may carry more.",
    }[kind]
    if doubts:
        kind, sentence = "estimated", f"The rate is only estimated: {'; '.join(doubts)}."
    return Claim(
        kind=kind,
        sentence=sentence,
        rate_events_per_s=rate,
        interval=interval,
        is_too_wide=is_too_wide,
        is_bound=is_bound,
    )
