"""CPU time per event, of systems whose truth is known: rows in work at the end must not count as done."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.bench.measurements.latency.stage import cpu_between
from streamgauge.records.measurement import Sample, TrialObservation

RATE, SECONDS, BEGAN_S = 1_000.0, 20.0, 0.3
TRUTH_US = 300.0


def offered(period_s: float) -> TrialObservation:
    """A hand-over every period_s, with the rows that were handed over before it; one comes after the end."""
    samples = tuple(
        Sample(float(at), period_s, 0, round(RATE * period_s * number), bool(at >= 2.0))
        for number, at in enumerate(np.arange(BEGAN_S, SECONDS + period_s, period_s))
    )
    return TrialObservation(RATE, SECONDS, samples, round(RATE * SECONDS), round(RATE * SECONDS))


def used(period_s: float, *, commits: bool) -> list[tuple[float, float]]:
    """CPU seconds, read twice a second, of a system that works all the time until it has taken all rows.

    A micro-batch is worked off between its hand-over and the next one. A commit comes when its rows are done.
    """
    begin = BEGAN_S - period_s if commits else BEGAN_S
    at = np.arange(0, SECONDS + 6, 0.5)
    return [(float(t), float(max(0.0, t - begin) * RATE * TRUTH_US / 1e6)) for t in at]


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("period_s", [0.1, 0.7, 1.0, 2.0])
def test_rows_in_work_at_the_end_do_not_matter(period_s: float, commits: bool) -> None:
    found = cpu_between(used(period_s, commits=commits), offered(period_s))
    assert found == pytest.approx(TRUTH_US, rel=0.01)


def test_too_few_hand_overs_tell_nothing() -> None:
    assert cpu_between(used(5.0, commits=False), offered(5.0)) is None
    assert cpu_between([], offered(1.0)) is None
    assert cpu_between([(0.0, 1.0), (1.0, 2.0)], offered(1.0)) is None
