from __future__ import annotations

import math

import numpy as np
import pytest

from streamgauge.config import Search
from streamgauge.errors import UserError
from streamgauge.histogram import Histogram
from streamgauge.simulate import KnownSystem, calibrate, simulate

MS = 1_000_000
CAPACITIES = (100, 317, 1_000, 3_333, 10_000, 31_600, 100_000, 345_678, 1_000_000)


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_search_ends_within_5_percent_of_a_known_capacity_in_at_most_10_trials(
    capacity: float, noise: float
) -> None:
    for seed in range(20):
        result = calibrate(capacity, noise, seed)
        assert result.sustainable_rate_events_per_s == pytest.approx(capacity, rel=0.05), (seed, result)
        assert len(result.trials) <= 10
        assert result.interval[0] == result.sustainable_rate_events_per_s


def test_an_overloaded_system_carries_its_capacity_and_ages_at_the_rate_it_lags() -> None:
    observation = simulate(KnownSystem(1000, batch_s=0.25), rate=2000, seconds=20)
    last = observation.samples[-1]
    # one event at 0 s, then a full batch of 250 each 0.25 s, the first when it is full, at 0.125 s
    assert last.at_s == 19.875
    assert last.taken == 1 + 1000 * (19.875 - 0.125)
    assert last.backlog == 2000 * 19.875 + 1 - last.taken
    assert last.age_s == 19.875 - last.taken / 2000
    assert observation.offered == 40_001


def test_noise_of_mean_one_keeps_the_mean_capacity() -> None:
    system = KnownSystem(1000, noise=0.3, seed=1)
    seconds = [system.busy_s(250) for _ in range(20_000)]
    assert np.mean(seconds) == pytest.approx(0.25, rel=0.01)
    assert np.std(seconds) == pytest.approx(0.075, rel=0.03)


@pytest.mark.parametrize("rate", [0.3, 1.1, 3.0, 7.0, 49.0])
def test_every_event_of_a_slow_stream_is_taken_when_it_is_due(rate: float) -> None:
    observation = simulate(KnownSystem(100, batch_s=0.01), rate=rate, seconds=60)
    assert [s.taken for s in observation.samples] == list(range(observation.taken))
    assert [s.at_s for s in observation.samples] == pytest.approx([k / rate for k in range(observation.taken)])


def test_a_full_queue_ends_the_trial() -> None:
    observation = simulate(KnownSystem(100), rate=10_000, seconds=60, queue_seconds=5)
    assert observation.overflow
    assert observation.samples[-1].at_s == pytest.approx(5, abs=0.5)


def test_the_same_seed_is_the_same_search() -> None:
    assert calibrate(5000, 0.1, 7) == calibrate(5000, 0.1, 7)
    assert calibrate(5000, 0.1, 7) != calibrate(5000, 0.1, 8)


def test_a_capacity_above_the_highest_allowed_rate_is_said() -> None:
    result = calibrate(10_000, plan=Search(max_rate=1000))
    assert (result.sustainable_rate_events_per_s, result.interval, result.outcome) == (
        1000,
        (1000, None),
        "all_sustained",
    )


def test_a_constant_delay_of_100_ms_shows_within_5_ms() -> None:
    latency = Histogram()
    simulate(KnownSystem(100_000, delay_s=0.1, batch_s=0.002), rate=10_000, seconds=20, latency=latency)
    for q in (0.5, 0.99):
        assert abs((latency.quantile(q) or 0) - 100 * MS) <= 5 * MS
    assert latency.min is not None
    assert latency.min >= 100 * MS
    assert latency.count == pytest.approx(200_000, rel=0.001)


def test_a_stall_of_2_s_shows_in_every_event_offered_meanwhile() -> None:
    """No coordinated omission: an event offered t seconds into the stall waits at least 2 - t."""
    latency = Histogram()
    system = KnownSystem(1e6, batch_s=0.002, stall_s=(5.0, 2.0))
    observation = simulate(system, rate=1000, seconds=20, latency=latency)
    assert latency.max == pytest.approx(2000 * MS, rel=0.01)
    assert max(s.age_s for s in observation.samples) == pytest.approx(2, abs=0.01)
    for waited_ms in range(50, 2000, 50):
        at_least = 2000 - waited_ms  # events: one a millisecond
        q = 1 - (at_least - 1) / latency.count
        assert (latency.quantile(q) or 0) >= waited_ms * MS * 0.99
        beyond = 1 - (at_least + 20) / latency.count
        assert (latency.quantile(beyond) or 0) < waited_ms * MS  # and in no other event


@pytest.mark.parametrize(
    ("capacity", "noise", "message"),
    [(0, 0, "capacity: found 0"), (math.nan, 0, "capacity: found nan"), (math.inf, 0, "found inf"),
     (100, -0.1, "noise: found -0.1"), (100, math.nan, "noise: found nan"), (100, 1, "noise: found 1")],
)  # fmt: skip
def test_senseless_capacity_or_noise_is_refused_in_one_line(capacity: float, noise: float, message: str) -> None:
    with pytest.raises(UserError, match=message):
        calibrate(capacity, noise)
