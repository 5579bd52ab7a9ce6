"""Delay distributions as integer inverse-CDF tables, and the draws from them.

A table holds 2^k + 1 delays in ticks. A draw interpolates between neighbours with integers only, so every
machine draws the same. The last bits of log and pow differ between CPUs, so a stream's manifest keeps the
table, not the formula.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import unsealed
from streamgauge.base.places import small_text
from streamgauge.base.units import PS, Duration, Tick, show_ticks
from streamgauge.descriptions.streams import DELAYS, DelaySpec

TABLE_BITS = 12
#: bits of an event's selection draw
SELECT_BITS = 14
_GOLDEN = 0x9E3779B97F4A7C15

InverseCdf = Callable[[float], float]
Ticks = npt.NDArray[np.int64]
Draws = npt.NDArray[np.uint16]
#: selection draw of an event that is never delayed
NEVER = 1 << SELECT_BITS


@dataclass(frozen=True)
class DelayTable:
    """2^k + 1 non-decreasing delays in ticks: the inverse CDF at i / 2^k. Each event has a draw of its own."""

    column: ClassVar[None] = None
    record: ClassVar[None] = None
    ticks: tuple[int, ...]

    @property
    def minimum(self) -> int:
        return self.ticks[0]

    @property
    def maximum(self) -> int:
        return self.ticks[-1]

    @property
    def mean(self) -> int:
        """Mean of the draws, rounded down."""
        return sum(map(sum, pairwise(self.ticks))) // (2 * (len(self.ticks) - 1))

    def parts(self, _column: pa.ChunkedArray, _seq: Ticks, /) -> None:
        return None

    def draw(self, seed: int, seq: Ticks, _time: Ticks, _parts: Ticks | None, /) -> tuple[Draws, Ticks]:
        return draw(seed, seq, self)


def table(spec: DelaySpec, tick: Tick) -> DelayTable:
    """Inverse-CDF table of a distribution. Raises UserError if it is unknown or its parameters are unusable."""
    low, high = ticks_of(spec.min, "delay.min", tick), ticks_of(spec.max, "delay.max", tick)
    if spec.distribution == "uniform":
        return DelayTable((low, high))
    if spec.distribution == "constant":
        value = ticks_of(spec.mean, "delay.mean", tick) if spec.mean is not None else high
        return DelayTable((value, value))
    if low == high and spec.distribution in _FORMULAS:
        return DelayTable((low, high))
    try:
        inverse = _inverse_cdf(spec, tick, low, high)
    except ArithmeticError as problem:
        raise UserError(f"delay.distribution {spec.distribution}: its parameters are out of range: {problem}") from None
    steps = 1 << TABLE_BITS
    quantiles: list[int] = []
    before = -math.inf
    for i in range(steps + 1):
        try:
            delay = float(inverse(i / steps))
        except Exception as problem:
            raise UserError(f"delay.distribution {spec.distribution}: failed at {i / steps}: {problem}") from None
        if math.isnan(delay):
            raise UserError(f"delay.distribution {spec.distribution}: gave no number at {i / steps}")
        if delay < before - 0.5:  # a smaller decrease is a rounding error
            raise UserError(
                f"delay.distribution {spec.distribution}: decreases at {i / steps}; an inverse CDF must not"
            )
        before = max(before, delay)
        quantiles.append(low if before <= low else high if before >= high else round(before))
    return DelayTable(tuple(quantiles))


def draw(seed: int, seq: Ticks, delay_table: DelayTable) -> tuple[Draws, Ticks]:
    """(selection draw, delay in ticks) of each event: pure functions of (seed, seq).

    One draw of `splitmix` per event: its top bits select, its low 32 bits delay.
    """
    bits = splitmix(seed, seq)
    select = (bits >> np.uint64(64 - SELECT_BITS)).astype(np.uint16)
    bits &= np.uint64(0xFFFFFFFF)
    return select, interpolate(bits, delay_table)


def splitmix(seed: int, seq: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """64 random bits per event, a pure function of (seed, seq), by the finalizer of splitmix64 (Steele et al., 2014).

    Its argument is the mixed seed XOR seq · golden ratio, not their sum, so the bits are not those of splitmix64.
    """
    u = np.uint64
    key = u(_mix_scalar((seed + _GOLDEN) & 0xFFFFFFFFFFFFFFFF))
    x = seq.astype(np.uint64)  # in place from here: few temporaries
    x *= u(_GOLDEN)
    x ^= key
    t = x >> u(30)
    x ^= t
    x *= u(0xBF58476D1CE4E5B9)
    np.right_shift(x, u(27), out=t)
    x ^= t
    x *= u(0x94D049BB133111EB)
    np.right_shift(x, u(31), out=t)
    x ^= t
    return x


def interpolate(draw32: npt.NDArray[np.uint64], delay_table: DelayTable) -> npt.NDArray[np.int64]:
    """Maps draws of 32 random bits to delays in ticks. May overwrite draw32.

    The high bits choose the table entry, the low bits interpolate linearly to the next one.
    """
    u = np.uint64
    ticks = np.array(delay_table.ticks, np.int64)
    low_bits = 32 - (len(ticks) - 1).bit_length() + 1  # 2^k + 1 entries: k bits of position
    if len(ticks) == 2:
        width = int(ticks[1] - ticks[0]) + 1  # both ends can be drawn
        if width < 1 << 32:
            draw32 *= u(width)
            draw32 >>= u(32)
        else:  # width·draw would overflow 64 bits: multiply the halves of width
            draw32 = u(width >> 32) * draw32 + ((u(width & 0xFFFFFFFF) * draw32) >> u(32))
        drawn = draw32.view(np.int64)
        drawn += ticks[0]
        return drawn
    place = (draw32 >> u(low_bits)).astype(np.intp)
    rest = draw32 & u((1 << low_bits) - 1)
    width_of = np.diff(ticks).view(np.uint64)[place]
    high, low = width_of >> u(low_bits), width_of & u((1 << low_bits) - 1)
    step = high * rest + ((low * rest) >> u(low_bits))
    return np.asarray(ticks[place] + step.view(np.int64))


def _mix_scalar(x: int) -> int:
    mask = 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def _inverse_cdf(spec: DelaySpec, tick: Tick, low: int, high: int) -> InverseCdf:
    name = spec.distribution
    if name == "empirical":
        return _empirical(spec, tick, low, high)
    if name in _FORMULAS:
        return _FORMULAS[name](spec, tick, low, high)
    function = DELAYS.load(name, "delay.distribution")
    if not callable(function):
        raise UserError(f"delay.distribution: {name} is no function")
    return lambda quantile: float(function(quantile, low, high))


def _normal(spec: DelaySpec, tick: Tick, low: int, high: int) -> InverseCdf:
    """Normal truncated to [low, high]; by default centred, with a sixth of the range as its standard deviation."""
    mean = _or(spec.mean, (low + high) / 2, tick)
    stddev = _or(spec.stddev, (high - low) / 6, tick)
    if stddev <= 0:
        return lambda _: mean
    normal = NormalDist(mean, stddev)
    return _truncated(normal.cdf, normal.inv_cdf, low, high)


def _exponential(spec: DelaySpec, tick: Tick, low: int, high: int) -> InverseCdf:
    """Exponential from low on, truncated at high; delay.mean, by default low + range / 5, is that before truncation."""
    scale = _or(spec.mean, low + (high - low) / 5, tick) - low
    if scale <= 0:
        raise UserError(f"delay.mean: found {spec.mean}, allowed: above delay.min")
    return _truncated(lambda x: -math.expm1(-(x - low) / scale), lambda q: low - scale * math.log1p(-q), low, high)


def _lognormal(spec: DelaySpec, tick: Tick, low: int, high: int) -> InverseCdf:
    """Lognormal truncated to [low, high].

    delay.mean is the median before truncation, delay.sigma the standard deviation of the logarithm.
    """
    median = _or(spec.mean, low + (high - low) / 10, tick)
    if median <= 0:
        raise UserError(f"delay.mean: found {spec.mean}, allowed: above 0 for lognormal")
    normal = NormalDist(math.log(median), spec.sigma or 1.0)
    return _truncated(
        lambda x: normal.cdf(math.log(x)) if x > 0 else 0.0, lambda q: math.exp(normal.inv_cdf(q)), low, high
    )


def _pareto(spec: DelaySpec, tick: Tick, low: int, high: int) -> InverseCdf:
    """Lomax that begins at low, with shape delay.alpha, truncated at high; delay.mean is the median before that."""
    alpha = spec.alpha or 1.5
    median = _or(spec.mean, low + (high - low) / 20, tick) - low
    if median <= 0:
        raise UserError(f"delay.mean: found {spec.mean}, allowed: above delay.min")
    scale = median / (2 ** (1 / alpha) - 1)
    return _truncated(
        lambda x: 1 - (1 + (x - low) / scale) ** -alpha,
        lambda q: low + scale * ((1 - q) ** (-1 / alpha) - 1),
        low,
        high,
    )


_FORMULAS: dict[str, Callable[[DelaySpec, Tick, int, int], InverseCdf]] = {
    "normal": _normal,
    "exponential": _exponential,
    "lognormal": _lognormal,
    "pareto": _pareto,
}


def _truncated(cdf: InverseCdf, inverse: InverseCdf, low: int, high: int) -> InverseCdf:
    """Inverse CDF of a distribution truncated to [low, high]. Raises UserError if nothing of it lies there."""
    start, end = cdf(low), cdf(high)
    if end <= start:
        raise UserError("delay: the distribution has no probability between min and max; move mean, min or max")

    def of(quantile: float) -> float:
        if quantile <= 0:
            return low
        if quantile >= 1:
            return high
        inner = start + quantile * (end - start)
        return inverse(inner) if 0 < inner < 1 else (low if inner <= 0 else high)

    return of


def _empirical(spec: DelaySpec, tick: Tick, low: int, high: int) -> InverseCdf:
    """Inverse CDF of the delay histogram in another source's profile.json: linear in each bin, truncated too."""
    if spec.profile is None:
        raise UserError("delay.profile: this key is missing; name the profile.json to draw from")
    try:
        profile = unsealed(json.loads(small_text(Path(spec.profile))))
        bins = [(int(start), int(end), int(count)) for start, end, count in profile["delay_histogram"]]
        scale = PS[profile["tick"]] / PS[tick]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise UserError(
            f"delay.profile {spec.profile}: not a profile.json of streamgauge analyze ({problem})"
        ) from None
    edges: list[float] = []
    cumulated: list[int] = []
    for start, end, count in bins:  # both ends of every bin, so that a gap stays empty
        before = cumulated[-1] if cumulated else 0
        edges += [start * scale, end * scale]
        cumulated += [before, before + count]
    if not cumulated or not cumulated[-1]:
        raise UserError(f"delay.profile {spec.profile}: has no out-of-order events to draw delays from")
    reach = f"from {show_ticks(edges[0], tick)} to {show_ticks(edges[-1], tick)}"
    if high <= edges[0] or low >= edges[-1]:
        raise UserError(f"delay.max: the profile's delays reach {reach}, none lies within {spec.min} to {spec.max}")

    def cdf(delay: float) -> float:
        return float(np.interp(delay, edges, cumulated)) / cumulated[-1]

    def inverse(quantile: float) -> float:
        return float(np.interp(quantile * cumulated[-1], cumulated, edges))

    return _truncated(cdf, inverse, max(low, math.ceil(edges[0])), min(high, math.floor(edges[-1])))


def ticks_of(duration: Duration, key: str, tick: Tick) -> int:
    """Ticks of a duration. Raises UserError, which names the key, if they are not whole."""
    try:
        return int(duration.to(tick))
    except ValueError as problem:
        raise UserError(f"{key}: {problem}, the unit of this source's times") from None


def _or(duration: Duration | None, default: float, tick: Tick) -> float:
    return default if duration is None else duration.ps / PS[tick]
