"""Calibrates the search: runs it on a virtual clock against the known system, whose sustainable rate is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamgauge.base.errors import UserError
from streamgauge.bench.search.behaviour import Behaviour, Process
from streamgauge.bench.search.loop import run_search
from streamgauge.bench.search.steps import Done, Hold, Recover
from streamgauge.bench.search.verdict import judge
from streamgauge.config import Search
from streamgauge.records.measurement import Batch, Limits, Measurement, Sample, TrialObservation, TrialRecord, Window

#: seconds between two samples of an engine without micro-batches
LOOK_S = 0.1
#: an idle clock advances by this share of an event more; otherwise rounding could leave it before the event for ever
_AFTER = 1e-3


class VirtualProcess:
    """A fresh process of the known system on a clock of its own, which advances only with its work."""

    def __init__(self, behaviour: Behaviour, seed: int, number: int) -> None:
        self._process = Process(behaviour, seed, number)
        self.clock_s = 0.0

    def batch(self, waiting: int) -> Batch:
        rows = min(waiting, self._process.most_rows)
        seconds = self._process.batch_s(rows, self.clock_s, waiting)
        self.clock_s += seconds
        return Batch(self.clock_s, rows, seconds)

    def hold(self, rows: int, enough: Callable[[list[Batch]], bool]) -> tuple[Batch, ...]:
        """Runs a closed-loop window: so many rows wait whenever a batch begins."""
        batches: list[Batch] = []
        while not enough(batches):
            batches.append(self.batch(rows) if not self._process.behaviour.continuous else self._look(rows))
        return tuple(batches)

    def _look(self, waiting: int) -> Batch:
        rows, begin = 0, self.clock_s
        while self.clock_s < begin + LOOK_S:
            rows += self.batch(waiting).rows
        return Batch(self.clock_s, rows, self.clock_s - begin)

    def offer(
        self,
        rate: float,
        behind_s: float,
        longest_s: float,
        noise: float | None,
        over: Callable[[TrialObservation], bool],
        queue_s: float = 60.0,
    ) -> TrialObservation:
        """Runs an open-loop trial at `rate` events/s, from a backlog of that age on; event k is due at k / rate."""
        begin, taken, samples, clock = self.clock_s, 0, list[Sample](), list[Sample]()
        observation = TrialObservation(rate, longest_s, (), 0, 0)
        while True:
            at = self.clock_s - begin
            due = math.floor((at + behind_s) * rate) + 1
            overflow = due - taken > (queue_s + behind_s) * rate
            if due > taken or not samples:
                sample = Sample(at, max(0.0, at + behind_s - taken / rate), due - taken, taken)
                if not self._process.behaviour.continuous or not samples or at - samples[-1].at_s >= LOOK_S:
                    samples.append(sample)
                    clock.append(sample)
                    observation = TrialObservation(
                        rate, longest_s, tuple(samples), due, taken, overflow, None, tuple(clock), behind_s, noise
                    )
                    if overflow or at >= longest_s or over(observation):
                        return observation
            else:
                self.clock_s = begin + (taken + _AFTER) / rate - behind_s  # nothing waits: until the next event is due
                continue
            taken += self.batch(due - taken).rows


@dataclass(frozen=True)
class Calibration:
    """Results of searches on the known system, and the truth."""

    truth_events_per_s: float
    searches: tuple[Done, ...]
    seconds: tuple[float, ...]  # of each search, by the clock that it used

    @property
    def errors(self) -> list[float]:
        """rate/truth − 1 of each search."""
        return [done.rate_events_per_s / self.truth_events_per_s - 1 for done in self.searches]

    @property
    def bias(self) -> float:
        return float(np.median(self.errors))

    @property
    def deviation(self) -> float:
        """The standard deviation of the errors; 0 of a single search."""
        return float(np.std(self.errors, ddof=1)) if len(self.searches) > 1 else 0.0

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth."""
        held = [
            d.interval is not None and d.interval[0] <= self.truth_events_per_s <= d.interval[1] for d in self.searches
        ]
        return sum(held) / len(held)


def calibrate(behaviour: Behaviour, settings: Search, seeds: int, first_seed: int = 0) -> Calibration:
    """Runs whole searches against the known system on a virtual clock, one for each seed. Raises UserError."""
    behaviour.check()
    if behaviour.capacity is None:
        raise UserError("capacity: found none, allowed: a number of events per second above 0")
    truth = truth_of(behaviour, settings)
    searches = [_search(behaviour, settings, seed) for seed in range(first_seed, first_seed + seeds)]
    return Calibration(truth, tuple(done for done, _ in searches), tuple(seconds for _, seconds in searches))


def truth_of(behaviour: Behaviour, settings: Search) -> float:
    """The rate that the known system sustains. Raises UserError if its batches take the whole allowed age."""
    truth = behaviour.truth(settings.max_age.seconds)
    if truth <= 0:
        raise UserError(
            f"batch_cost_s: found {behaviour.batch_cost_s:g}, allowed: less than the allowed age of {settings.max_age}"
        )
    return truth


def _search(behaviour: Behaviour, settings: Search, seed: int) -> tuple[Done, float]:
    processes: dict[int, VirtualProcess] = {}

    def measure(step: Hold | Recover) -> Measurement:
        process = processes.setdefault(step.process, VirtualProcess(behaviour, seed, step.process))
        return measured_in(process, step, settings)

    done = run_search(settings, Limits(continuous=behaviour.continuous), measure)
    return done, sum(process.clock_s for process in processes.values())


def measured_in(process: VirtualProcess, step: Hold | Recover, settings: Search) -> Measurement:
    if isinstance(step, Hold):
        return Window(step.process, step.purpose, step.rows, process.hold(step.rows, step.enough), block=step.block)
    observation = process.offer(
        step.rate_events_per_s, step.behind_s, step.longest_s, step.noise,
        lambda so_far: judge(so_far, settings).outcome != "inconclusive",
    )  # fmt: skip
    lasted = observation.samples[-1].at_s
    return TrialRecord(
        step.process, step.purpose, step.rate_events_per_s, lasted, judge(observation, settings), correct=True
    )
