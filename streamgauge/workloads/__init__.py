"""The queries with which a system can be measured: one row here and one file beside it for each.

A query is `query(frames, spec) -> frame`, the same in batch and in streaming: no session, no clock, no writing.
Its result carries `event_wall` and `offered_wall`, the largest wall times among the contributors of each row.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from streamgauge.errors import UserError
from streamgauge.units import Duration

if TYPE_CHECKING:
    from streamgauge.config import Workload

NUMBERS = ("int64", "float64")


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
    def of(cls, workload: Workload, columns: Mapping[str, str]) -> Self:
        """Makes the parameters of a workload, checked against registry and declared columns. Raises UserError."""
        where = f"workloads.{workload.name}"
        query = find(workload.query, where)
        if query.rule.kind not in ("exact", "bounded"):
            raise UserError(f"{where}.query: {query.name} is compared by {query.rule.kind}, which a trial cannot do")
        if missing := [name for name in query.columns if name not in columns]:
            raise UserError(f"{where}.query: {query.name} reads {missing[0]}; declare it in source.columns")
        for need in ("key", "value"):
            column = getattr(workload, need)
            if column is None and need in query.needs:
                raise UserError(f"{where}.{need}: {query.name} needs it; name one of {_list(columns)}")
            if column is not None and column not in columns:
                raise UserError(f"{where}.{need}: found {column!r}, allowed: {_list(columns)} (source.columns)")
        if "mark" in query.needs and workload.mark is None:
            raise UserError(f"{where}.mark: {query.name} needs it: the {workload.value} of {query.marked}")
        if "mark" in query.needs and columns[str(workload.value)] == "float64":
            others = _list([name for name, kind in columns.items() if kind != "float64"])
            raise UserError(f"{where}.value: {workload.value} is a float, and no mark is one; allowed: {others}")
        if query.counts(workload.value) and columns[str(workload.value)] not in NUMBERS:
            numbers = _list([name for name, kind in columns.items() if kind in NUMBERS])
            raise UserError(f"{where}.value: {workload.value} is no number; allowed: {numbers}")
        window, watermark = _whole(workload.window, "us", where, "window"), workload.watermark
        slide = None if workload.slide is None else _whole(workload.slide, "us", where, "slide")
        if slide is not None and not query.slides:
            raise UserError(f"{where}.slide: {query.name} has no sliding windows; leave it out")
        if window <= 0 or (slide is not None and (slide <= 0 or window % slide)):
            raise UserError(f"{where}: window {workload.window} must be a whole multiple, 1 or more, of its slide")
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

    @property
    def beyond_us(self) -> int:
        """Least distance of the sentinel from the last event at which every answer comes out."""
        return 2 * self.length_us + max(find(self.query).lags, default=0) * self.window_us + self.watermark_ms * 1000

    @property
    def step_us(self) -> int:
        return self.slide_us or self.window_us

    def tumbling(self) -> list[Spec]:
        """Splits the engine's windows into tumbling ones: one spec for each offset."""
        shifts = range(0, self.length_us, self.step_us)
        return [replace(self, slide_us=self.length_us, offset_us=self.offset_us + shift) for shift in shifts]


@dataclass(frozen=True)
class Rule:
    """How a streaming answer is compared with the batch answer: by size and hash of its rows.

    exact: all rows. last per key: of rows with equal key only the one with the largest `by`; a column named revision is
    left out. bounded: as exact, for a query that was bounded in time. invariant: only the sums of `by` per key.
    """

    kind: Literal["exact", "last per key", "bounded", "invariant"] = "exact"
    key: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


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
    late: Literal["never", "window", "event", "session"] = "window"  # when an event is dropped: see link/oracle.py
    drops_counted: Literal["rows", "groups", "none"] = "none"  # what Spark's numRowsDroppedByWatermark counts
    # for each frame, the columns by which it groups, besides the window; none: key
    groups: tuple[tuple[str, ...], ...] = ()
    slides: bool = False  # may have sliding windows
    spans: int = 1  # how many of its windows one of the engine's windows spans
    needs_watermark: bool = False  # its watermark delay must be at least its window
    rocksdb: bool = False  # needs RocksDB, the only state store that transformWithState takes
    marked: str = ""  # what the events of the second kind are
    line: bool = False  # it passes the whole line on
    columns: tuple[str, ...] = ()  # columns of the source that it reads, besides key and value
    # for each frame, the rows that it reads, as column -> values; none: all
    reads: tuple[Mapping[str, tuple[Any, ...]], ...] = ()
    lags: tuple[int, ...] = ()  # for each frame, by how many windows its operator's watermark lies behind
    rule: Rule = Rule()
    features: tuple[str, ...] = ()
    differs: str = ""  # how it differs from the question as it is asked elsewhere

    def counts(self, value: str | None) -> bool:
        """True if it calculates with the value, which must then be a number."""
        return value is not None and "value" in self.needs and "mark" not in self.needs

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
        late="never",
        line=True,
        features=("projection",),
    ),
    Query(
        "windowed_aggregation",
        "Keyed windowed aggregation",
        "count, sum and mean of the value per key and window (Karimov et al., ICDE 2018)",
        "every event of the key in the window",
        "append",
        needs=("key", "value"),
        drops_counted="groups",
        slides=True,
        features=("windowed aggregation",),
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
        slides=True,
        features=("stream-stream join",),
    ),
    Query(
        "outer_join",
        "Stream-stream outer join",
        "the windowed join, and each event of the left half that met none of the right, once its window ends",
        "both events of the pair, or the one that met none",
        "append",
        needs=("key",),
        streams=2,
        drops_counted="rows",
        slides=True,
        features=("stream-stream outer join",),
    ),
    Query(
        "top_n",
        "Top N",
        "the `top` largest values per key and window, the earlier event first among equals",
        "every event of the key in the window",
        "append",
        needs=("key", "value"),
        drops_counted="groups",
        slides=True,
        features=("top N per window",),
    ),
    Query(
        "sessions",
        "Sessions",
        "count and sum of the value per key and session; a session ends with a gap of one window",
        "every event of the session",
        "append",
        needs=("key", "value"),
        late="session",
        drops_counted="groups",
        features=("session window",),
    ),
    Query(
        "deduplication",
        "Deduplication within the watermark",
        "one event per key and window, as soon as the first comes; state lives as long as the watermark allows",
        "the event that came first",
        "append",
        needs=("key",),
        late="event",
        drops_counted="rows",
        needs_watermark=True,
        features=("deduplication within the watermark",),
    ),
    Query(
        "custom_windows",
        "Custom windows (health monitoring)",
        "events and failures per key: an event is in its window, a failure also in the next three",
        "every event of the key in the window",
        "append",
        needs=("key", "value", "mark"),
        drops_counted="groups",
        spans=4,
        marked="failures",
        features=("custom windows", "sliding window"),
    ),
    Query(
        "chained_windows",
        "Chained windows",
        "largest value per key and window, then their sum over all keys and two windows at a time",
        "every event in both windows",
        "append",
        needs=("key", "value"),
        drops_counted="groups",
        features=("chained aggregations", "per-operator watermarks"),
    ),
    Query(
        "incremental_join",
        "Incremental join (auctions with their sellers)",
        "pairs of a person and an auction of the same key less than a window apart, each as soon as both have come",
        "both events of the pair",
        "append",
        needs=("key", "value", "mark"),
        late="event",
        drops_counted="rows",
        rocksdb=True,
        marked="persons",
        features=("incremental join", "transformWithState", "event-time timer"),
    ),
)


def registry() -> tuple[Query, ...]:
    """All queries."""
    from streamgauge.workloads import nexmark

    return (*REGISTRY, *nexmark.QUERIES)


def find(name: str, where: str = "query") -> Query:
    """The query of this name. Raises UserError naming those that exist."""
    for query in registry():
        if query.name == name:
            return query
    known = _list([query.name for query in REGISTRY])
    raise UserError(f"{where}.query: found {name!r}, allowed: {known}, nexmark.q0 to nexmark.q23")


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
