"""Rules for engines without micro-batches: their rate grows with the backlog up to a plateau, which is the answer.

A row needs L seconds through fetching, queues and operators. With n rows waiting such a pipeline carries n/L, as long
as that is less than its capacity C. A window with a small backlog therefore measures L and not C: only windows on the
plateau tell the rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamgauge.bench.search.point import Point
from streamgauge.records.measurement import Window

#: first backlog of a warm-up, and the factor to the next one while the rate still grows
FIRST_ROWS, _STEP = 20_000, 4
#: windows with at least this share of the largest backlog count as being near it
_NEAR = 0.4
#: carried ~ backlog^e: e is 1 far below the plateau and 0 on it
_FLAT, _PROPORTIONAL = 0.15, 0.5


def carried(window: Window) -> float:
    """Rows per second of a window with at least one batch."""
    return window.rows / max(window.seconds, 1e-9)


def near_the_top(windows: Sequence[Window]) -> list[Window]:
    """Windows whose backlog is about the largest of all; they are on the plateau if any are."""
    most = max((window.held_rows for window in windows), default=0)
    return [window for window in windows if window.held_rows >= _NEAR * most]


def growth(windows: Sequence[Window]) -> float | None:
    """Returns e of carried ~ backlog^e, from the largest backlogs and the one below them; None if all are alike."""
    top = near_the_top(windows)
    below = [window for window in windows if window.held_rows < min(w.held_rows for w in top)] if top else []
    if not below:
        return None
    last = max(below, key=lambda window: window.held_rows)
    highest = max(top, key=lambda window: window.held_rows)
    more = math.log(max(carried(highest), 1e-9) / max(carried(last), 1e-9))
    return more / math.log(highest.held_rows / last.held_rows)


def is_flat(windows: Sequence[Window]) -> bool:
    """True if a larger backlog did not make the engine carry more, as far as these windows tell."""
    exponent = growth(windows)
    return exponent is not None and exponent < _FLAT


def warm_up_rows(windows: Sequence[Window], allowed_age_s: float, most_rows: float) -> int:
    """The backlog of the next warm-up window: four times the last one until that no longer helps.

    Half of the allowed age is enough once more rows did not bring as much more. Until then a slow engine and a long
    pipeline look alike, so the backlog grows on, but for rows that needed more than the allowed age.
    """
    begun = [window for window in windows if window.batches]
    if not begun:
        return int(min(FIRST_ROWS, most_rows))
    highest = max(begun, key=lambda window: window.held_rows)
    if is_flat(begun):
        return highest.held_rows
    exponent = growth(begun)
    rows = float(_STEP * highest.held_rows)
    is_proportional = exponent is None or exponent > _PROPORTIONAL
    if not is_proportional or highest.held_rows > carried(highest) * allowed_age_s:
        rows = min(rows, max(FIRST_ROWS, carried(highest) * allowed_age_s / 2))
    return max(highest.held_rows, int(min(rows, most_rows)))


def costs(points: Sequence[Point]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Cost of a row in each window, relative to the median, on logarithms."""
    cost = np.log(np.array([point.seconds / point.rows for point in points]))
    relative: np.ndarray[tuple[int], np.dtype[np.float64]] = cost - np.median(cost)
    return relative
