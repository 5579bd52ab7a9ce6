"""CPU time per event, of systems whose truth is known: rows in work at the end must not count as done."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.measure.latency import _cpu_between
from streamgauge.search.records import Sample, TrialObservation

RATE, SECONDS = 1_000.0, 10.0
TRUTH_US = 300.0


def offered(period_s: float, *, warm_from_s: float = 0.0) -> TrialObservation:
    """A hand-over every period_s, of all that came since the one before."""
    plans = np.arange(0.1, SECONDS + period_s, period_s)
    samples = tuple(
        Sample(float(at), period_s, round(RATE * period_s), round(RATE * max(0.0, at - period_s)), at >= warm_from_s)
        for at in plans
    )
    return TrialObservation(RATE, SECONDS, samples, round(RATE * SECONDS), round(RATE * SECONDS))


def used(period_s: float) -> list[tuple[float, float]]:
    """CPU seconds of a system that works on each hand-over until the next one, read twice a second."""
    return [(at, max(0.0, at - 0.1 - period_s) * RATE * TRUTH_US / 1e6) for at in np.arange(0, SECONDS + 6, 0.5)]


@pytest.mark.parametrize("period_s", [0.2, 1.0, 3.0, 5.0])
def test_the_length_of_a_batch_does_not_matter(period_s: float) -> None:
    assert _cpu_between(used(period_s), offered(period_s, warm_from_s=1.0)) == pytest.approx(TRUTH_US, rel=0.1)


def test_too_few_hand_overs_tell_nothing() -> None:
    assert _cpu_between(used(1.0), offered(20.0)) is None
    assert _cpu_between([], offered(1.0)) is None
    assert _cpu_between([(0.0, 1.0), (1.0, 2.0)], offered(1.0)) is None
