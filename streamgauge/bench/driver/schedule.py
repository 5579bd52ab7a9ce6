"""Computes when each event of the replayed stream is due, in ns since the start: pure functions of its index."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.base.errors import UserError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NS = 1_000_000_000
KNOTS = 1000  # per period; the pieces of a profile are linear between them
PERIOD_SECONDS = 10.0  # of sine and burst, stretched so that a trial has whole ones
#: profile -> rate at x in [0, 1) of a period, as a multiple of the mean
SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "steps": lambda x: 0.5 + 0.25 * np.floor(x * 5),  # 50, 75, 100, 125, 150 %
    "sine": lambda x: 1 + 0.5 * np.sin(2 * np.pi * x),
    "burst": lambda x: np.where((x >= 0.45) & (x < 0.55), 4.0, 2 / 3),
}


def check_rate(rate: float) -> float:
    """Returns the rate, events/s. Raises UserError unless it is finite and positive."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate) or rate <= 0:
        raise UserError(f"rate: found {rate!r}, allowed: a number of events per second above 0")
    return float(rate)


def check_seconds(seconds: float) -> float:
    """Returns the seconds. Raises UserError unless they are finite and positive."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise UserError(f"seconds: found {seconds!r}, allowed: a number above 0")
    return float(seconds)


@dataclass(frozen=True)
class Loop:
    """A stream repeated end to end: its n ingestion times (sorted, ticks) and the shift from one loop to the next.

    The shift, in ticks, is the stream's span plus one mean gap.
    """

    ingestion: Ints
    shift: int

    @classmethod
    def of(cls, ingestion: Ints) -> Loop:
        span = int(ingestion[-1] - ingestion[0])
        return cls(ingestion, span + max(1, span // max(1, len(ingestion) - 1)))


@dataclass(frozen=True)
class Schedule:
    """due(index) -> ns since the start, non-decreasing; index counts events through all loops."""

    due: Callable[[Ints], Ints]


def schedule(rate: float, seconds: float, loop: Loop, *, mode: str = "constant", profile: str = "constant") -> Schedule:
    """Makes a schedule with a mean rate of `rate` events/s. Raises UserError for a bad rate, time, mode or profile.

    Mode time_map: t = (g − g0)/speedup respects each ingestion time; the speed-up follows from the mean rate.
    Profile source: the same frequency, but events of one ingestion time are spread until the next one.
    """
    rate, seconds = check_rate(rate), check_seconds(seconds)
    if mode == "time_map":
        return Schedule(_mapped(loop, (loop.ingestion - loop.ingestion[0]).astype(np.float64), rate))
    if mode != "constant":
        raise UserError(f"replay.mode: found {mode!r}, allowed: constant, time_map")
    if profile == "constant":
        return Schedule(lambda index: (index * (NS / rate)).astype(np.int64))
    if profile == "source":
        return Schedule(_mapped(loop, _spread(loop), rate))
    if profile not in SHAPES:
        raise UserError(f"replay.profile: found {profile!r}, allowed: constant, source, {', '.join(SHAPES)}")
    periods = 1 if profile == "steps" else max(1, round(seconds / PERIOD_SECONDS))
    return Schedule(_periodic(SHAPES[profile], rate, seconds / periods))


def _periodic(shape: Callable[[Floats], Floats], rate: float, period: float) -> Callable[[Ints], Ints]:
    x = np.linspace(0, 1, KNOTS + 1)
    done = np.concatenate([[0.0], np.cumsum(shape((x[:-1] + x[1:]) / 2))])
    done /= done[-1]

    def due(index: Ints) -> Ints:
        whole = index / (rate * period)
        full = np.floor(whole)
        return ((full + np.interp(whole - full, done, x)) * (period * NS)).astype(np.int64)

    return due


def _mapped(loop: Loop, position: Floats, rate: float) -> Callable[[Ints], Ints]:
    """position: of each event in its loop, 0 to shift, in ticks (a float keeps µs over centuries in ns)."""
    count = len(position)
    loop_ns = count / rate * NS
    within = position * (loop_ns / loop.shift)

    def due(index: Ints) -> Ints:
        loops, at = np.divmod(index, count)
        return (loops * loop_ns + within[at]).astype(np.int64)

    return due


def _spread(loop: Loop) -> Floats:
    distinct, first = np.unique(loop.ingestion, return_index=True)
    start = loop.ingestion[0]
    return np.interp(
        np.arange(len(loop.ingestion)),
        np.append(first, len(loop.ingestion)),
        np.append(distinct - start, loop.shift).astype(np.float64),
    )
