"""Derives what a system can do from the rows of suites that ran, never from a list kept by hand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamgauge.bench import workloads
from streamgauge.bench.workloads.nexmark.queries import QUERIES

HARD = (
    "custom_windows", "chained_windows", "sessions", "deduplication", "outer_join", "top_n", "incremental_join",
)  # fmt: skip
#: the suite's queries, named as in the rows
SUITE = tuple(query.name.removeprefix("nexmark.") for query in QUERIES)
#: from best to worst: a feature is as good as the worst of its queries
STATES = ("works", "unchecked", "not run", "unsupported", "wrong")


def capabilities(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Lists the status and its reason for every query, and for every feature, per system and mode.

    The last row of each query, system, mode and disorder counts; a status is one of STATES.
    rows: query (one of SUITE or HARD), mode, status, why, system, disorder_percent.
    """
    last = {_key(row): row for row in rows}
    queries: dict[tuple[str, str, str], dict[str, Any]] = {}
    features: dict[tuple[str, str, str], dict[str, Any]] = {}
    for (name, system, mode, _), row in last.items():
        state = {"correct": "works"}.get(row["status"], row["status"])
        if state == "unchecked" and row.get("rows", 0) is None:  # it was not answered in time
            state = "not run"
        _merge(queries, (name, system, mode), "query", state, row.get("why"))
        for feature in workloads.find(name).features:
            _merge(features, (feature, system, mode), "feature", state, f"{name}: {row.get('why')}")
    return {"queries": list(queries.values()), "features": list(features.values())}


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, float]:
    name = row["query"] if row["query"] in HARD else f"nexmark.{row['query']}"
    return name, row["system"], row["mode"], row["disorder_percent"]


def _merge(
    cells: dict[tuple[str, str, str], dict[str, Any]], key: tuple[str, str, str], what: str, state: str, why: str | None
) -> None:
    """Keeps the worst state, and its reason."""
    cell = cells.setdefault(key, {what: key[0], "system": key[1], "mode": key[2], "status": "works", "why": None})
    if STATES.index(state) > STATES.index(cell["status"]):
        cell |= {"status": state, "why": why}
