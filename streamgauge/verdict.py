"""Is a rate sustained? Pure functions from what a trial observed to a verdict.

Sustainable throughput (Karimov et al., ICDE 2018): the highest load that a system handles without a
continuously increasing event-time latency. The built-in function judges the growth of the age of the
oldest event not yet handed over. A user names one of their own as ``package.module:function`` with the
signature of `age_slope`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from streamgauge.config import Search
from streamgauge.errors import UserError
from streamgauge.trial import Outcome, TrialObservation, Verdict

VerdictFunction = Callable[[TrialObservation, Search], Verdict]
Floats = NDArray[np.float64]

#: more points than this add autocorrelation, not knowledge; neighbours are averaged down to it
_POINTS = 24
_RESAMPLES = 200
_CONFIDENCE = 0.90


def judge(observation: TrialObservation, search: Search) -> Verdict:
    """The verdict of the function that the configuration names.

    Invalid and overflowed trials are settled before it is asked. Raises UserError, one line naming the
    function, when it cannot be found, raises, or returns anything but a Verdict.
    """
    function = load(search.verdict)
    settled = _settled(observation)
    if settled is not None:
        return settled
    try:
        verdict = function(observation, search)
    except Exception as problem:
        raise UserError(f"search.verdict: {search.verdict} raised {type(problem).__name__}: {problem}") from problem
    nonsense = _nonsense(verdict)
    if nonsense:
        raise UserError(
            f"search.verdict: {search.verdict} returned {nonsense}, allowed: streamgauge.trial.Verdict with an "
            f"outcome of {', '.join(get_args(Outcome))}, a reason, and finite figures"
        )
    return verdict


def load(name: str) -> VerdictFunction:
    """The function of that name. Raises UserError."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UserError(f"search.verdict: found {name!r}, allowed: {', '.join(BUILT_IN)}, or package.module:function")
    try:
        function = getattr(importlib.import_module(module), attribute, None)
    except Exception as problem:
        raise UserError(
            f"search.verdict: {module!r} of {name!r} cannot be imported ({type(problem).__name__}: {problem}); "
            "put its directory on PYTHONPATH"
        ) from None
    if not callable(function):
        raise UserError(f"search.verdict: {module!r} has no function {attribute!r}")
    loaded: VerdictFunction = function
    return loaded


def age_slope(observation: TrialObservation, search: Search) -> Verdict:
    """Whether the age of the oldest waiting event keeps growing.

    Unsustainable: a queue overflowed, the age passed `search.max_age`, or the whole interval of its slope
    (seconds of age per second) lies above `search.max_age_slope`. Sustainable: the whole interval lies at
    or below. Inconclusive: in between, fewer than `search.min_batches` warm micro-batches, anything missing.
    """
    settled = _settled(observation)
    if settled is not None:
        return settled
    warm = [s for s in observation.samples if s.warm]
    if not all(math.isfinite(s.at_s) and math.isfinite(s.age_s) for s in warm):
        return Verdict("inconclusive", "a sample's time or age is not a finite number")
    figures: dict[str, float] = {"batches": len(warm)}
    if warm:
        figures["age_s_max"] = max(s.age_s for s in warm)
        limit = search.max_age.seconds
        if figures["age_s_max"] > limit:
            reason = f"an event waited {figures['age_s_max']:.3g} s, more than {limit:g} s"
            return Verdict("unsustainable", reason, figures)
    if len(warm) < search.min_batches:
        reason = f"{len(warm)} warm micro-batches, {search.min_batches} needed: run longer trials or smaller batches"
        return Verdict("inconclusive", reason, figures)
    slope, low, high = slope_interval([s.at_s for s in warm], [s.age_s for s in warm])
    figures |= {"age_slope": slope, "age_slope_low": low, "age_slope_high": high}
    if not math.isfinite(slope):
        return Verdict("inconclusive", "all samples were taken at one instant")
    found = f"age grows by {slope:+.3f} s/s, {_CONFIDENCE:.0%} interval {low:+.3f} to {high:+.3f}"
    if high <= search.max_age_slope:
        return Verdict("sustainable", f"{found}, at most {search.max_age_slope:g}", figures)
    if low > search.max_age_slope:
        return Verdict("unsustainable", f"{found}, above {search.max_age_slope:g}", figures)
    return Verdict("inconclusive", f"{found}, on both sides of {search.max_age_slope:g}", figures)


def carried(observation: TrialObservation) -> float | None:
    """Events/s handed over between the first and the last warm micro-batch: the capacity, if overloaded.

    From all micro-batches when fewer than two are warm; None when there are no two. Only the search's estimate,
    so an invalid trial, such as a probe in which the driver slipped, has one too.
    """
    samples = [s for s in observation.samples if s.warm]
    if len(samples) < 2:
        samples = list(observation.samples)
    if len(samples) < 2 or samples[-1].at_s <= samples[0].at_s:
        return None
    return (samples[-1].taken - samples[0].taken) / (samples[-1].at_s - samples[0].at_s)


def slope_interval(at: Sequence[float], value: Sequence[float]) -> tuple[float, float, float]:
    """Theil–Sen slope with its moving-block bootstrap interval: (slope, low, high), NaN without two instants.

    Theil (1950), Sen (1968); Künsch (1989): blocks of neighbouring residuals are drawn, because
    neighbouring batches are alike (sawtooth, backlog). The seed is fixed: same samples, same interval.
    """
    x, y = _thinned(np.asarray(at, np.float64)), _thinned(np.asarray(value, np.float64))
    i, j = np.triu_indices(len(x), 1)
    apart = x[j] > x[i]
    i, j = i[apart], j[apart]
    if not i.size:
        return math.nan, math.nan, math.nan
    run = x[j] - x[i]
    slope = float(np.median((y[j] - y[i]) / run))
    residual = y - slope * x
    drawn = slope * x + residual[_block_indices(len(x))]
    slopes = np.median((drawn[:, j] - drawn[:, i]) / run, axis=1)
    low, high = np.quantile(slopes, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return slope, float(low), float(high)


def _thinned(values: Floats) -> Floats:
    """At most _POINTS averages of neighbours."""
    if len(values) <= _POINTS:
        return values
    return np.array([part.mean() for part in np.array_split(values, _POINTS)])


@lru_cache
def _block_indices(count: int) -> NDArray[np.int64]:
    """_RESAMPLES rows of `count` positions, each row made of blocks of about sqrt(count) neighbours."""
    length = math.ceil(math.sqrt(count))
    blocks = -(-count // length)
    starts = np.random.default_rng(count).integers(0, count - length + 1, (_RESAMPLES, blocks, 1))
    rows: NDArray[np.int64] = (starts + np.arange(length)).reshape(_RESAMPLES, -1)[:, :count]
    return rows


def _settled(observation: TrialObservation) -> Verdict | None:
    """What no verdict function may decide otherwise."""
    if observation.invalid:
        return Verdict("inconclusive", f"invalid trial: {observation.invalid}")
    if observation.overflow:
        return Verdict("unsustainable", "a queue overflowed")
    if not observation.offered:
        return Verdict("inconclusive", "nothing was offered")
    if not observation.samples:
        return Verdict("inconclusive", "the system took no micro-batch")
    return None


def _nonsense(verdict: object) -> str | None:
    """What is wrong with a verdict, or None."""
    if not isinstance(verdict, Verdict):
        return f"{type(verdict).__name__} {verdict!r:.80}"
    if verdict.outcome not in get_args(Outcome):
        return f"the outcome {verdict.outcome!r:.80}"
    if not isinstance(verdict.reason, str) or not verdict.reason:
        return f"the reason {verdict.reason!r:.80}"
    figures: object = verdict.figures
    if not isinstance(figures, dict):
        return f"the figures {figures!r:.80}"
    for name, value in figures.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return f"the figure {name} = {value!r:.80}"
    return None


BUILT_IN: dict[str, VerdictFunction] = {"age_slope": age_slope}
