"""Runs with results, as stages leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import select

from streamgauge.catalog import results
from streamgauge.records.judgement import Acceptance, Judgement
from streamgauge.records.result import Result
from streamgauge.results.index.database import judgements, points, series
from streamgauge.results.index.result_index import Index, Row

MACHINE = {"cpu": "Example 1", "cores": 2, "memory_gib": 24.0, "os": "Linux 6.1"}
ACCEPTED = Acceptance(reason="a safer disk", author="Ada", at="2026-03-02T09:00:00+00:00")


def result(run_id: str, value: float | None = 100.0, **more: Any) -> Result:
    fields: dict[str, Any] = {
        "benchmark": "flights", "experiment": "late20", "workload": "sums", "system": "spark", "mode": "streaming",
        "metric": "event_latency_ms_p99", "unit": "ms", "value": value, "run_id": run_id, "config_hash": "c0ffee",
        "at": "2026-03-01T02:00:00+00:00", "machine": MACHINE, "software": {"spark": "4.3.0"},
    }  # fmt: skip
    return Result(**{**fields, **more})


def run(artifacts: Path, name: str, *found: Result) -> Path:
    path = artifacts / "runs" / name
    path.mkdir(parents=True, exist_ok=True)
    for one in found:
        results.append(path, one)
    return path


def dump(index: Index) -> dict[str, list[Row]]:
    """Rows of each table in the order of the key: equal indexes give equal dumps."""
    tables = (series, points, judgements)
    return {table.name: index._all(select(table).order_by(*table.primary_key)) for table in tables}


def judgement_rows(index: Index, key: str | None = None) -> list[Row]:
    """Rows of the judgements, of one series if a key is given, without the looks of nights."""
    rows = dump(index)["judgements"]
    return [row for row in rows if row["outcome"] != "look" and key in (None, row["series_key"])]


def three_runs(artifacts: Path) -> list[Path]:
    """Two nights and another machine; a void figure, a missing one, the same one twice, a judgement."""
    rate = {"metric": "sustainable_rate_events_per_s", "unit": "events/s"}
    one = run(
        artifacts, "night1", result("night1"), result("night1"), result("night1", 5e4, low=4e4, high=None, **rate)
    )
    two = run(
        artifacts, "night2",
        result("night2", 110.25, at="2026-03-02T02:00:00+00:00", software={"spark": "4.3.1"}),
        result("night2", None, at="2026-03-02T02:10:00+00:00", valid=False, reason="wrong answer: é 'x'", **rate),
    )  # fmt: skip
    other = run(artifacts, "other", result("other", machine={**MACHINE, "cores": 8}, at="2026-03-02T03:00:00+00:00"))
    results.judge(two, Judgement("night2", "0" * 16, "2026-03-02T02:00:00+00:00", "accepted", 0.1, ACCEPTED))
    return [one, two, other]
