"""Cells that share a process on a virtual clock: the known system with several streams, in turns.

A fresh process can favour one stream by chance, which one process alone cannot show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamgauge.base.histogram import Histogram
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.latency_turns import QUANTILES, order, ratio
from streamgauge.bench.search.shared import AllDone, Turn, run_shared
from streamgauge.bench.search.simulate import VirtualProcess, measured_in
from streamgauge.bench.search.steps import Hold
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Measurement
from streamgauge.stats.paired import Ratio

#: seconds in which a stream settles after its turn began
SETTLE_S = 1.5
#: seconds between two events whose latency is counted
EACH_S = 1e-3


class TurningProcess(VirtualProcess):
    """A process whose stream changes."""

    taken_s = 0.0  # until when events were taken that are offered at a rate

    def turn_to(self, behaviour: Behaviour, rows: int) -> None:
        """Goes on with a stream that costs this; what is left of the one before takes a batch, and is not counted."""
        if behaviour != self._process.behaviour:
            self.batch(rows)
            self._process.behaviour = behaviour

    def pace(self, rate: float, seconds: float) -> Histogram:
        """Offers events at that rate for so many seconds, and goes on with those that wait; returns their latencies.

        The latency of an event is from when it is due to the end of its batch; one in each millisecond is counted.
        """
        latencies, end = Histogram(), self.clock_s + seconds
        while self.clock_s < end:
            begin, due = self.taken_s, self.clock_s
            self.taken_s = min(due, begin + self._process.most_rows / rate)
            if (rows := int((self.taken_s - begin) * rate)) < 1:
                self.taken_s, self.clock_s = begin, self.clock_s + EACH_S
                continue
            self.batch(rows)
            events = np.arange(math.ceil(begin / EACH_S), math.ceil(self.taken_s / EACH_S)) * EACH_S
            latencies.add(np.round((self.clock_s - events) * 1e9).astype(np.int64))
        return latencies


def shared_search(
    streams: Sequence[Behaviour], settings: Search, seed: int, favour: float = 0.0
) -> tuple[AllDone, float]:
    """Runs one search of cells that share their processes on a virtual clock; returns its answer and its seconds.

    streams: the behaviour of each cell, which differ only in what a row costs. favour: deviation of how much a process
    favours one stream, on logarithms.
    """
    processes: dict[int, tuple[TurningProcess, list[Behaviour]]] = {}

    def measure(turn: Turn) -> Measurement:
        number = turn.step.process
        if number not in processes:
            processes[number] = favouring(streams, seed, number, favour)
        process, own = processes[number]
        process.turn_to(own[turn.cell], turn.step.rows if isinstance(turn.step, Hold) else 1)
        return measured_in(process, turn.step, settings)

    limits = Limits(continuous=streams[0].continuous)
    done = run_shared(settings, limits, len(streams), measure, (), settings.processes)
    assert done is not None
    return done, sum(process.clock_s for process, _ in processes.values())


def favouring(
    streams: Sequence[Behaviour], seed: int, number: int, favour: float
) -> tuple[TurningProcess, list[Behaviour]]:
    """A fresh process, and the behaviour of each stream in it: it favours some by chance, by a factor on what costs."""
    random = np.random.default_rng((seed, number, 1))
    factors = [math.exp(random.normal(0, favour)) for _ in streams]
    own = [
        replace(one, capacity=(one.capacity or 1.0) * factor, batch_cost_s=one.batch_cost_s / factor)
        for one, factor in zip(streams, factors, strict=True)
    ]
    return TurningProcess(own[0], seed, number), own


def paced_turns(
    streams: Sequence[Behaviour], rate: float, seconds: float, settings: Search, seed: int, favour: float = 0.0
) -> tuple[dict[str, Ratio | None], float]:
    """Compares the latencies of two streams in turns at one rate, in a warm process on a virtual clock.

    Returns the ratio of each quantile, and the seconds that it took.
    """
    process, own = favouring(streams, seed, 1, favour)
    process.clock_s = process.taken_s = settings.warmup_seconds
    turns, latencies, last = order(1, settings.blocks, len(streams)), list[Histogram](), -1
    for turn in turns:
        if turn != last:
            process.turn_to(own[turn], 1)
            process.pace(rate, SETTLE_S)
            last = turn
        latencies.append(process.pace(rate, seconds))
    ratios = {name: ratio(turns, latencies, 1, quantile) for name, quantile in QUANTILES.items()}
    return ratios, process.clock_s - settings.warmup_seconds
