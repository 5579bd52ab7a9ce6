"""The end of a run on the terminal: what each stage did, and which disorder each stream got."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamgauge.artifacts import Store
from streamgauge.config import Benchmark
from streamgauge.runs import RunLog

COLOUR = {"done": "green", "failed": "red", "started": "yellow"}


def show(benchmark: Benchmark, store: Store, run_log: RunLog, console: Console | None = None) -> None:
    """Prints two tables from the run's records and the streams' manifests."""
    console = console or Console()
    console.print(_stages(run_log))
    console.print(_streams(benchmark, store, run_log))


def _stages(run_log: RunLog) -> Table:
    table = Table("stage", "of", "state", "seconds", "note", title="Stages")
    for stage in run_log.stages():
        note = stage.error or ("reused" if stage.outcome.get("reused") else "")
        seconds = "" if stage.seconds is None else f"{stage.seconds:.1f}"
        colour = COLOUR.get(stage.state, "")
        table.add_row(stage.stage, " ".join(stage.scope.values()), f"[{colour}]{stage.state}[/]", seconds, escape(note))
    return table


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
