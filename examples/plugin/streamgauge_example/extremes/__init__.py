"""The query `example.extremes`: its question, and its code for each engine, stand in this folder."""

from __future__ import annotations

from streamgauge.bench.workloads import Query

EXTREMES = Query(
    "example.extremes",
    "Extremes",
    "smallest and largest value per key and window",
    "every event of the key in the window",
    needs=("key", "value"),
    late="window",
    groups_first=True,
    features=("windowed aggregation",),
    package=__name__,
    question="question.sql",
    code={"spark": f"{__name__}.spark:query", "flink": "flink.sql"},
    results=("window_start", "window_end", "key", "smallest", "largest"),
)
