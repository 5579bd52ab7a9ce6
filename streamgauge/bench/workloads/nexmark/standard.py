"""The parameters with which the suite asks its queries."""

from __future__ import annotations

from streamgauge.bench.workloads import Query, Spec
from streamgauge.bench.workloads.spec import DAY_US

SECOND_US = 1_000_000
WINDOW_US, SLIDE_US = 10 * SECOND_US, 5 * SECOND_US
#: how far apart in event time joined events may be
WAIT_US = 600 * SECOND_US


def standard(query: Query, watermark_ms: int = 5_000, wait_us: int = WAIT_US) -> Spec:
    """Parameters with which the suite asks a query."""
    window_us = wait_us if query.rule.kind == "bounded" else DAY_US if query.by_day else WINDOW_US
    return Spec(
        query.name,
        key=query.groups[0][0] if "key" in query.needs else None,
        window_us=window_us,
        slide_us=SLIDE_US if query.slides else None,
        watermark_ms=watermark_ms,
    )
