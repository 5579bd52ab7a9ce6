"""The Nexmark suite: what works, every answer with its size and hash, and the slowest queries."""

from __future__ import annotations

from typing import Any

from streamgauge.report.blocks import Block, Cell, Section, Table, Text, attempt, count, number
from streamgauge.report.records import Json
from streamgauge.suite.capabilities import capabilities

SLOWEST = 8


def section(rows: list[Json]) -> Section:
    """rows: of nexmark.jsonl."""
    lead = (
        "The queries of the online auction in batch, against DuckDB, and in streaming, against batch without exactly "
        "what the run's own logs say came too late."
    )
    last = {(row["query"], row["mode"], row["system"], row["disorder_percent"]): row for row in rows}
    matrix = capabilities(rows)
    blocks: list[Block] = [
        attempt("Capabilities by feature", _matrix, matrix["features"], "feature"),
        attempt("Capabilities by query", _matrix, matrix["queries"], "query"),
        attempt("Slowest queries", _slowest, list(last.values())),
        attempt("Answers", _answers, list(last.values())),
    ]
    return Section("nexmark", "Nexmark", lead, blocks)


def _matrix(cells: list[Json], what: str) -> Table:
    """A row per query or feature, a column per system and mode."""
    columns = list(dict.fromkeys((cell["system"], cell["mode"]) for cell in cells))
    found: dict[str, dict[Any, Cell]] = {}
    for cell in cells:
        found.setdefault(cell[what], {})[cell["system"], cell["mode"]] = _status(cell["status"], cell.get("why"))
    rows: list[list[Cell]] = [[name, *(states.get(column) for column in columns)] for name, states in found.items()]
    return Table([what, *(f"{system}, {mode}" for system, mode in columns)], rows)


def _slowest(rows: list[Json]) -> Table:
    done = sorted((row for row in rows if row.get("seconds")), key=lambda row: -float(row["seconds"]))[:SLOWEST]
    cells: list[list[Cell]] = [
        [row["query"], row["mode"], _percent(row), number(row["seconds"], "s"), count(row.get("events_per_s"))]
        for row in done
    ]
    return Table(["query", "mode", "out of order", "time", "events/s"], cells)


def _answers(rows: list[Json]) -> Table:
    cells: list[list[Cell]] = [
        [
            row["query"],
            row["mode"],
            row["system"],
            _percent(row),
            _status(row["status"], row.get("why")),
            count(row.get("rows")),
            count(row.get("output_bytes")),
            Text(row.get("hash") or "", code=True),
            number(row.get("seconds"), "s"),
            count(row.get("events_per_s")),
            count(row.get("late_drops_expected")),
            count(row.get("late_drops_reported")),
            row.get("late_drops_counted_in"),
        ]
        for row in rows
    ]
    columns = ["query", "mode", "system", "out of order", "status", "rows", "bytes", "hash", "time", "events/s"]
    return Table([*columns, "late, expected", "late, reported", "counted in"], cells, cards=True)


def _status(status: str, why: str | None) -> Text:
    return Text(status, "good" if status in ("works", "correct") else "bad", hint=why or "")


def _percent(row: Json) -> str:
    return f"{row['disorder_percent']:g} %"
