"""Facts of what a stage has made, for the events of Airflow's assets: counts, sha256, rate, verdict, page."""

from __future__ import annotations

from typing import Any

from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.run_summary import search_of
from streamgauge.catalog.stages import Stage
from streamgauge.config import Cell

#: of what the job has recorded of its end
_OF_OUTCOME = ("key", "reused", "page", "verdict")
#: of an artifact's manifest
_OF_MANIFEST = ("events", "sha256", "target_out_of_order", "achieved_out_of_order")
#: of search.json
_OF_SEARCH = ("sustainable_rate_events_per_s", "interval", "constraint", "proven", "correct", "claim")


def facts(store: Store, log: RunLog, stage: Stage, scope: dict[str, str]) -> dict[str, Any]:
    """Returns the facts of the stage's last attempt in this run; unknown ones are left out."""
    record = log.latest(stage.name, **scope)
    known: dict[str, Any] = {"run": log.path.name, **scope}
    outcome = record.outcome if record else {}
    known |= _some(outcome, _OF_OUTCOME)
    if outcome.get("key"):
        artifact = store.find(outcome["artifact"], outcome["key"])
        known |= _some(artifact.manifest if artifact else {}, _OF_MANIFEST)
    if stage.name == "search":
        known |= _some(search_of(log.path / "cells" / Cell(**scope).name).to_json(), _OF_SEARCH)
    return known


def _some(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if record.get(name) is not None}
