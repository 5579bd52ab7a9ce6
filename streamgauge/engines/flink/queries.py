"""Queries that the Flink part answers (java/streamgauge/Job.java), with the columns of their results."""

from __future__ import annotations

from streamgauge.base.errors import UserError
from streamgauge.workloads import Spec, find

WINDOW = ("window_start", "window_end")
RESULTS: dict[str, tuple[str, ...]] = {
    "discard": ("seq", "event_time"),
    "passthrough": ("seq", "event_time"),  # and key and value, if the workload names them
    "windowed_aggregation": (*WINDOW, "key", "events", "total", "mean"),
    "nexmark.q0": ("auction", "bidder", "price", "channel", "url", "event_ts", "extra"),
    "nexmark.q5": (*WINDOW, "auction", "bids"),
    "nexmark.q7": (*WINDOW, "price", "auction", "bidder", "bid_ts"),
    "nexmark.q8": (*WINDOW, "id", "name", "auctions"),
}


def check(system: str, spec: Spec) -> None:
    """Raises UserError for a query that the Flink part does not have, and for windows finer than a millisecond."""
    if spec.query not in RESULTS:
        raise UserError(f"systems.{system}.engine: flink has no {spec.query}; allowed: {', '.join(RESULTS)}")
    if spec.window_us % 1000 or spec.step_us % 1000:
        raise UserError(f"systems.{system}.engine: flink's windows are whole milliseconds; {spec.query} has finer ones")


def columns(spec: Spec) -> tuple[str, ...]:
    """The source's columns that the query reads."""
    named = (name for name in (spec.key, spec.value) if name is not None)
    return tuple(dict.fromkeys((*find(spec.query).columns, *named)))


def results(spec: Spec) -> tuple[str, ...]:
    """The columns of the answer, in the order in which the Java part makes them."""
    return RESULTS[spec.query] + (columns(spec) if spec.query == "passthrough" else ())
