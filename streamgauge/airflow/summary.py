"""The end of a run on the terminal: what each stage did, and which disorder each stream got."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamgauge.artifacts import Store
from streamgauge.config import Benchmark
from streamgauge.runs import RunLog
from streamgauge.stages import STAGES, Scope

COLOUR = {"done": "green", "failed": "red", "started": "yellow"}


def show(benchmark: Benchmark, store: Store, run_log: RunLog, console: Console | None = None) -> None:
    """Prints two tables from the run's records and the streams' manifests."""
    console = console or Console()
    console.print(_stages(benchmark, run_log))
    console.print(_streams(benchmark, store, run_log))


def _stages(benchmark: Benchmark, run_log: RunLog) -> Table:
    """Every stage that the benchmark has, also those that a failure before them kept from running."""
    table = Table("stage", "of", "state", "seconds", "note", title="Stages")
    for stage in STAGES:
        for scope in _scopes(benchmark, stage.scope):
            name = " ".join(scope.values())
            last = run_log.latest(stage.name, **scope)
            if last is None:
                table.add_row(stage.name, name, "[yellow]not run[/]", "", "")
                continue
            note = last.error or ("reused" if last.outcome.get("reused") else "")
            seconds = "" if last.seconds is None else f"{last.seconds:.1f}"
            table.add_row(stage.name, name, f"[{COLOUR[last.state]}]{last.state}[/]", seconds, escape(note))
    return table


def _scopes(benchmark: Benchmark, scope: Scope) -> list[dict[str, str]]:
    if scope == "benchmark":
        return [{}]
    if scope == "experiment":
        return [{"experiment": experiment.name} for experiment in benchmark.experiments]
    return [cell.model_dump() for cell in benchmark.all_cells()]


def _streams(benchmark: Benchmark, store: Store, run_log: RunLog) -> Table:
    table = Table("experiment", "target", "out of order", "achieved", "events", "sha256", title="Streams")
    for experiment in benchmark.experiments:
        made = run_log.latest("generate", experiment=experiment.name)
        stream = store.find("stream", made.outcome["key"]) if made and made.state == "done" else None
        target = f"{experiment.target_percent:g} %"
        if stream is None:
            table.add_row(experiment.name, target, "", "not made", "", "")
            continue
        found = stream.manifest
        events, out = found["events"], found["achieved_out_of_order"]
        percent = f"{100 * out / events:.4g} %" if events else ""
        table.add_row(experiment.name, target, str(out), percent, str(events), found["sha256"][:16])
    return table
