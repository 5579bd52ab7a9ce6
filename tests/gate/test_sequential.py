"""Judging while pairs are still measured: the error over all looks together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from streamgauge.stats import sequential
from streamgauge.stats.sequential import LOOKS, Look, look, share


def test_the_looks_spend_no_more_than_the_allowed_error_whenever_the_end_comes() -> None:
    for end in range(3, 60):
        spent = [share(pairs, 0.05, last=False) for pairs in range(end)] + [share(end, 0.05, last=True)]
        assert sum(spent) <= 0.05
    assert [pairs for pairs in range(60) if share(pairs, 0.05, last=False)] == list(LOOKS)
    assert share(2, 0.05, last=True) == 0


def test_a_look_has_the_interval_of_student_s_t() -> None:
    logs = [0.03, 0.05, 0.01, 0.04, 0.02]
    seen = look(logs, 0.05, last=True)
    assert seen is not None
    wanted = stats.t.interval(0.95, 4, loc=0.03, scale=stats.sem(logs))
    assert (seen.low, seen.high) == pytest.approx(wanted)
    assert seen.interval == pytest.approx(tuple(map(math.exp, wanted)))
    wider = look(logs, 0.05, miss=0.01, last=True)
    assert wider is not None
    assert (wider.low, wider.high > seen.high) == (seen.low, True)


@pytest.mark.parametrize(("pairs", "last"), [(2, True), (5, False), (0, True)])
def test_nobody_looks_at_too_few_pairs_or_between_looks(pairs: int, last: bool) -> None:
    assert look([0.1] * pairs, 0.05, last=last) is None


def _first_above(logs: np.ndarray) -> bool:
    looks = [look(logs[:n].tolist(), 0.05, last=n == len(logs)) for n in range(3, len(logs) + 1)]
    return any(one is not None and one.low > 0 for one in looks)


def test_equal_sides_are_called_slower_in_fewer_gates_than_allowed() -> None:
    draws = np.random.default_rng(7).normal(0, 0.05, (800, 12))
    assert sum(map(_first_above, draws)) / 800 <= 0.05


def test_a_slowdown_of_the_detectable_size_is_seen_as_often_as_it_says() -> None:
    random = np.random.default_rng(11)
    slower = 0.06

    def end(logs: np.ndarray) -> Look:
        seen = look(logs.tolist(), 0.05, last=True)
        assert seen is not None
        return seen

    ends = [end(random.normal(slower, 0.04, 8)) for _ in range(400)]
    power = sum(one.low > 0 for one in ends) / len(ends)
    # by the noncentral t of a known spread
    freedom, critical = 7, stats.t.ppf(0.975, 7)
    assert power == pytest.approx(1 - stats.nct.cdf(critical, freedom, slower / 0.04 * math.sqrt(8)), abs=0.05)
    typical = float(np.median([one.detectable for one in ends]))
    exact = stats.nct.cdf(critical, freedom, typical / 0.04 * math.sqrt(8))
    assert 1 - exact == pytest.approx(sequential.POWER, abs=0.05)
