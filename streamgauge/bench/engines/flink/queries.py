"""Queries on Flink: for each, who answers it, and the columns of its answer.

`code` is a class of java/streamgauge/. For `Sql` the text is in sql/, under the query's name, or in the package that
registers the query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS
from streamgauge.bench.driver.system import Unsupported
from streamgauge.bench.workloads import Spec, find
from streamgauge.records.advice import ANSWERS
from streamgauge.records.rules import Counted, EngineRules, Pace, Rules
from streamgauge.streams.advice.lines import sql as interval

_TEXTS = Path(__file__).parent / "sql"
SQL = "Sql"
#: Flink's own `pipeline.auto-watermark-interval`
WATERMARK_US = 200_000
#: each queue has a watermark of its own, of which an operator follows the least
RULES = Rules(clock="least queue", pace=Pace("interval", WATERMARK_US, step_us=1000))
#: an interval join drops what is older than Flink's watermark, which is a millisecond below ours (IntervalJoinOperator)
ANY_QUERY = EngineRules(
    "Flink",
    {**dict.fromkeys(ANSWERS, RULES), "join": replace(RULES, delay_us=1000)},
    revises=True,
    window_bytes=98,  # in a checkpoint: .venv/bin/python -m benchmarks.state
)


@dataclass(frozen=True)
class Answer:
    code: str
    columns: tuple[str, ...]
    late_counted: Counted = "rows"  # in SQL by Flink's own counters, else by our reports


_WINDOW = ("window_start", "window_end")
_COUNTS = tuple(
    f"{rank}_{what}" for what in ("bids", "bidders", "auctions") for rank in ("total", "rank1", "rank2", "rank3")
)
_BID = ("auction", "bidder", "price")
_PAIR = (*_WINDOW, "key", "left_seq", "right_seq", "left_value", "right_value")
_sql = partial(Answer, SQL)
_windows = partial(Answer, late_counted="events in no window")

#: the one table: query -> implementation
QUERIES = {
    "discard": Answer("Discard", ("seq", "event_time")),
    "passthrough": Answer("Passthrough", ("seq", "event_time")),  # and key and value, if the workload names them
    "windowed_aggregation": _windows("WindowedAggregation", (*_WINDOW, "key", "events", "total", "mean")),
    "windowed_join": _windows("WindowedJoin", _PAIR),
    "outer_join": _windows("WindowedJoin$Outer", _PAIR),
    "top_n": _windows("TopN", (*_WINDOW, "key", "rank", "value", "seq")),
    "sessions": _windows("Sessions", (*_WINDOW, "key", "events", "total")),
    "deduplication": Answer("Deduplication", (*_WINDOW, "key")),
    "custom_windows": _windows("CustomWindows", (*_WINDOW, "key", "events", "failures")),
    "chained_windows": _sql((*_WINDOW, "groups", "total")),
    "incremental_join": Answer("IncrementalJoin", ("key", "person_seq", "auction_seq")),
    "nexmark.q0": Answer("Nexmark$Q0", (*_BID, "channel", "url", "event_ts", "extra")),
    "nexmark.q1": _sql((*_BID, "event_ts", "extra")),
    "nexmark.q2": _sql(("auction", "price")),
    "nexmark.q3": _sql(("name", "city", "state", "id")),
    "nexmark.q4": Answer("Sales$Q4", ("category", "sales", "total", "average")),
    "nexmark.q5": _windows("Nexmark$Q5", (*_WINDOW, "auction", "bids")),
    "nexmark.q6": Answer("Sales$Q6", ("seller", "auction", "sales", "average")),
    "nexmark.q7": _windows("Nexmark$Q7", (*_WINDOW, "price", "auction", "bidder", "bid_ts")),
    "nexmark.q8": _windows("Nexmark$Q8", (*_WINDOW, "id", "name", "auctions")),
    "nexmark.q9": Answer("Winners$Q9", ("auction", "seller", "category", "expires", "bidder", "price", "at_us")),
    "nexmark.q11": _windows("Sessions", (*_WINDOW, "bidder", "bids")),
    "nexmark.q12": _sql(("bidder", "bids")),
    "nexmark.q13": _sql((*_BID, "event_ts", "value")),
    "nexmark.q14": _sql((*_BID, "event_ts", "extra", "c_counts", "bid_time_type")),
    "nexmark.q15": _sql(("day", *_COUNTS)),
    "nexmark.q16": _sql(("channel", "day", "minute", *_COUNTS)),
    "nexmark.q17": _sql(
        ("auction", "day", *_COUNTS[:4], "min_price", "max_price", "avg_price", "sum_price"),
    ),
    "nexmark.q18": _sql(("bidder", "auction", "at_us", "seq", "price", "channel", "url", "extra")),
    "nexmark.q19": Answer("TopBids", ("auction", "place", "revision", "price", "at_us", "seq", "bidder", "extra")),
    "nexmark.q20": _sql(
        (
            *(f"b_{name}" for name in (*_BID, "channel", "url", "extra", "event_ts")),
            *(f"a_{name}" for name in ("name", "description", "initial_bid", "reserve", "expires", "seller")),
            *("a_category", "a_event_ts"),
        )
    ),
    "nexmark.q21": _sql((*_BID, "channel", "channel_id")),
    "nexmark.q22": _sql((*_BID, "channel", "dir1", "dir2", "dir3")),
    "nexmark.q23": _sql(
        (
            *(f"b_{name}" for name in ("seq", *_BID, "channel", "url", "event_ts")),
            *("a_name", "a_category", "a_seller", "p_name", "p_city", "p_state"),
        )
    ),
}
#: queries that Flink is not asked here, and why
REFUSED = {"nexmark.q10": "it writes files, which the measuring sink does not see"}


def answer(query: str) -> Answer:
    """Returns how Flink answers a query; one that a package registers is answered in SQL."""
    return QUERIES.get(query) or Answer(SQL, find(query).results)


def rules(spec: Spec) -> Rules:
    """Flink's late rules for a query, and what is counted as late."""
    counted = answer(spec.query).late_counted
    return replace(RULES, operators=spec.operators(), delay_us=spec.watermark_ms * 1000, late_counted=counted)


def check(system: str, spec: Spec) -> None:
    """Raises UserError for a query that Flink is not asked here, and for windows finer than SQL's milliseconds."""
    where = f"systems.{system}.engine"
    if why := REFUSED.get(spec.query) or _lacks(spec):
        raise Unsupported(f"{where}: flink has no {spec.query}", why)
    if answer(spec.query).code == SQL and spec.window_us % 1000:
        raise UserError(f"{where}: windows in flink's SQL are whole milliseconds; {spec.query} has finer ones")


def _lacks(spec: Spec) -> str | None:
    """Says what a package's query lacks for Flink; None if it lacks nothing."""
    query = find(spec.query)
    if spec.query in QUERIES:
        return None
    if not query.results:
        return "its package does not name the columns of its answer (results)"
    if spec.slide_us is not None:
        return "its windows slide, for which the text of a package's query has no parameter"
    if query.late == "session":
        return "its sessions would be in SQL, of which Flink does not count the late events"
    try:
        query.code_for("flink", "")
    except UserError as problem:
        return str(problem)
    return None


def sql(spec: Spec) -> str | None:
    """The text that Flink is asked; None for a query in code."""
    if answer(spec.query).code != SQL:
        return None
    query = find(spec.query)
    if spec.query in QUERIES:
        text = (_TEXTS / f"{spec.query.replace('.', '/')}.sql").read_text()
    else:
        text = query.text(query.code_for("flink", ""))
    return text.format(
        window=interval(spec.window_us * PS["us"]),
        two_windows=interval(2 * spec.window_us * PS["us"]),
        offset=interval(spec.offset_us * PS["us"]),
        window_us=spec.window_us,
    )


def in_time(spec: Spec) -> bool:
    """True if events below the watermark are left out before anything else: no operator of Flink's would do it."""
    return find(spec.query).late == "event"


def joins_in_sql(query: str) -> bool:
    """True for SQL's interval join, which takes a watermark below zero for zero (RowTimeIntervalJoin)."""
    return answer(query).code == SQL and find(query).rule.kind == "bounded"


def drops_in_sql(query: str) -> bool:
    """True if an operator of SQL drops late rows, of which then only Flink's own counters know."""
    return answer(query).code == SQL and find(query).late == "window"


def columns(spec: Spec) -> tuple[str, ...]:
    """The source's columns that the query reads."""
    named = (name for name in (spec.key, spec.value) if name is not None)
    return tuple(dict.fromkeys((*find(spec.query).columns, *named)))


def results(spec: Spec) -> tuple[str, ...]:
    """The columns of the answer, in the order in which the Java part makes them."""
    names = answer(spec.query).columns
    if spec.query == "passthrough":
        return names + columns(spec)
    return tuple(name for name in names if spec.value is not None or not name.endswith("_value"))
