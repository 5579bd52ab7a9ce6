"""The ladder of a process: a warm-up, then closed-loop windows, each where the fit so far puts the answer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search import continuous
from streamgauge.bench.search.estimate import excesses, fit
from streamgauge.bench.search.point import Point
from streamgauge.bench.search.proof import refuted
from streamgauge.bench.search.steps import LEAST_BATCHES, Hold
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Measurement, Window

#: rows held while a process warms up, in turns: small batches, whose batch cost is compiled last, and batches so many
#: times as large, whose rows take other paths through the engine
WARM_UP_ROWS, _LARGER = 20_000, 10
#: seconds of one window of the warm-up
_ROUND_S = 5.0
#: the cost of a batch is steady when its trend over so many seconds is surely below that share
_TREND_S, _STEADY = 15.0, 0.03
#: share of the warm-up in which a pinned system may use all CPUs
UNPINNED = 0.4
#: factor from one rung of the ladder to the next while batches hardly grow with their rows
_RUNG = 16
#: batches clearly grow when their rows cost this share of their batch cost
_GROWN = 0.7
#: backlogs of an engine without micro-batches, in parts of the allowed age
_BACKLOGS = (0.25, 0.5)
#: the last rungs: batches whose rows take these parts of what the allowed age leaves beyond the batch cost. The last
#: lies just beyond the answer: large batches may cost more than smaller ones foretell, or meet the engine's cap
_PARTS = (0.5, 1.15)
#: the part of the allowed age that batches of other windows last at most, and small ones of a slow system
_LONGEST, _SMALL = 0.5, 0.25
#: rungs at most, whatever the fit says
_MOST_RUNGS = 12
#: from this share of hiccups on, windows near the answer are twice as long: a few batches do not show their frequency
_ROUGH = 0.02
#: rungs whose rows have this ratio or more count as one
_ALIKE = 0.8


def next_window(settings: Search, limits: Limits, measured: Sequence[Measurement], process: int) -> Hold | None:
    """The next window of a process; None when its ladder is complete."""
    windows = windows_of(measured, process)
    if any(w.purpose == "pair" for w in windows):
        return None  # its ladder stood when the blocks began
    valid, again = [w for w in windows if w.invalid is None], _climbs_again(limits, measured, process)
    compiled = sum(w.seconds for w in valid if w.purpose == "compile")
    if not again and limits.pinned and len(windows) < _MOST_RUNGS and compiled < settings.warmup_seconds * UNPINNED:
        step = warm_up_step(settings, limits, measured, process, valid)
        return dataclasses.replace(step, purpose="compile", reason="on all CPUs, to compile")
    warm = [w for w in valid if w.purpose == "warm-up"]
    ladder = [w for w in valid if w.purpose == "ladder"]
    if not ladder and not again and not _is_warm(settings, limits, warm):
        return warm_up_step(settings, limits, measured, process, valid if limits.continuous else warm)
    if len(ladder) >= _MOST_RUNGS:
        return None
    estimate = fit([*warm, *ladder], settings.max_age.seconds, limits)
    rung = _next_rung(settings, limits, estimate, warm, ladder, _small_rows(settings, limits, measured, process))
    if rung is None:
        return None
    rows, reason, long = rung
    seconds = settings.window_seconds * (2 if long else 1)
    rough = long and estimate is not None and estimate.hiccups > _ROUGH
    longest = estimate is not None and not limits.continuous and rows >= _ALIKE * estimate.backlog_rows
    return Hold(
        process, "ladder", rows, reason, seconds * (2 if rough else 1), 2 * seconds, settings.window_error,
        LEAST_BATCHES // 2 if longest else LEAST_BATCHES,
    )  # fmt: skip


def _next_rung(
    settings: Search,
    limits: Limits,
    estimate: Estimate | None,
    warm: Sequence[Window],
    ladder: Sequence[Window],
    first: int,
) -> tuple[int, str, bool] | None:
    """(rows to hold, why, whether the answer lies there); None at the end of the ladder."""
    age, most = settings.max_age.seconds, limits.most_rows
    held = [w.held_rows for w in ladder]
    if estimate is None:
        return first, "the first rung", False
    if limits.continuous:
        # its rate is measured at two backlogs: a quarter and half of the allowed age, or what a long pipeline needs
        plateau = max((w.held_rows for w in warm), default=0)
        for part in _BACKLOGS:
            rows = int(min(most, max(first, estimate.rate_events_per_s * age * part, plateau * part / _BACKLOGS[-1])))
            if not _has(held, rows):
                return rows, f"a backlog of {part * age:.3g} s", True
        return None
    cost = estimate.cost
    if cost.row_s > 0:  # a slow system's first rung must not lie far beyond the answer
        first = max(1, min(first, int(_SMALL * age / cost.row_s)))
    top = max(held, default=first)
    points = [Point.of(w) for w in ladder]
    has_grown = cost.seconds(top) > (1 + _GROWN) * cost.batch_s and bool(ladder)
    if estimate.cap_rows is None and top < most and not has_grown:
        # the line's slope is not known yet; no rung may take longer than the one of the answer
        rung = int(min(_RUNG * top, most, max(estimate.rows_for(age, _LONGEST), 2.0 * first)))
        if not _has(held, rung):
            return rung, "until a batch clearly grows with its rows", False
    if estimate.cap_rows is not None and estimate.constraint == "batch cap":
        at_cap = sum(p.count for p in points if p.rows >= _ALIKE * estimate.cap_rows)
        rungs = sum(p.rows >= _ALIKE * estimate.cap_rows for p in points)
        wanted = 4 if abs(estimate.drift) > _STEADY else 2
        if rungs < wanted or (at_cap < 2 * LEAST_BATCHES and rungs < 4):
            return int(min(most, 2 * estimate.cap_rows)), "at the engine's own cap of a batch", True
        below = max(1, estimate.cap_rows // 3)
        if not _has([round(p.rows) for p in points] + [round(Point.of(w).rows) for w in warm], below):
            return below, "below the cap, to tell the batch cost from the rows", False
        return None
    for part in _PARTS:
        rows = int(min(most, max(first, estimate.rows_for(age, part))))
        if not _has(held, rows) and (part < 1 or top < rows):
            return rows, f"where a batch lasts {cost.seconds(rows):.3g} s", True
    return None


def windows_of(measured: Sequence[Measurement], process: int) -> list[Window]:
    """The windows of a process since it was last begun anew: one that was lost is measured again from its warm-up."""
    windows = [m for m in measured[refuted(measured, process) :] if isinstance(m, Window) and m.process == process]
    return [w for w in windows if w.life == windows[-1].life]


def _climbs_again(limits: Limits, measured: Sequence[Measurement], process: int) -> bool:
    """True if a process climbs its second ladder, and is still the one that climbed the first, so it is warm."""
    lives = [m.life for m in measured if isinstance(m, Window) and m.process == process]
    before = [m.life for m in measured[: refuted(measured, process)] if isinstance(m, Window) and m.process == process]
    return bool(before) and limits.lasts and lives[-1] == before[-1]


def _has(held: Sequence[float], rows: float) -> bool:
    return any(_ALIKE <= (h + 1) / (rows + 1) <= 1 / _ALIKE for h in held)


def _small_rows(settings: Search, limits: Limits, measured: Sequence[Measurement], process: int) -> int:
    """Rows of a small batch: WARM_UP_ROWS, or what a slow process takes in a quarter of the allowed age.

    Its pace is that of its best window, lost and refuted ones included.
    """
    rows, age = min(WARM_UP_ROWS, limits.most_rows), settings.max_age.seconds
    windows = [m for m in measured if isinstance(m, Window) and m.process == process]
    paces = [w.rows / w.seconds for w in windows if w.invalid is None and w.rows and w.seconds]
    if limits.continuous:
        return int(rows)
    if not paces:  # not one batch ended, however often it was tried
        return int(max(1, rows // _RUNG ** sum(not w.batches for w in windows)))
    is_slow = rows > max(paces) * age * _LONGEST
    return int(max(1, min(rows, max(paces) * age * _SMALL))) if is_slow else int(rows)


def warm_up_step(
    settings: Search, limits: Limits, measured: Sequence[Measurement], process: int, before: Sequence[Window]
) -> Hold:
    """The next window of the warm-up after these valid ones: small batches and large ones in turns.

    Large ones are ten times as large, and last for half of the allowed age at most. Without batches, it is the backlog
    on the plateau (see `continuous`).
    """
    rows: float = _small_rows(settings, limits, measured, process)
    if limits.continuous:
        rows = continuous.warm_up_rows(before, settings.max_age.seconds, limits.most_rows)
    elif len(before) % 2:
        rows *= min(_LARGER, max(1.0, _LONGEST * settings.max_age.seconds / _spent(before[-1])))
    why = "until the cost of a batch is steady"
    # the first batch tells whether the system is slow
    least, round_s = 2 if before or limits.continuous else 1, min(_ROUND_S, settings.warmup_seconds)
    return Hold(process, "warm-up", int(min(rows, limits.most_rows)), why, round_s, round_s, 1.0, least)


def warm_up(settings: Search, limits: Limits, measure: Callable[[Hold], Window]) -> list[Window]:
    """Measures windows until the cost of a batch is steady, or one of them is invalid; returns them."""
    windows: list[Window] = []
    while not _is_warm(settings, limits, windows):
        step = warm_up_step(settings, limits, windows, 1, windows)
        early = sum(window.seconds for window in windows) < UNPINNED * settings.warmup_seconds
        windows.append(measure(dataclasses.replace(step, purpose="compile") if early else step))
        if windows[-1].invalid:
            break
    return windows


def _spent(window: Window) -> float:
    """The mean seconds of a batch."""
    return max(1e-9, window.seconds / max(1, len(window.batches)))


def _is_warm(settings: Search, limits: Limits, warm: Sequence[Window]) -> bool:
    """True once the cost of a batch, or of a row, has no trend over several windows, or the time for it is over."""
    spent = sum(w.seconds for w in warm)
    if spent >= settings.warmup_seconds:
        return True
    points = [Point.of(w) for w in (continuous.near_the_top(warm) if limits.continuous else warm) if w.batches]
    skipped = len(points) // 3
    recent = points[skipped:]
    if len(points) < 4 or recent[-1].at_s - recent[0].at_s < 0.6 * _TREND_S:
        return False
    cost = (continuous.costs(points) if limits.continuous else excesses(points))[skipped:]
    at, weight = np.array([p.at_s for p in recent]), np.array([p.error**-2 for p in recent])
    centre = at - (weight * at).sum() / weight.sum()
    information = float((weight * centre**2).sum())
    trend = float((weight * centre * cost).sum()) / information * _TREND_S
    if abs(trend) + _TREND_S / math.sqrt(information) > _STEADY:
        return False
    estimate = fit(warm, settings.max_age.seconds, Limits(continuous=limits.continuous))
    return estimate is not None and abs(estimate.drift) <= _STEADY


def estimate_of(settings: Search, limits: Limits, measured: Sequence[Measurement], process: int) -> Estimate | None:
    return fit(windows_of(measured, process), settings.max_age.seconds, limits)


def estimates(settings: Search, limits: Limits, measured: Sequence[Measurement]) -> list[Estimate]:
    """The estimate of each process that has one."""
    fitted = [estimate_of(settings, limits, measured, process) for process in range(1, settings.processes + 1)]
    return [one for one in fitted if one is not None]
