"""Reads numbers from files: samples for a comparison, a history for change points. Errors name the line."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.places import text_of_user
from streamgauge.base.words import counted

_DAY = 86_400.0


@dataclass(frozen=True)
class History:
    """A series over time. times: as written. days: since the epoch; None for times that are plain numbers.

    gaps: (time before, time after, days between them or None).
    """

    times: list[str]
    values: list[float]
    days: list[float] | None
    gaps: list[tuple[str, str, float | None]]


def read_sample(path: Path) -> list[float]:
    """Reads one positive number a line; empty lines and lines that begin with # are skipped. Raises UserError."""
    lines = enumerate(text_of_user(path).splitlines(), 1)
    numbers = [_positive(line, f"{path}:{n}") for n, line in lines if line.strip() and not line.startswith("#")]
    if not numbers:
        raise UserError(f"{path}: found no numbers, allowed: one positive number a line")
    return numbers


def read_history(path: Path) -> History:
    """Reads rows of time,value in order of time; a header is allowed; a row without a value is a gap.

    Times are ISO-8601, epoch seconds, or any rising numbers. Raises UserError.
    """
    rows: list[tuple[float, str, str, bool, int]] = []
    for n, row in enumerate(csv.reader(text_of_user(path).splitlines()), 1):
        if not row or row[0].startswith("#"):
            continue
        if len(row) != 2:
            raise UserError(f"{path}:{n}: found {counted(len(row), 'field')}, allowed: two, time,value")
        time, value = row[0].strip(), row[1].strip()
        moment = _moment(time)
        if moment is None:
            if not rows and _number(value) is None:
                continue  # the header
            raise UserError(f"{path}:{n}: time: found {time!r}, allowed: ISO-8601 or a number")
        if rows and rows[-1][3] != moment[1]:
            raise UserError(f"{path}:{n}: time: found {time!r}, allowed: all dates, or all numbers")
        if rows and moment[0] < rows[-1][0]:
            raise UserError(f"{path}:{n}: time: found {time!r} after {rows[-1][1]!r}, allowed: no earlier time")
        rows.append((moment[0], time, value, moment[1], n))
    kept = [row for row in rows if row[2]]
    values = [_positive(value, f"{path}:{n}") for _, _, value, _, n in kept]
    if not values:
        raise UserError(f"{path}: found no values, allowed: rows of time,value")
    dated = kept[0][3]
    return History([row[1] for row in kept], values, [row[0] for row in kept] if dated else None, _gaps(rows))


def _gaps(rows: list[tuple[float, str, str, bool, int]]) -> list[tuple[str, str, float | None]]:
    """Gaps between values: rows without one, or a distance of more than 1.5 times the median."""
    kept = [row for row in rows if row[2]]
    distances = sorted(b[0] - a[0] for a, b in pairwise(kept) if b[0] > a[0])
    usual = distances[len(distances) // 2] if distances else 0.0
    empty = {row[0] for row in rows if not row[2]}
    return [
        (a[1], b[1], b[0] - a[0] if a[3] else None)
        for a, b in pairwise(kept)
        if b[0] - a[0] > 1.5 * usual or any(a[0] < moment < b[0] for moment in empty)
    ]


def _moment(text: str) -> tuple[float, bool] | None:
    """(days since the epoch, True) for dates and epoch seconds, (number, False) for other numbers, else None."""
    number = _number(text)
    if number is not None and math.isfinite(number) and not (len(text) == 8 and text.isdigit()):
        return (number / _DAY, True) if 1e9 <= number < 1e11 else (number, False)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None if number is None or not math.isfinite(number) else (number, False)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() / _DAY, True


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _positive(text: str, where: str) -> float:
    number = _number(text)
    if number is None or not (math.isfinite(number) and number > 0):
        raise UserError(f"{where}: found {text.strip()[:40]!r}, allowed: a positive number")
    return number
