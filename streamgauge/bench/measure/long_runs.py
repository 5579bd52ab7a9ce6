"""Tests a found rate by long open-loop runs below and above it."""

from __future__ import annotations

import logging

from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measurements.search.record import LongRun
from streamgauge.bench.search.steps import Done
from streamgauge.bench.search.verdict import settled_age

log = logging.getLogger("streamgauge")
#: fractions of the found rate: the first must settle; the second, begun the allowed age behind, must not
FRACTIONS = (0.9, 1.1)


def long_runs(bench: ReadyCell, done: Done, seconds: float, token: int) -> tuple[LongRun, ...]:
    """Runs each fraction of the rate for `seconds`, in the process that runs; returns a record for each."""
    runs = []
    for fraction in FRACTIONS:
        rate = fraction * done.rate_events_per_s
        log.info("long run at %g %% of the rate, %.6g events/s", 100 * fraction, rate)
        behind_s = bench.plan.search.max_age.seconds if fraction > 1 else 0.0
        measured = bench.trial(rate, seconds, token=token, behind_s=behind_s)
        seen = measured.observation
        samples = seen.samples or seen.clock
        last = done.processes[-1]
        runs.append(
            LongRun(
                fraction=fraction,
                rate_events_per_s=rate,
                seconds=seconds,
                predicted_age_s=last.age_at(rate),
                age_s=settled_age(seen),
                last_age_s=samples[-1].age_s if samples else None,
                overflow=seen.overflow,
                outcome=measured.outcome,
                reason=seen.invalid or measured.reason,
                correct=measured.correct,
                samples=tuple((s.at_s, s.age_s, s.backlog, s.taken, s.warm) for s in samples),
            )
        )
        log.info("  %s: %s", measured.outcome, runs[-1].reason)
    return tuple(runs)
