"""CPUs that one stream needs beyond another: against closed forms, and how often the interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streamgauge.bench.search.estimate import differ_of
from streamgauge.stats.parts import Curve, MoreCpus, more_cpus
from streamgauge.stats.scalability import Refused, carried

CPUS = (1, 2, 4, 8)


def rates(one_cpu: float, power: float = 0.8) -> list[float]:
    return [one_cpu * n**power for n in CPUS]


def test_between_the_parts_of_a_power_law_the_cpus_are_exact() -> None:
    ordered, late = Curve(CPUS, [rates(1000)] * 3), Curve(CPUS, [rates(800)] * 3)
    for rate in (1500, 2000, 4000):
        found = more_cpus(late, ordered, rate)
        assert isinstance(found, MoreCpus)
        own, other = (rate / 800) ** 1.25, (rate / 1000) ** 1.25
        assert (found.cpus, found.other, found.rate_events_per_s) == pytest.approx((own, other, rate))
        assert found.interval == pytest.approx((own - other, own - other))


def test_a_rate_that_the_parts_do_not_carry_of_both_is_replaced_and_without_a_common_one_there_is_no_claim() -> None:
    ordered, late = Curve(CPUS, [rates(1000), rates(1010)]), Curve(CPUS, [rates(800), rates(810)])
    middle = (1010 * 800 * 8**0.8) ** 0.5
    for asked in (None, 100.0, 1e6):
        found = more_cpus(late, ordered, asked)
        assert isinstance(found, MoreCpus)
        assert found.rate_events_per_s == pytest.approx(middle)
    refused = more_cpus(Curve(CPUS, [rates(10), rates(11)]), ordered, 1500)
    assert isinstance(refused, Refused)
    assert refused.reason.startswith("the parts carry no common rate: 11 to 52.7803 events/s of the one, 1,010 to ")


def test_fresh_processes_are_in_the_interval() -> None:
    """A process that is slower by a tenth needs 1.25 tenths more CPUs here."""
    ordered, late = Curve(CPUS, [rates(1000)] * 2), Curve(CPUS, [rates(1000)] * 2, differ=0.1)
    found = more_cpus(late, ordered, 2000)
    assert isinstance(found, MoreCpus)
    assert found.interval[1] == pytest.approx(0.125 * 2**1.25)


def test_blocks_of_two_processes_are_not_paired() -> None:
    """Both processes became faster by the same part from block to block, which says nothing of how they differ."""
    ordered, late = (Curve(CPUS, [rates(one_cpu * (1 + n / 10)) for n in range(3)]) for one_cpu in (1000, 800))
    found = more_cpus(late, ordered, 2000)
    assert isinstance(found, MoreCpus)
    half = math.hypot(*(2.92 * one.needed(2000)[:, 0].std(ddof=1) / 3**0.5 for one in (late, ordered)))
    assert found.interval[1] - (found.cpus - found.other) == pytest.approx(half, 1e-3)


def test_the_interval_holds_the_truth_nine_times_in_ten() -> None:
    """A measurement has a process for each stream, whose law is no power, and a search of three processes."""
    draw = np.random.default_rng(1)

    def measured(one_cpu: float) -> Curve:
        speed, *others = np.exp(draw.normal(0, 0.03, 4))
        law = np.array([carried(n, one_cpu, 0.05, 0.001) for n in CPUS])
        noisy = speed * law * np.exp(draw.normal(0, 0.03, (3, len(CPUS))))
        return Curve(CPUS, noisy.tolist(), differ_of(others))

    def truth(one_cpu: float, rate: float) -> float:
        fine = np.linspace(1, 8, 70_001)
        return float(np.interp(rate, [carried(n, one_cpu, 0.05, 0.001) for n in fine], fine))

    wanted = truth(40_000, 120_000) - truth(50_000, 120_000)
    held = 0
    for _ in range(200):
        found = more_cpus(measured(40_000), measured(50_000), 120_000)
        assert isinstance(found, MoreCpus)
        held += found.interval[0] <= wanted <= found.interval[1]
    assert 170 <= held <= 196
