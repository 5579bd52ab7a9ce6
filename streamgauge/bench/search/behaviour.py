"""The behaviour of the known system: the time of its batches, and so the rate that it truly sustains.

The virtual clock (`simulate.py`) and the real wire (`engines/known/process.py`) run the same behaviour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from streamgauge.base.errors import UserError
from streamgauge.stats.batch_cost import BatchCost
from streamgauge.stats.scalability import carried

#: a hiccup makes a batch so many times as long
HICCUP = 3.0
#: a cold process is slower by this part; the excess decays with the compile time
COLD = 0.5
#: seconds after which the machine has forgotten how fast it was
WANDER_S = 30.0
#: rows that an engine without micro-batches takes at a time, in seconds of its capacity
QUANTUM_S = 0.02


@dataclass(frozen=True)
class Behaviour:
    """A micro-batch of n rows, at most `batch_rows`, takes `cost.seconds(n)` times its faults.

    Faults are independent factors: `noise` (gamma of mean 1 with this deviation), `hiccups` (the share of batches that
    take three times as long), `compile_s` (a cold process is 1.5 times as slow, and the excess decays with this time
    constant), `between` (a lognormal factor of each fresh process), `wander` (the machine's own speed, lognormal,
    forgotten within half a minute). Its capacity is that of one CPU: on others it follows the scalability law with this
    `contention` and `coherency`. A row costs more by the part `growth` for each million rows of its batch, as where
    memory is collected. A continuous system takes rows one by one; with n waiting it carries n/pipeline_s at
    most, as each row needs so long from end to end.
    """

    capacity: float | None = None  # rows/s within a batch, 1/b; None: no limit
    batch_cost_s: float = 0.0  # a
    batch_rows: int = 1_000_000  # N
    noise: float = 0.0
    hiccups: float = 0.0
    compile_s: float = 0.0
    between: float = 0.0
    wander: float = 0.0
    continuous: bool = False
    pipeline_s: float = 0.0
    contention: float = 0.0
    coherency: float = 0.0
    growth: float = 0.0

    def on(self, cpus: float) -> Behaviour:
        if self.capacity is None:
            return self
        return replace(self, capacity=carried(cpus, self.capacity, self.contention, self.coherency))

    def check(self) -> None:
        """Raises UserError for settings that no system can have."""
        if self.capacity is not None and not 0 < self.capacity < math.inf:
            raise UserError(f"capacity: found {self.capacity:g}, allowed: a number of events per second above 0")
        parts = {"noise": self.noise, "hiccups": self.hiccups, "between": self.between, "wander": self.wander}
        for name, part in parts.items():
            if not 0 <= part < 1:
                raise UserError(f"{name}: found {part:g}, allowed: from 0 to below 1, such as 0.1")
        times = {"batch_cost_s": self.batch_cost_s, "compile_s": self.compile_s, "pipeline_s": self.pipeline_s}
        for name, seconds in times.items():
            if not 0 <= seconds < math.inf:
                raise UserError(f"{name}: found {seconds:g}, allowed: seconds, 0 or more")
        if self.batch_rows < 1:
            raise UserError(f"batch_rows: found {self.batch_rows}, allowed: 1 or more")

    def truth(self, age_s: float) -> float:
        """The rate in events/s that a warm, median process sustains at this allowed age; infinite without a limit."""
        if self.capacity is None:
            return math.inf
        worse = 1 + self.hiccups * (HICCUP - 1)
        if self.continuous:
            return self.capacity / worse
        cost = self.cost.times(worse)
        rows = min(cost.rows(age_s), self.batch_rows)
        return rows / cost.seconds(rows)

    @property
    def cost(self) -> BatchCost:
        """The cost of a batch without faults."""
        row_s = 0.0 if self.capacity is None else 1 / self.capacity
        return BatchCost(self.batch_cost_s, row_s, self.growth * 1e-6 * row_s)


class Process:
    """A fresh process of the known system. Its random numbers depend only on (seed, number)."""

    def __init__(self, behaviour: Behaviour, seed: int, number: int) -> None:
        self._random = np.random.default_rng((seed, number))
        self.behaviour = behaviour
        self.factor = math.exp(self._random.normal(0, behaviour.between)) if behaviour.between else 1.0
        self._wandered, self._looked_s = 0.0, -math.inf

    @property
    def most_rows(self) -> int:
        of = self.behaviour
        if of.continuous and of.capacity is not None:
            return max(1, min(of.batch_rows, round(of.capacity * QUANTUM_S)))
        return of.batch_rows

    def batch_s(self, rows: int, age_s: float, waiting: int = 0) -> float:
        """Seconds that a batch takes in a process that has worked for age_s; each call draws its own faults.

        waiting: the rows from which it was taken.
        """
        of = self.behaviour
        if of.capacity is None:
            return 0.0
        cost = (rows / of.capacity if of.continuous else of.cost.seconds(rows)) * self.factor
        if of.noise:
            cost *= float(self._random.gamma(of.noise**-2, of.noise**2))
        if of.hiccups and self._random.random() < of.hiccups:
            cost *= HICCUP
        if of.compile_s:
            cost *= 1 + COLD * math.exp(-age_s / of.compile_s)
        cost = cost * self._machine(age_s) if of.wander else cost
        return max(cost, rows * of.pipeline_s / waiting) if of.continuous and waiting else cost

    def _machine(self, age_s: float) -> float:
        """Slowness factor of the machine at this moment: an Ornstein–Uhlenbeck process on logarithms."""
        kept = math.exp(-max(0.0, age_s - self._looked_s) / WANDER_S)
        fresh = self.behaviour.wander * math.sqrt(1 - kept * kept)
        self._wandered, self._looked_s = kept * self._wandered + fresh * self._random.standard_normal(), age_s
        return math.exp(self._wandered)
