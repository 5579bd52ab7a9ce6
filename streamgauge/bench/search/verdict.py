"""Decides whether a rate is sustained: pure functions from the observation of a trial to a verdict.

A rate is sustainable at an allowed age A if a system that begins A behind still catches up. This is the sustainable
throughput of Karimov et al. (ICDE 2018), a load without an ever growing latency, in a form that seconds can decide. A
user may name another function with the signature of `recovery`.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from streamgauge.base.errors import UserError
from streamgauge.base.words import counted
from streamgauge.config import Search
from streamgauge.config.measuring import VERDICTS
from streamgauge.records.measurement import Outcome, Sample, TrialObservation, Verdict

VerdictFunction = Callable[[TrialObservation, Search], Verdict]
Floats = NDArray[np.float64]

#: most points of a fit: more would add autocorrelation, not information, so neighbours are averaged
_POINTS = 24
_RESAMPLES = 200
_CONFIDENCE = 0.90
#: seconds of age per second that still count as steady
_STEADY_SLOPE = 0.03
#: the age still grows if it surely gained more than this share of its median during the trial
_STILL_GROWS = 0.5
#: a drift is believed beyond so many standard errors, though it is looked at after each batch
_SIGMAS, _ONE_SIDED = 2.5, 0.994
_LEAST_LOOKS = 4
_HALF = 0.5
#: an age up to so many times that of the first backlog is not one of a system that falls behind
_NO_OLDER = 1.05
#: number of batches that the noise from the ladder counts for
_NOISE_WEIGHT = 8
#: an engine that plans more often than this is judged by samples of the clock, as if it had no micro-batches
_CONTINUOUS_S, _CLOCK_S = 0.2, 0.5


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
            f"search.verdict: {search.verdict} returned {nonsense}, "
            f"allowed: streamgauge.records.measurement.Verdict "
            f"with an outcome of {', '.join(get_args(Outcome))}, a reason, and finite figures"
        )
    return verdict


def is_clear(so_far: TrialObservation, search: Search) -> bool:
    """True once a trial has lasted as long as its backlog is old, and its verdict is no longer open."""
    lasted = bool(so_far.clock) and so_far.clock[-1].at_s >= so_far.behind_s
    return lasted and judge(so_far, search).outcome != "inconclusive"


def load(name: str) -> VerdictFunction:
    """The function of that name. Raises UserError."""
    function = VERDICTS.load(name, "search.verdict")
    if not callable(function):
        raise UserError(f"search.verdict: {name} is no function")
    return function


def recovery(observation: TrialObservation, search: Search) -> Verdict:
    """Judges whether the system catches up.

    A trial that began behind is decided by the sign of its drift: sustainable once the age has fallen, unsustainable
    once it has risen, by `_SIGMAS` standard errors; inconclusive in between.

    A trial that began with empty queues is unsustainable when the age passes `search.max_age`, and sustainable when it
    no longer grows. While the age grows below that, the trial is inconclusive: a micro-batch engine near its limit
    takes minutes to settle.
    """
    settled = _settled(observation)
    if settled is not None:
        return settled
    looks = looks_of(observation)
    if not all(math.isfinite(s.at_s) and math.isfinite(s.age_s) for s in looks):
        return Verdict("inconclusive", "a sample's time or age is not a finite number")
    return _drift(observation, looks) if observation.behind_s > 0 else _growth(looks, search)


def looks_of(observation: TrialObservation) -> list[Sample]:
    """Samples for the verdict: those at micro-batches or commits; those by the clock if these come all the time.

    Between two of them the age only rises, so the clock tells nothing of an engine that is in its first batch.
    """
    batches = [s for s in observation.samples if s.warm]
    spans = [b.at_s - a.at_s for a, b in itertools.pairwise(batches)]
    if observation.clock and spans and max(spans) < _CONTINUOUS_S:
        kept: list[Sample] = []
        for sample in observation.clock:
            if sample.warm and (not kept or sample.at_s - kept[-1].at_s >= _CLOCK_S):
                kept.append(sample)
        return kept if len(kept) > len(batches) or len(batches) > 2 * _POINTS else batches
    return batches


def _drift(observation: TrialObservation, looks: Sequence[Sample]) -> Verdict:
    """The sign of the drift of the age, by the sum of its changes over the error of that sum."""
    if len(looks) < _LEAST_LOOKS:
        return Verdict(
            "inconclusive", f"{counted(len(looks), 'look')} at the queues, {_LEAST_LOOKS} needed: run longer trials"
        )
    at, age = np.array([s.at_s for s in looks]), np.array([s.age_s for s in looks])
    lasted, changed = np.diff(at), np.diff(age)
    if not lasted.sum() > 0:
        return Verdict("inconclusive", "all samples were taken at one instant")
    rest = changed - changed.sum() / lasted.sum() * lasted
    own, count = float((rest**2).sum() / (lasted**2).mean()), len(lasted)
    # a few batches do not show their own noise, so the noise from the ladder is added
    known, weight = (observation.batch_noise, _NOISE_WEIGHT) if observation.batch_noise is not None else (0.0, 0)
    deviation = math.sqrt((own + weight * known**2) / max(1, count - 1 + weight))
    error = deviation * math.sqrt(float((lasted**2).sum()))
    total = float(age[-1] - age[0])
    bar = _SIGMAS if weight else _t_quantile(max(1, count - 1))
    figures = {
        "looks": float(len(looks)),
        "age_s_first": float(age[0]),
        "age_s_last": float(age[-1]),
        "age_slope": total / float(lasted.sum()),
        "drift_in_errors": total / error if error > 0 else math.copysign(1e3, total),
    }
    drift = f"age {age[0]:.2f} s to {age[-1]:.2f} s in {lasted.sum():.1f} s"
    # a system that catches up fast is idle afterwards, which looks like noise; but no hiccup removes half of a backlog
    if total < -bar * error or age[-1] <= _HALF * age[0]:
        return Verdict("sustainable", f"it catches up: {drift}", figures)
    if total > bar * error:
        return Verdict("unsustainable", f"it falls further behind: {drift}", figures)
    return Verdict("inconclusive", f"the sign is not clear: {drift}, error {error:.2f} s", figures)


def _t_quantile(degrees: int) -> float:
    """The one-sided quantile of Student's t that stands for `_SIGMAS`."""
    from scipy.special import stdtrit  # not needed to check a configuration

    return float(stdtrit(degrees, _ONE_SIDED))


def _growth(looks: Sequence[Sample], search: Search) -> Verdict:
    """Judges whether the age of a trial that began with empty queues stays within bounds."""
    figures: dict[str, float] = {"looks": float(len(looks))}
    if looks:
        figures["age_s_max"] = max(s.age_s for s in looks)
        limit = search.max_age.seconds
        if figures["age_s_max"] > limit:
            reason = f"an event waited {figures['age_s_max']:.3g} s, more than {limit:g} s"
            return Verdict("unsustainable", reason, figures)
    if len(looks) < _LEAST_LOOKS:
        reason = (
            f"{counted(len(looks), 'look')} at the queues, {_LEAST_LOOKS} needed: run longer trials or smaller batches"
        )
        return Verdict("inconclusive", reason, figures)
    slope, low, high = slope_interval([s.at_s for s in looks], [s.age_s for s in looks])
    figures |= {"age_slope": slope, "age_slope_low": low, "age_slope_high": high}
    if not math.isfinite(slope):
        return Verdict("inconclusive", "all samples were taken at one instant")
    growth = f"age grows by {slope:+.3f} s/s, {_CONFIDENCE:.0%} interval {low:+.3f} to {high:+.3f}"
    gained = low * (looks[-1].at_s - looks[0].at_s)
    if high <= _STEADY_SLOPE and gained <= _STILL_GROWS * statistics.median(s.age_s for s in looks):
        return Verdict("sustainable", f"{growth}, at most {_STEADY_SLOPE:g}", figures)
    return Verdict("inconclusive", f"{growth}: it still settles, or is too fast; run a longer trial", figures)


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
    """Averages of neighbours, at most _POINTS."""
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
    """Verdict that no verdict function may overrule; None to ask the function."""
    if observation.invalid:
        return Verdict("inconclusive", f"invalid trial: {observation.invalid}")
    if observation.overflow:
        ages = [s.age_s for s in (*observation.samples, *observation.clock)]
        if observation.behind_s and max(ages, default=0.0) <= _NO_OLDER * observation.behind_s:
            return Verdict("inconclusive", "the driver's queues do not hold the backlog: raise replay.max_memory_mb")
        if observation.uncommitted and not observation.behind_s:
            full = "rows that it took and has not committed fill the driver's queues"
            return Verdict("inconclusive", f"{full}: raise replay.max_memory_mb, or let it commit more often")
        return Verdict("unsustainable", "a queue overflowed")
    if not observation.offered:
        return Verdict("inconclusive", "nothing was offered")
    if not observation.samples and not observation.clock:
        return Verdict("inconclusive", "the system took nothing")
    return None


def _nonsense(verdict: object) -> str | None:
    """Fault of a verdict, or None."""
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


def settled_age(observation: TrialObservation) -> float | None:
    """The median age in seconds over the second half of a trial's samples; None without samples."""
    samples = observation.samples or observation.clock
    if not samples:
        return None
    half = (samples[0].at_s + samples[-1].at_s) / 2
    return statistics.median(one.age_s for one in samples if one.at_s >= half)
