"""Mergeable values (cells) of counters, distributions and gauges. Standard library, and numpy in `spread_of`."""

from __future__ import annotations

import math
import re
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

Number = int | float


class Key(NamedTuple):
    """Identifies a metric: two with the same key are one."""

    kind: str  # counter, distribution, gauge
    namespace: str
    name: str
    step: str


class Reporter(TypedDict):
    """A run of a worker on a task, as Spark identifies both; without a streaming query it has no batch."""

    run: str
    stage: int
    partition: int
    attempt: int
    query: str | None
    batch: str | None
    query_run: str | None


class Report(Reporter):
    """Counts of a run so far; a run that has ended counts no more."""

    number: int
    ended: bool
    cells: list[list[Any]]


@dataclass(slots=True)
class Count:
    """A sum of increments."""

    kind: ClassVar[str] = "counter"
    value: Number = 0

    def merge(self, other: Self) -> None:
        self.value += other.value

    def figures(self) -> dict[str, Any]:
        return {"value": self.value}


@dataclass(slots=True)
class Spread:
    """Count, sum and bounds of the values seen."""

    kind: ClassVar[str] = "distribution"
    count: int = 0
    sum: Number = 0
    min: Number | None = None
    max: Number | None = None

    def merge(self, other: Self) -> None:
        self.count += other.count
        self.sum += other.sum
        if other.min is not None and (self.min is None or other.min < self.min):
            self.min = other.min
        if other.max is not None and (self.max is None or other.max > self.max):
            self.max = other.max

    def figures(self) -> dict[str, Any]:
        mean = self.sum / self.count if self.count else None
        return {"count": self.count, "sum": self.sum, "min": self.min, "max": self.max, "mean": mean}


@dataclass(slots=True)
class Latest:
    """The value with the latest timestamp (wall time, ns since the epoch); at equal timestamps, the larger value."""

    kind: ClassVar[str] = "gauge"
    value: Number | None = None
    at_ns: int = -1

    def merge(self, other: Self) -> None:
        if other.value is None:
            return
        if self.value is None or (other.at_ns, other.value) > (self.at_ns, self.value):
            self.value, self.at_ns = other.value, other.at_ns

    def figures(self) -> dict[str, Any]:
        return {"value": self.value, "timestamp_ns": self.at_ns}


Cell = Count | Spread | Latest
Cells = dict[Key, Cell]
KINDS: dict[str, type[Cell]] = {cell.kind: cell for cell in (Count, Spread, Latest)}


def merge_into(cells: Cells, key: Key, delta: Cell) -> None:
    """Merges a delta into the cell of its key; the delta object itself is never kept."""
    cell = cells.get(key)
    if cell is None:
        cell = cells[key] = KINDS[key.kind]()
    cell.merge(delta)  # type: ignore[arg-type]  # one key, one kind


def encode(cells: Cells) -> list[list[Any]]:
    """Encodes cells as lists for JSON and for Spark's accumulators; `decode` is the inverse."""
    return [[*key, *astuple(cell)] for key, cell in list(cells.items())]  # another thread may add one


def decode(rows: list[list[Any]]) -> Cells:
    return {Key(*row[:4]): KINDS[row[0]](*row[4:]) for row in rows}


def number(value: Any) -> Number | None:
    """Converts any number, also of numpy or Arrow, to an int or a finite float; None for anything else."""
    if type(value) is int:
        return value
    try:
        plain = value.item() if hasattr(value, "item") else value.as_py() if hasattr(value, "as_py") else value
        if isinstance(plain, int):
            return int(plain)
        return float(plain) if math.isfinite(plain) else None
    except (TypeError, ValueError, OverflowError):
        return None


def spread_of(values: Any) -> Spread:
    """Spread of an Arrow or numpy array, a series or any iterable; nulls, NaN and infinities are left out."""
    import numpy as np

    if hasattr(values, "drop_null"):  # Arrow
        values = (values.drop_null() if values.null_count else values).to_numpy(zero_copy_only=False)
    elif not isinstance(values, np.ndarray):
        values = np.asarray(values if hasattr(values, "__len__") else list(values))
    if values.dtype.kind == "O":
        kept = [plain for value in values.ravel().tolist() if (plain := number(value)) is not None]
        return Spread(len(kept), sum(kept), min(kept), max(kept)) if kept else Spread()
    if values.dtype.kind == "f":
        total = float(values.sum(dtype=np.float64))
        if not math.isfinite(total):
            values = values[np.isfinite(values)]
            total = float(values.sum(dtype=np.float64))
    elif values.dtype.kind in "iu":
        total = None
    elif values.dtype.kind in "bmM":  # durations and moments: NaT is no number
        values, total = (values if values.dtype.kind == "b" else values[~np.isnat(values)]).astype(np.int64), None
    else:
        return Spread()  # texts and the like
    if not values.size:
        return Spread()
    low, high = values.min().item(), values.max().item()
    if total is None:
        wide = max(abs(low), abs(high)) * values.size >= 2**63  # int64 would overflow: sum both halves
        total = (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum()) if wide else int(values.sum())
    return Spread(int(values.size), total, low, high)


_NOT_NAME = re.compile(r"[\x00-\x1f\x7f]")


def check_name(what: str, value: object) -> str:
    """Returns the value. Raises ValueError unless it is a text of 1 to 200 characters without control characters."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or _NOT_NAME.search(value):
        raise ValueError(f"{what}: found {value!r}, allowed: a text of 1 to 200 printable characters")
    return value
