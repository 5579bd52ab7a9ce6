"""A system of known capacity and delay on a virtual clock: the instrument that calibrates the search.

The same definitions as on the wall clock: open-loop offering at a constant rate, one sample per
micro-batch, taken just before it is handed over, of the age of the oldest event not yet handed over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamgauge.config import Search
from streamgauge.errors import UserError
from streamgauge.histogram import Histogram
from streamgauge.search import Rate, next_step
from streamgauge.trial import Sample, Trial, TrialObservation
from streamgauge.verdict import carried, judge

_NS = 1_000_000_000


class KnownSystem:
    """Carries `capacity` events/s on average; micro-batches start when full or after `batch_s`.

    A batch of n events keeps it busy for n / capacity seconds times a lognormal factor of mean one and
    standard deviation `noise`; results leave `delay_s` after that. It does nothing during a stall.
    """

    def __init__(
        self,
        capacity: float,
        *,
        noise: float = 0.0,
        seed: int | tuple[int, ...] = 0,
        delay_s: float = 0.0,
        batch_s: float = 0.25,
        stall_s: tuple[float, float] | None = None,  # (start, length)
    ) -> None:
        self.capacity = capacity
        self.delay_s = delay_s
        self.batch_s = batch_s
        self.batch_rows = max(1, round(capacity * batch_s))
        self._sigma = math.sqrt(math.log1p(noise**2))
        self._random = np.random.default_rng(seed)
        self._stall = stall_s

    def busy_s(self, rows: int) -> float:
        """Seconds that the next batch takes; each call draws its own noise."""
        factor = math.exp(self._random.normal(-(self._sigma**2) / 2, self._sigma)) if self._sigma else 1.0
        return rows / self.capacity * factor

    def after_stall(self, at_s: float) -> float:
        """The first instant from at_s on at which it does not stall."""
        if self._stall and self._stall[0] <= at_s < sum(self._stall):
            return sum(self._stall)
        return at_s


def simulate(
    system: KnownSystem,
    rate: float,
    seconds: float,
    *,
    warmup_batches: int = 3,
    queue_seconds: float = 30.0,
    latency: Histogram | None = None,
) -> TrialObservation:
    """One trial at `rate` events/s; event k is offered at k / rate. Latencies (ns) go into `latency` if given."""
    now, taken, samples = system.after_stall(0.0), 0, list[Sample]()
    overflow = False
    while now < seconds and not overflow:
        waiting = max(1, math.floor(now * rate) + 1 - taken)  # one is due, whatever the last bit of a float says
        samples.append(Sample(now, now - taken / rate, waiting, taken, warm=len(samples) >= warmup_batches))
        overflow = waiting > queue_seconds * rate
        rows = min(waiting, system.batch_rows)
        done = now + system.busy_s(rows)
        if latency is not None:
            offered_ns = np.round(np.arange(taken, taken + rows) * (_NS / rate)).astype(np.int64)
            latency.add(round((done + system.delay_s) * _NS) - offered_ns)
        taken += rows
        full_at = (taken + system.batch_rows - 1) / rate
        now = system.after_stall(max(done, taken / rate, min(now + system.batch_s, full_at)))
    offered = math.floor(min(now, seconds) * rate) + 1
    return TrialObservation(rate, seconds, tuple(samples), offered, taken, overflow)


@dataclass(frozen=True)
class CalibrationResult:
    """What the search made of a system whose capacity is known."""

    capacity_events_per_s: float
    sustainable_rate_events_per_s: float
    interval: tuple[float, float | None]
    outcome: str
    reason: str
    trials: tuple[Trial, ...]


def calibrate(capacity: float, noise: float = 0.0, seed: int = 0, plan: Search | None = None) -> CalibrationResult:
    """The whole search against a known capacity (events/s), on a virtual clock. Raises UserError."""
    if not 0 < capacity < math.inf:
        raise UserError(f"capacity: found {capacity:g}, allowed: a number of events per second above 0")
    if not 0 <= noise < 1:
        raise UserError(f"noise: found {noise:g}, allowed: a standard deviation from 0 to below 1, such as 0.1")
    plan = plan or Search()
    trials: list[Trial] = []
    while isinstance(step := next_step(plan, trials), Rate):
        # each trial its own noise, the same for the same seed
        system = KnownSystem(capacity, noise=noise, seed=(seed, len(trials)))
        observation = simulate(
            system,
            step.rate_events_per_s,
            plan.trial_seconds * step.seconds_factor,
            warmup_batches=plan.warmup_batches,
        )
        trials.append(step.tried(judge(observation, plan), carried(observation)))
    return CalibrationResult(capacity, step.rate_events_per_s, step.interval, step.outcome, step.reason, tuple(trials))
