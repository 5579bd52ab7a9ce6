"""Parameters of a query, checked against the columns that it will find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration
from streamgauge.bench.workloads.query import Query
from streamgauge.bench.workloads.registry import find
from streamgauge.records.loss import Kind
from streamgauge.records.rules import Operator, Rules

if TYPE_CHECKING:
    from streamgauge.config import Workload

NUMBERS = ("int64", "float64")
DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Spec:
    """Parameters of a query. Durations are in microseconds; the watermark, as Spark wants it, in milliseconds.

    The window is also the gap of a session and the time to live of an element that waits to be joined.
    """

    query: str
    key: str | None = None
    value: str | None = None
    window_us: int = 10_000_000
    slide_us: int | None = None
    watermark_ms: int = 0
    offset_us: int = 0  # windows begin at multiples of their slide plus this
    mark: str | None = None  # the value, as text, of events of the second kind
    top: int = 10

    @classmethod
    def of(cls, workload: Workload, columns: Mapping[str, str], *, whole: bool = False) -> Self:
        """Makes the parameters of a workload, checked against registry and declared columns. Raises UserError.

        whole: any rule of comparison will do, as not only a checksum of the answer decides.
        """
        where = f"workloads.{workload.name}"
        query = find(workload.query, where)
        if not whole and query.rule.kind not in ("exact", "bounded"):
            raise UserError(
                f"{where}.query: {query.name} is compared by {query.rule.kind}, which trials do not support"
            )
        if missing := [name for name in query.columns if name not in columns]:
            raise UserError(f"{where}.query: {query.name} reads {missing[0]}; declare it in source.columns")
        for need, column in (("key", workload.key), ("value", workload.value)):
            if column is None and need in query.needs:
                raise UserError(f"{where}.{need}: {query.name} needs it; name one of {_list(columns)}")
            if column is not None and column not in columns:
                raise UserError(f"{where}.{need}: found {column!r}, allowed: {_list(columns)} (source.columns)")
        if "mark" in query.needs and workload.mark is None:
            raise UserError(f"{where}.mark: {query.name} needs it: the {workload.value} of {query.marked}")
        if "mark" in query.needs and columns[str(workload.value)] == "float64":
            others = _list([name for name, kind in columns.items() if kind != "float64"])
            raise UserError(f"{where}.value: {workload.value} is a float; marks cannot be floats; allowed: {others}")
        if query.counts(workload.value) and columns[str(workload.value)] not in NUMBERS:
            numbers = _list([name for name, kind in columns.items() if kind in NUMBERS])
            raise UserError(f"{where}.value: {workload.value} is not numeric; allowed: {numbers}")
        window, watermark = _whole(workload.window, "us", where, "window"), workload.watermark
        slide = None if workload.slide is None else _whole(workload.slide, "us", where, "slide")
        if slide is not None and not query.slides:
            raise UserError(f"{where}.slide: {query.name} has no sliding windows; leave it out")
        if window <= 0 or (slide is not None and (slide <= 0 or window % slide)):
            raise UserError(f"{where}: window {workload.window} must be a whole multiple, 1 or more, of its slide")
        _require_its_own(query, workload, where)
        if query.needs_watermark and watermark < workload.window:
            raise UserError(f"{where}.watermark: {query.name} needs {workload.window} or more, its window")
        return cls(
            workload.query,
            workload.key,
            workload.value,
            window,
            None if slide == window else slide,
            _whole(watermark, "ms", where, "watermark"),
            mark=workload.mark,
            top=workload.top,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def length_us(self) -> int:
        """Length of the engine's windows, from which a query may cut its own."""
        return self.window_us * find(self.query).spans

    def beyond_us(self, rules: Rules) -> int:
        """Least distance of the sentinel from the last event at which an engine of these rules has answered all."""
        lag_us = max(find(self.query).lags, default=0) * self.window_us
        longest_us = max(lag_us, *(one.lag_us for one in rules.operators))
        return 2 * self.length_us + longest_us + max(self.watermark_ms * 1000, rules.delay_us)

    @property
    def step_us(self) -> int:
        return self.slide_us or self.window_us

    def operators(self, kind: Kind | None = None, *, lagging: bool = False) -> tuple[Operator, ...]:
        """Returns how the operator that takes each frame loses an event.

        kind: None for the question's own rule. lagging: a later operator's watermark lies behind that of the first one,
        as far as the question allows.
        """
        query = find(self.query)
        length_us = self.window_us if query.late == "session" else self.length_us
        lags = query.lags if lagging and query.lags else (0,) * query.streams
        kept = kind or query.late, length_us, self.step_us, self.offset_us
        return tuple(Operator(*kept, lag_us=lag * self.window_us) for lag in lags)

    def tumbling(self) -> list[Spec]:
        """Splits the engine's windows into tumbling ones: one spec for each offset."""
        shifts = range(0, self.length_us, self.step_us)
        return [replace(self, slide_us=self.length_us, offset_us=self.offset_us + shift) for shift in shifts]


def _require_its_own(query: Query, workload: Workload, where: str) -> None:
    """Raises UserError for a window or a key that the question itself names otherwise."""
    if query.by_day and workload.window.to("us") != DAY_US:
        raise UserError(f"{where}.window: found {workload.window}, allowed for {query.name}: 1d, as it asks by day")
    if query.late == "session" and query.groups and workload.key != query.groups[0][0]:
        raise UserError(f"{where}.key: found {workload.key!r}, allowed for {query.name}: {query.groups[0][0]}")


def _whole(duration: Duration, unit: str, where: str, key: str) -> int:
    try:
        return duration.to(unit)
    except ValueError as problem:
        raise UserError(f"{where}.{key}: {problem}") from None


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
