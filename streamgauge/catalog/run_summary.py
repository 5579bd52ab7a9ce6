"""Summarises a run from its records: how its stages ended, how many figures it has, and whether it has a page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog, StageRecord

PAGE = "index.html"


def last_attempts(path: Path) -> list[StageRecord]:
    """The last attempt at each stage of a run, in the order of their starts."""
    found = {(stage.stage, *stage.scope.items()): stage for stage in RunLog(path).stages()}
    return sorted(found.values(), key=lambda stage: stage.started_at)


def summary(path: Path) -> dict[str, Any] | None:
    """Summary of a run; None if nothing of it is recorded.

    Keys: run, started_at, stages (state -> count), figures (count of valid ones), page (path or None).
    """
    stages = last_attempts(path)
    if not stages:
        return None
    states = Counter("running or killed" if stage.state == "started" else stage.state for stage in stages)
    page = path / PAGE
    return {
        "run": path.name,
        "started_at": stages[0].started_at,
        "stages": dict(states),
        "figures": sum(one.valid for one in results.read(path)),
        "page": str(page) if page.exists() else None,
    }
