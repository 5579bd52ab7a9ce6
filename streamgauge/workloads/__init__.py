"""The queries a system can be measured with: one row here and one file beside it for each.

A query is `query(frames, spec) -> frame`, the same in batch and in streaming: no session, no clock, no writing.
Its result carries `event_wall` and `offered_wall`, the largest among the contributors of each row.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from streamgauge.errors import UserError
from streamgauge.units import Duration

if TYPE_CHECKING:
    from streamgauge.config import Workload

NUMBERS = ("int64", "float64")


@dataclass(frozen=True)
class Spec:
    """What a query is told. Durations in microseconds; the watermark, as Spark wants it, in milliseconds."""

    query: str
    key: str | None = None
    value: str | None = None
    window_us: int = 10_000_000
    slide_us: int | None = None
    watermark_ms: int = 0
    offset_us: int = 0  # where windows begin

    @classmethod
    def of(cls, workload: Workload, columns: Mapping[str, str]) -> Self:
        """Checks a workload against the registry and the declared columns. Raises UserError."""
        where = f"workloads.{workload.name}"
        query = find(workload.query, where)
        for need in ("key", "value"):
            column = getattr(workload, need)
            if column is None and need in query.needs:
                raise UserError(f"{where}.{need}: {query.name} needs it; name one of {_list(columns)}")
            if column is not None and column not in columns:
                raise UserError(f"{where}.{need}: found {column!r}, allowed: {_list(columns)} (source.columns)")
        if workload.value is not None and "value" in query.needs and columns[workload.value] not in NUMBERS:
            numbers = _list([name for name, kind in columns.items() if kind in NUMBERS])
            raise UserError(f"{where}.value: {workload.value} is no number; allowed: {numbers}")
        window, watermark = _whole(workload.window, "us", where, "window"), workload.watermark
        slide = None if workload.slide is None else _whole(workload.slide, "us", where, "slide")
        if window <= 0 or (slide is not None and (slide <= 0 or window % slide)):
            raise UserError(f"{where}: window {workload.window} must be a whole multiple, 1 or more, of its slide")
        return cls(
            workload.query,
            workload.key,
            workload.value,
            window,
            None if slide == window else slide,
            _whole(watermark, "ms", where, "watermark"),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def tumbling(self) -> list[Spec]:
        """The tumbling windows that a sliding one is made of."""
        slide = self.slide_us or self.window_us
        return [
            Spec(self.query, self.key, self.value, self.window_us, None, self.watermark_ms, self.offset_us + shift)
            for shift in range(0, self.window_us, slide)
        ]


class Run(Protocol):
    def __call__(self, frames: list[Any], spec: Spec) -> Any: ...


@dataclass(frozen=True)
class Query:
    name: str
    title: str
    asks: str
    contributors: str  # whose latest time a result row's latency counts from
    output_mode: Literal["append"]
    needs: tuple[str, ...] = ()
    streams: int = 1  # frames that it takes, each the whole stream
    windows: bool = True  # late events are dropped
    drops_counted: Literal["rows", "groups", "none"] = "none"  # what Spark's numRowsDroppedByWatermark counts

    @property
    def run(self) -> Run:
        return importlib.import_module(f"{__name__}.{self.name}").query


REGISTRY = (
    Query(
        "passthrough",
        "Pass-through",
        "every event, unchanged",
        "the event itself",
        "append",
        windows=False,
    ),
    Query(
        "windowed_aggregation",
        "Keyed windowed aggregation",
        "count, sum and mean of the value per key and window (Karimov et al., ICDE 2018)",
        "every event of the key in the window",
        "append",
        needs=("key", "value"),
        drops_counted="groups",
    ),
    Query(
        "windowed_join",
        "Windowed join",
        "pairs of one event of each half of the stream with equal key in the same window (Karimov et al., ICDE 2018)",
        "both events of the pair",
        "append",
        needs=("key",),
        streams=2,
        drops_counted="rows",
    ),
)


def find(name: str, where: str = "query") -> Query:
    """Raises UserError naming what there is."""
    for query in REGISTRY:
        if query.name == name:
            return query
    raise UserError(f"{where}.query: found {name!r}, allowed: {_list([query.name for query in REGISTRY])}")


def run(frames: list[Any], spec: Spec) -> Any:
    """The result frame of a query over frames that each hold the whole stream."""
    return find(spec.query).run(frames, spec)


def _whole(duration: Duration, unit: str, where: str, key: str) -> int:
    try:
        return duration.to(unit)
    except ValueError as problem:
        raise UserError(f"{where}.{key}: {problem}") from None


def _list(names: Any) -> str:
    return ", ".join(names) or "none"
