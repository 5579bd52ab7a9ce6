"""The page's section on the Nexmark suite and the hard queries.

It shows what works, what does not and why, the slowest queries, and every answer with its size and hash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from streamgauge.bench.answers.capabilities import HARD, SUITE, capabilities
from streamgauge.bench.answers.systems import asked
from streamgauge.records.answers import AnswerLine
from streamgauge.results.report.blocks import Block, Cell, Section, State, Table, Text, attempt, count, number
from streamgauge.results.report.degrees import out_of_order_percent
from streamgauge.results.report.run_records import Json, Records

SLOWEST = 8
MODES = ("batch", "streaming")
_MARK: dict[str, State] = {"works": "good", "correct": "good", "unchecked": "open", "not run": "open"}


def expected(records: Records) -> list[Json]:
    """Rows for all answers that the stage nexmark should leave, each with the reason why the answer is missing."""
    system = asked(records.benchmark)[0].name
    percents = {s.experiment.name: out_of_order_percent(s) for s in records.streams}
    return [
        {
            "query": query, "mode": mode, "system": system, "status": "not run", "why": records.why(status),
            "disorder_percent": percents[status.scope["experiment"]],
        }
        for status in records.suites
        for mode in MODES
        for query in (*(records.benchmark.suite.queries or SUITE), *HARD)
    ]  # fmt: skip


def section(rows: Sequence[Json], wanted: Sequence[Json] = ()) -> Section:
    """Builds the section from the rows of nexmark.jsonl; a row of `wanted` stands in for one that is missing there."""
    lead = (
        "The queries of the online auction and the hard queries: in batch against DuckDB, in streaming against batch "
        "minus the rows that the run's logs show as late."
    )
    last = list({_key(row): row for row in (*wanted, *rows)}.values())
    first = last[0]["system"]
    blocks: list[Block] = [
        *matrices(last),
        attempt("Slowest queries", _slowest, [row for row in last if row["system"] == first]),
        *(
            attempt("Answers", _answers, list(some), system, percent, system != first)
            for (system, percent), some in groupby(
                sorted(last, key=lambda row: (row["system"] != first, *_which(row))), _which
            )
        ),
    ]
    return Section("nexmark", "Nexmark", lead, blocks)


def _which(row: Json) -> tuple[str, float]:
    return row["system"], row["disorder_percent"]


def matrices(rows: Sequence[Json]) -> list[Block]:
    """Tables of what each system can do, by feature and by query, and of why the rest does not work."""
    matrix = capabilities(AnswerLine.of(row, "nexmark.jsonl") for row in rows).to_json()
    bad = [cell for cell in matrix["queries"] if cell["status"] != "works"]
    return [
        attempt("Capabilities by feature", _matrix, matrix["features"], "feature"),
        attempt("Capabilities by query", _matrix, matrix["queries"], "query"),
        *([attempt("What does not work", _reasons, bad)] if bad else []),
    ]


def _key(row: Json) -> tuple[str, str, str, float]:
    return row["system"], row["query"], row["mode"], row["disorder_percent"]


def _matrix(cells: list[Json], what: str) -> Table:
    """Table with a row per query or feature and a column per system."""
    systems = list(dict.fromkeys(cell["system"] for cell in cells))
    found: dict[str, dict[str, list[Json]]] = {}
    for cell in cells:
        found.setdefault(cell[what], {}).setdefault(cell["system"], []).append(cell)
    rows: list[list[Cell]] = [
        [name.removeprefix("nexmark."), *(_modes(of[system]) if system in of else None for system in systems)]
        for name, of in found.items()
    ]
    return Table([what, *systems], rows, f"Supported in batch and in streaming, by {what}")


def _modes(cells: list[Json]) -> Text:
    """Status in both modes if it is the same, else a status with its mode: "unsupported in streaming"."""
    told = [cell for cell in cells if cell["status"] != "works"] or cells
    both = len(told) == len(MODES) and len({cell["status"] for cell in told}) == 1
    text = told[0]["status"] if both else ", ".join(f"{cell['status']} in {cell['mode']}" for cell in told)
    marks = {_MARK.get(cell["status"], "bad") for cell in told}
    state: State = "bad" if "bad" in marks else "open" if "open" in marks else "good"
    return Text(text, state, hint="; ".join(cell["why"] for cell in told if cell.get("why")))


def _reasons(cells: list[Json]) -> Table:
    """Table of what does not work; queries with the same reason share a row. Long names may break at dots and "_"."""
    alike: dict[tuple[Any, ...], list[str]] = {}
    for cell in cells:
        key = cell["system"], cell["mode"], cell["status"], cell.get("why")
        alike.setdefault(key, []).append(cell["query"].removeprefix("nexmark."))
    rows: list[list[Cell]] = [
        [", ".join(queries), system, mode, _status(status, None), re.sub(r"(?<=[._])", "\u200b", why or "")]
        for (system, mode, status, why), queries in alike.items()
    ]
    return Table(["query", "system", "mode", "status", "why"], rows, "What does not work", cards=True)


def _slowest(rows: list[Json]) -> Table:
    done = sorted((row for row in rows if row.get("seconds")), key=lambda row: -float(row["seconds"]))[:SLOWEST]
    cells: list[list[Cell]] = [
        [row["query"], row["mode"], _percent(row), number(row["seconds"], "s"), count(row.get("events_per_s"))]
        for row in done
    ]
    return Table(["query", "mode", "out of order", "time", "events/s"], cells, "Slowest queries")


def _answers(rows: list[Json], system: str, percent: float, fold: bool) -> Table:
    cells: list[list[Cell]] = [
        [
            row["query"],
            row["mode"],
            _status(row["status"], row.get("why")),
            count(row.get("rows")),
            count(row.get("output_bytes")),
            Text((row.get("hash") or "")[:12], code=True, hint=row.get("hash") or ""),
            number(row.get("seconds"), "s"),
            count(row.get("events_per_s")),
            _late(row),
        ]
        for row in rows
    ]
    columns = ["query", "mode", "status", "rows", "bytes", "hash", "time", "events/s", "late / dropped"]
    caption = f"Answers of {system}, {percent:g}\u202f% out of order"
    return Table(columns, cells, "" if fold else caption, cards=True, folded=caption if fold else "")


def _status(status: str, why: str | None) -> Text:
    return Text(status, _MARK.get(status, "bad"), hint=why or "")


def _late(row: Json) -> Text:
    """Number of late drops expected / number that the engine reported."""
    told = f"{count(row.get('late_drops_expected'))} / {count(row.get('late_drops_reported'))}"
    return Text(told, hint=f"counted in {row.get('late_drops_counted_in') or 'none'}")


def _percent(row: Json) -> str:
    return f"{row['disorder_percent']:g}\u202f%"
