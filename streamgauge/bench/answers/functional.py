"""Functional regressions: an answer that has changed is an error at once, without statistics."""

from __future__ import annotations

from collections.abc import Iterable

from streamgauge.records.series import Point

#: prefix of the metrics that describe a query's answer
OUTPUT = "output_"
ROWS, HASH, SUPPORTED, CORRECT = (OUTPUT + name for name in ("rows", "hash", "supported", "correct"))


def is_output(metric: str) -> bool:
    return metric.startswith(OUTPUT)


def broken(metric: str, points: Iterable[Point]) -> list[tuple[Point, Point]]:
    """(before, after) of every change of an output; points are given oldest first.

    "supported" and "correct" may change from no (0) to yes (1). A point is compared with the last one of the same
    configuration: another configuration asks another question.
    """
    last: dict[str, Point] = {}
    changes = []
    for point in points:
        if not point.is_sound:
            continue
        before = last.get(point.config_hash)
        if before is not None and _worse(metric, before.figure, point.figure):
            changes.append((before, point))
        last[point.config_hash] = point
    return changes


def said(metric: str, before: Point, after: Point) -> str:
    """Describes a change in words."""
    if metric == SUPPORTED:
        return "no longer supported"
    if metric == CORRECT:
        return "no longer correct"
    if metric == HASH:
        return "output changed: other values"
    return f"output changed from {_count(before)} to {_count(after)}"


def _worse(metric: str, before: float, after: float) -> bool:
    return after < before if metric in (SUPPORTED, CORRECT) else after != before


def _count(point: Point) -> str:
    return f"{point.figure:,.0f}".replace(",", "\u202f")
