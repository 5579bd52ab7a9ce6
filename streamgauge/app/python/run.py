"""A run that was measured, as objects and as frames. It is only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from streamgauge.base.errors import UserError
from streamgauge.base.places import Remote, place
from streamgauge.catalog.artifacts import Store
from streamgauge.config import of_run
from streamgauge.records.profile import Profile
from streamgauge.results.report.degrees import comparisons
from streamgauge.results.report.run_records import CellRecord, Records

if TYPE_CHECKING:
    from pandas import DataFrame
    from polars import DataFrame as PolarsFrame

T = TypeVar("T")
Row = TypeVar("Row", bound="Rate | Latency | Ratio")
_ARROW = {"str": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}


@dataclass(frozen=True)
class Rate:
    """The sustainable rate of a cell; None where the claim allows no figure.

    interval_of: "3 processes", or "one process", whose interval from low to high compares nothing: fresh processes
    differ by several percent. `Run.comparisons` has what may be compared.
    """

    experiment: str
    workload: str
    system: str
    rate_events_per_s: float | None
    low: float | None
    high: float | None
    interval_of: str
    claim: str
    constraint: str | None


@dataclass(frozen=True)
class Latency:
    """Quantiles of a latency run's event-time latency, and its CPU time an event."""

    experiment: str
    workload: str
    system: str
    fraction: float
    common: bool
    rate_events_per_s: float
    is_sound: bool
    rows: int
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    max_ms: float | None
    system_cpu_us_per_event: float | None
    correct: bool | None


@dataclass(frozen=True)
class Ratio:
    """A figure over that of the experiment `against`, from windows in turns; None if it is not known, with the reason.

    metric: the rate, or p50 or p99 of the latency at one rate for both. The 90 % interval goes from low to high.
    """

    experiment: str
    against: str
    workload: str
    system: str
    metric: str
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    processes: int
    reason: str
    sentence: str


class Rows(tuple[Row, ...]):
    """Typed rows, which are also a table of Arrow, and a frame of pandas or of Polars where that is installed."""

    _schema: pa.Schema

    @classmethod
    def of(cls, kind: type[Row], rows: Iterable[Row]) -> Rows[Row]:
        """Rows of a kind, whose columns are its fields, however few rows there are."""
        table = cls(rows)
        table._schema = pa.schema([(one.name, _ARROW[str(one.type).removesuffix(" | None")]) for one in fields(kind)])
        return table

    def arrow(self) -> pa.Table:
        return pa.Table.from_pylist([asdict(row) for row in self], self._schema)

    def pandas(self) -> DataFrame:
        _library("pandas")
        frame: DataFrame = self.arrow().to_pandas()
        return frame

    def polars(self) -> PolarsFrame:
        frame: PolarsFrame = _library("polars").DataFrame(self.arrow())
        return frame


def _library(name: str) -> ModuleType:
    """Imports a library that comes with no extra. Raises UserError, one line, if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise UserError(f"{name} is not installed here; install it, or take the table of Arrow") from None


class Run:
    """A run by its folder, such as artifacts/runs/night-1 or s3://…/runs/night-1. Raises UserError if it is no run."""

    def __init__(self, path: str | Path) -> None:
        self.path = place(path)
        if self.path.parent.name != "runs":
            raise UserError(f"{path}: found no run, allowed: a folder in artifacts/runs")
        if isinstance(self.path, Remote):
            self.path.require()
        self.benchmark = of_run(self.path)
        self._store = Store(self.path.parents[1])

    @cached_property
    def cells(self) -> list[CellRecord]:
        """The cells with the records of their searches and latency runs. Raises UserError if one is damaged."""
        return self._read(lambda records: records.cells)

    @cached_property
    def profile(self) -> Profile | None:
        """The source's profile; None without one. Raises UserError if it is damaged."""
        return self._read(lambda records: records.profile)

    def _read(self, read: Callable[[Records], T]) -> T:
        """Reads from the records afresh: what is damaged in one kind says nothing of another. Raises UserError."""
        records = Records(self.benchmark, self._store, self.path.name)
        value = read(records)
        records.require_sound()
        return value

    @property
    def rates(self) -> Rows[Rate]:
        """The rate of each cell."""
        rates = (
            Rate(
                **one.cell.model_dump(),
                rate_events_per_s=one.rate,
                low=one.interval[0],
                high=one.interval[1],
                interval_of=one.interval_of,
                claim=one.claim.kind,
                constraint=one.search.constraint if one.search else None,
            )
            for one in self.cells
        )
        return Rows.of(Rate, rates)

    @property
    def latencies(self) -> Rows[Latency]:
        """The latency runs of each cell."""
        names = {"fraction", "common", "rate_events_per_s", "system_cpu_us_per_event", "correct"}
        latencies = (
            Latency(
                **one.cell.model_dump(),
                **run.model_dump(include=names),
                **run.event_latency.model_dump(exclude={"count", "p95_ms"}),
                is_sound=run.is_sound,
                rows=run.event_latency.count,
            )
            for one in self.cells
            for run in one.latency
        )
        return Rows.of(Latency, latencies)

    @property
    def comparisons(self) -> Rows[Ratio]:
        """The comparisons of cells that shared their processes. Raises UserError if a record is damaged."""
        ratios = []
        for one in self._read(comparisons):
            low, high = one.interval or (None, None)
            more = one.model_dump(exclude={"interval"})
            ratios.append(Ratio(**more, low=low, high=high, sentence=one.sentence))
        return Rows.of(Ratio, ratios)
