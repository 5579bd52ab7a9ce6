"""The page that lists all runs of an artifacts folder, the newest first, each with a link to its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamgauge.catalog import run_summary
from streamgauge.catalog.artifacts import Store
from streamgauge.results.report.blocks import Block, Cell, Hole, Note, Outcome, Section, State, Table, Text
from streamgauge.results.report.layout import fill

_STATES: dict[str, State] = {"done": "good", "failed": "bad"}
_PAGES = {"index.html": "results", "release.html": "release check", "disorder.html": "cost of disorder"}
DASHBOARD = "dashboard.html"


def render(store: Store) -> str:
    """Renders the list from the records of all runs; its links are relative to the artifacts folder."""
    summaries = [(path, one) for path in store.runs() if (one := run_summary.summary(path))]
    summaries.sort(key=lambda pair: str(pair[1]["started_at"]), reverse=True)
    rows: list[list[Cell]] = [row for path, one in summaries for row in _rows(path, one)]
    runs: Block = Table(["run", "began (UTC)", "stages", "figures", "page"], rows, cards=True)
    if not rows:
        runs = Hole("Runs", "none has begun here yet; `streamgauge run` or a DAG of Airflow makes one")
    nights = [Note("All nights, and what has changed", DASHBOARD)] if (store.root / DASHBOARD).exists() else []
    state: State = "good" if rows else "open"
    noun = "run" if len(summaries) == 1 else "runs"
    outcome = Outcome("plain" if rows else state, f"{len(summaries)} {noun}", [])
    return fill("Runs", "", [str(store.root)], outcome, [Section("runs", "Runs", blocks=[*nights, runs])])


def _rows(path: Path, one: dict[str, Any]) -> Iterator[list[Cell]]:
    """A row for each page of the run, or one without a link."""
    states = ", ".join(f"{count} {state}" for state, count in one["stages"].items())
    worst: State = next((_STATES.get(state, "open") for state in one["stages"] if state != "done"), "good")
    began = str(one["started_at"])[:16].replace("T", " ")
    pages = [name for name in _PAGES if (path / name).exists()]
    links: list[Cell] = [Text(_PAGES[name], href=f"runs/{path.name}/{name}") for name in pages]
    for link in links or [None]:
        yield [Text(path.name, code=True), began, Text(states, worst), one["figures"], link]
