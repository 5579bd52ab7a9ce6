"""The page that lists all runs of an artifacts folder, the newest first, each with a link to its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streamgauge.base.words import counted
from streamgauge.catalog import run_summary
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_summary import Summary
from streamgauge.results.report.blocks import Block, Cell, Hole, Note, Outcome, Section, State, Table, Text
from streamgauge.results.report.formatting import MISSING
from streamgauge.results.report.layout import fill

_STATES: dict[str, State] = {"done": "good", "failed": "bad"}
_PAGES = {"index.html": "results", "release.html": "release check", "disorder.html": "cost of disorder"}
DASHBOARD = "dashboard.html"


def render(store: Store) -> str:
    """Renders the list from the records of all runs; its links are relative to the artifacts folder.

    A run that cannot be read stands at the end, with the reason.
    """
    summaries = run_summary.summaries(store.runs())[::-1]
    rows = [row for one in summaries for row in _rows(store.root, one)]
    runs: Block = Table(["run", "began (UTC)", "stages", "figures", "page"], rows, cards=True)
    if not rows:
        runs = Hole("Runs", "none has begun here yet; `streamgauge run` or a DAG of Airflow makes one")
    nights = [Note("All nights, and what has changed", DASHBOARD)] if (store.root / DASHBOARD).exists() else []
    state: State = "good" if rows else "open"
    outcome = Outcome("plain" if rows else state, counted(len(summaries), "run"), [])
    return fill("Runs", "", [str(store.root)], outcome, [Section("runs", "Runs", blocks=[*nights, runs])])


def _rows(root: Path, one: Summary) -> Iterator[list[Cell]]:
    """A row for each page of the run, or one without a link."""
    states = ", ".join(f"{count} {state}" for state, count in one.stages.items())
    worst: State = next((_STATES.get(state, "open") for state in one.stages if state != "done"), "good")
    if one.problem:
        problem = one.problem.replace(f"{root}/", "")
        states, worst = "; ".join(filter(None, (states, f"not readable: {problem}"))), "bad"
    began = one.started_at[:16].replace("T", " ") if one.started_at else MISSING
    pages = [name for name in _PAGES if run_summary.has(root / "runs" / one.run, name)]
    links: list[Cell] = [Text(_PAGES[name], href=f"runs/{one.run}/{name}") for name in pages]
    for link in links or [None]:
        yield [Text(one.run, code=True), began, Text(states, worst), one.figures, link]
