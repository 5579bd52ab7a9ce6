"""Thirty simulated nights: two systems, a 12 % slower one from night 20 on, an output that never changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from tests.index import example

CHANGE, MISSED = 20, 9
LATENCY, CPU, RATE, OUTPUT = (
    ("event_latency_ms_p99_at_80pct", "ms"),
    ("system_cpu_us_per_event_at_80pct", "us"),
    ("sustainable_rate_events_per_s", "events/s"),
    ("output_rows", "rows"),
)


def thirty_nights(artifacts: Path, queries: int = 3, nights: int = 30) -> None:
    """Night 9 did not run; one figure of night 14 is void."""
    random = np.random.default_rng(42)
    begin = datetime(2026, 4, 1, 2, tzinfo=UTC)
    for night in range(nights):
        if night == MISSED:
            continue
        run_id, found = f"night-{night:02}", []
        for query in range(queries):
            for system, mode in (("spark-4.3", "micro-batch"), ("spark-4.2", "micro-batch")):
                for (metric, unit), level in zip((LATENCY, CPU, RATE), (400, 2.5, 80_000), strict=True):
                    slower = query == 0 and system == "spark-4.3" and metric == LATENCY[0] and night >= CHANGE
                    value = level * float(np.exp(random.normal(0, 0.02))) * (1.12 if slower else 1.0)
                    found.append((f"q{query}", system, mode, metric, unit, value))
                found.append((f"q{query}", system, mode, *OUTPUT, 12_345.0))
        results = [
            example.result(
                run_id, value, workload=query, system=system, mode=mode, metric=metric, unit=unit,
                at=(begin + timedelta(days=night)).isoformat(), software={"spark": "4.3.0"},
                **(
                    {"valid": False, "reason": "the driver slipped"}
                    if night == 14 and query == "q1" and metric == LATENCY[0]
                    else {}
                ),
            )
            for query, system, mode, metric, unit, value in found
        ]  # fmt: skip
        example.run(artifacts, run_id, *results)
