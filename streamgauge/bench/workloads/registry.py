"""The registry of queries: each has a row here or in nexmark/queries.py, and a file with its question in SQL.

An installed package may register more (docs/plugins.md).
"""

from __future__ import annotations

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import Parts
from streamgauge.bench.workloads.nexmark.queries import QUERIES
from streamgauge.bench.workloads.query import Query

REGISTRY = (
    Query(
        "passthrough",
        "Pass-through",
        "every event, unchanged",
        "the event itself",
        late="never",
        line=True,
        features=("projection",),
    ),
    Query(
        "discard",
        "Discard",
        "no event: all are read, and none is answered",
        "none",
        late="never",
    ),
    Query(
        "windowed_aggregation",
        "Keyed windowed aggregation",
        "count, sum and mean of the value per key and window (Karimov et al., ICDE 2018)",
        "every event of the key in the window",
        needs=("key", "value"),
        slides=True,
        groups_first=True,
        features=("windowed aggregation",),
    ),
    Query(
        "windowed_join",
        "Windowed join",
        "pairs of one event of each half of the stream with equal key in the same window (Karimov et al., ICDE 2018)",
        "both events of the pair",
        needs=("key",),
        streams=2,
        slides=True,
        features=("stream-stream join",),
    ),
    Query(
        "outer_join",
        "Stream-stream outer join",
        "the windowed join, and each event of the left half that met none of the right, once its window ends",
        "both events of the pair, or the one that met none",
        needs=("key",),
        streams=2,
        slides=True,
        features=("stream-stream outer join",),
    ),
    Query(
        "top_n",
        "Top N",
        "the `top` largest values per key and window, the earlier event first among equals",
        "every event of the key in the window",
        needs=("key", "value"),
        slides=True,
        groups_first=True,
        features=("top N per window",),
    ),
    Query(
        "sessions",
        "Sessions",
        "count and sum of the value per key and session; a session ends with a gap of one window",
        "every event of the session",
        needs=("key", "value"),
        late="session",
        groups_first=True,
        features=("session window",),
    ),
    Query(
        "deduplication",
        "Deduplication within the watermark",
        "one event per key and window, as soon as the first comes; state lives as long as the watermark allows",
        "the event that came first",
        needs=("key",),
        late="event",
        needs_watermark=True,
        features=("deduplication within the watermark",),
    ),
    Query(
        "custom_windows",
        "Custom windows (health monitoring)",
        "events and failures per key: an event is in its window, a failure also in the next three",
        "every event of the key in the window",
        needs=("key", "value", "mark"),
        spans=4,
        marked="failures",
        groups_first=True,
        features=("custom windows", "sliding window"),
    ),
    Query(
        "chained_windows",
        "Chained windows",
        "largest value per key and window, then their sum over all keys and two windows at a time",
        "every event in both windows",
        needs=("key", "value"),
        groups_first=True,
        features=("chained aggregations", "per-operator watermarks"),
    ),
    Query(
        "incremental_join",
        "Incremental join (auctions with their sellers)",
        "pairs of a person and an auction of the same key less than a window apart, each as soon as both have come",
        "both events of the pair",
        needs=("key", "value", "mark"),
        late="event",
        marked="persons",
        own_state=True,
        features=("incremental join", "transformWithState", "event-time timer"),
    ),
)


WORKLOADS = Parts("workloads", {query.name: query for query in (*REGISTRY, *QUERIES)})


def registry() -> tuple[Query, ...]:
    """Lists the project's queries, then those of installed packages. Raises UserError for one that cannot be had."""
    return tuple(find(name) for name in WORKLOADS.names())


def find(name: str, where: str = "query") -> Query:
    """The query of this name. Raises UserError naming those that exist."""
    key, place = f"{where}.query", WORKLOADS.outside(name)
    if name not in WORKLOADS.built_in and place is None:
        suite = [query.name for query in QUERIES]
        known = [known for known in WORKLOADS.names() if known not in suite]
        raise UserError(f"{key}: found {name!r}, allowed: {', '.join(known)}, {suite[0]} to {suite[-1]}")
    query = WORKLOADS.load(name, key)
    if not isinstance(query, Query):
        raise UserError(f"{key}: {place} is no Query of streamgauge.bench.workloads")
    if place is not None and not query.question:
        raise UserError(f"{key}: {name}: question is missing; name the file of its question in SQL")
    if query.name != name:
        raise UserError(f"{key}: {place} is named {query.name}, but registered as {name}")
    return query
