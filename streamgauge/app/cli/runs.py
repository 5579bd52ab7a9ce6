"""The commands runs, open, serve and export: what was run, two runs side by side, the pages, a bundle for a paper."""

from __future__ import annotations

import json
import re
import webbrowser
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, app, store_at, tell
from streamgauge.base.errors import UserError
from streamgauge.base.places import Remote
from streamgauge.base.shipped import INSTALL
from streamgauge.base.words import counted
from streamgauge.catalog import results, run_summary
from streamgauge.catalog.run_log import known_run
from streamgauge.catalog.run_summary import PAGE, comparisons, in_cpus, last_attempts, losses, summaries, summary
from streamgauge.records.result import Result

#: figures whose samples are blocks or readings of one process
_OF_ONE_PROCESS = re.compile(r"soak_|scaling_(rate|efficiency|cost_per_billion)_at_\d|scaling_(contention|coherency)$")
Run = Annotated[str, typer.Argument(help="a run's name; `streamgauge runs list` has them")]

runs = typer.Typer(no_args_is_help=True, help="List runs, show one, or compare the figures of two.")
app.add_typer(runs, name="runs")


@runs.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="largest number of runs; the newest ones are listed")] = 20,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """List runs, the oldest first: when each began, how its stages ended, and what it measured.

    Runs that cannot be read stand before the others, with the reason.
    """
    known = summaries(store_at(artifacts).runs())
    unreadable = [run for run in known if run.started_at is None]
    listed = [*unreadable, *known[len(unreadable) :][-limit:]]
    lines = []
    for run in listed:
        states = ", ".join(f"{count} {state}" for state, count in run.stages.items())
        measured = (
            f"{states}; {counted(run.figures, 'figure')}{'  page' if run.page else ''}  " if run.started_at else ""
        )
        problem = f"not readable: {run.problem}" if run.problem else ""
        lines.append(f"{(run.started_at or '?')[:19]:19}  {run.run}  {measured}{problem}".rstrip())
    lines.append(f"{counted(len(listed), 'run')} in {store_at(artifacts).root / 'runs'}")
    tell("\n".join(lines), {"runs": [asdict(run) for run in listed]}, as_json)


@runs.command()
def show(run: Run, artifacts: Artifacts = DEFAULT_ARTIFACTS, as_json: AsJson = False) -> None:
    """Show the stages of a run with their times and what made them fail, its figures, and its page."""
    path = known_run(store_at(artifacts).runs(), run)
    stages, figures = last_attempts(path), results.read(path)
    compared, lost, cpus = comparisons(path), losses(path), in_cpus(path)
    if as_json:
        shown = [stage.model_dump(mode="json", exclude={"version", "at", "environment"}) for stage in stages]
        facts = {**(asdict(known) if (known := summary(path)) else {}), "records": shown}
        facts["results"] = [vars(one) for one in figures]
        facts["lost_at_own_speed"] = {cell: vars(loss) for cell, loss in lost.items()}
        facts["disorder_in_cpus"] = {cell: one.model_dump(mode="json") for cell, one in cpus.items()}
        facts["comparisons"] = [one.model_dump(mode="json") for one in compared]
        typer.echo(json.dumps(facts))
        return
    for stage in stages:
        took = "" if stage.seconds is None else f"{stage.seconds:8.1f} s"
        scope = " ".join(stage.scope.values())
        typer.echo(f"{stage.state:8} {took:>10}  {stage.stage} {scope}{f': {stage.error}' if stage.error else ''}")
    for one in figures:
        typer.echo(f"{_name(one)}  {one.text}")
    for ratio in compared:
        typer.echo(f"{ratio.name}: {ratio.sentence}")
    for cell, cost in cpus.items():
        typer.echo(f"{cell}: {cost.sentence}")
    for cell, loss in lost.items():
        typer.echo(f"{cell}: {loss.sentence}")
    if (path / PAGE).exists():
        typer.echo(f"page: {path / PAGE}")


@runs.command()
def compare(before: Run, after: Run, artifacts: Artifacts = DEFAULT_ARTIFACTS, as_json: AsJson = False) -> None:
    """Show the figures that two runs share side by side, with their intervals.

    With one run on each side, a difference may be the noise between runs, so no ratio is formed.

    An interval of one process leaves out how much fresh processes differ.

    Use `streamgauge release-check` for a verdict.
    """
    one, other = (run_summary.figures(known_run(store_at(artifacts).runs(), name)) for name in (before, after))
    if not (shared := run_summary.shared(one, other)):
        raise UserError(_nothing_shared(before, after, artifacts))
    rows = [{"figure": " ".join(key), "before": _record(one[key]), "after": _record(other[key])} for key in shared]
    lines = [
        f"{' '.join(key)}  {_text(one[key])} → {_text(other[key])}"
        f"{'' if one[key].config_hash == other[key].config_hash else '  (other settings)'}"
        for key in shared
    ]
    if any(map(_is_of_one_process, (run[key] for key in shared for run in (one, other)))):
        lines.append("An interval of one process leaves out that fresh processes differ by several percent.")
    tell("\n".join(lines), {"before": before, "after": after, "figures": rows}, as_json)


def _nothing_shared(before: str, after: str, artifacts: Path) -> str:
    """Says why two runs have no figure to compare: figures that are void, or none of one benchmark on one machine."""
    void = [
        f"{_name(figure)} {'has no value' if figure.valid else 'is void'} in {name}: "
        f"{figure.reason or 'no reason was recorded'}"
        for name in dict.fromkeys((before, after))
        for figure in results.read(known_run(store_at(artifacts).runs(), name))
        if not figure.is_sound
    ]
    why = "; ".join(dict.fromkeys(void)) or "compare two runs of one benchmark on one machine"
    return f"{before} and {after}: found no figure that counts in both; {why}"


@app.command("open")
def open_(
    run: Annotated[str | None, typer.Argument(help="a run's name; by default the newest run that has a page")] = None,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
) -> None:
    """Open the page of a run in the browser, and print where it is."""
    if run is not None:
        page = known_run(store_at(artifacts).runs(), run) / PAGE
        if not page.exists():
            raise UserError(
                f"{run}: this run has no page, as its stage report has not ended; see `streamgauge runs show`"
            )
    else:
        pages = [path / PAGE for path in store_at(artifacts).runs() if run_summary.has(path, PAGE)]
        if not pages:
            raise UserError(f"{artifacts}/runs: found no run with a page; `streamgauge run` makes one")
        page = max(pages, key=lambda page: page.stat().st_mtime)
    if isinstance(page, Remote):
        raise UserError(f"{page}: lies on a store, which a browser cannot open; `streamgauge serve` shows it")
    typer.echo(page)
    webbrowser.open(page.absolute().as_uri())


@app.command()
def export(
    run: Run,
    out: Annotated[Path | None, typer.Option(help="a new folder to write", show_default="RUN-export")] = None,
    svg: Annotated[bool, typer.Option(help="draw the figures, which needs Chromium")] = True,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Export a run for a paper: figures as SVG and CSV, tables as LaTeX and Markdown, configuration, hashes."""
    from streamgauge.config import of_run
    from streamgauge.results.report import bundle

    store = store_at(artifacts)
    path = known_run(store_at(artifacts).runs(), run)
    folder = out or Path(f"{run}-export")
    files = bundle.export(of_run(path), store, path.name, folder, svg=svg)
    tell(f"{counted(len(files), 'file')}: {folder}", {"folder": folder, "files": files}, as_json)


@app.command()
def serve(
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    host: Annotated[str, typer.Option(help="address to listen on; whoever reaches it sees the pages")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="port of the pages; 0 takes a free one")] = 8081,
) -> None:
    """Serve the pages of all runs over HTTP, also those on a store; Ctrl-C stops it."""
    try:
        from streamgauge.app.airflow import page_server
    except ImportError as problem:
        raise UserError(f"a web server is not installed here ({problem}); {INSTALL}") from None
    from streamgauge.bench.driver.ports import free_port

    port = free_port(port, host)
    typer.echo(f"http://{host}:{port}/  Ctrl-C stops it")
    page_server.serve(store_at(artifacts).root, host, port)


def _name(one: Result) -> str:
    return " ".join([one.experiment, one.workload, one.system, one.mode, one.metric])


def _is_of_one_process(one: Result) -> bool:
    """True if a figure has an interval, and its samples are of one process: those over a setting are not."""
    return one.low is not None and (one.samples == 1 or _OF_ONE_PROCESS.match(one.metric) is not None)


def _text(one: Result) -> str:
    return f"{one.text}{' of one process' if _is_of_one_process(one) else ''}"


def _record(one: Result) -> dict[str, object]:
    names = ("value", "low", "high", "unit", "claim", "samples")
    return {name: getattr(one, name) for name in names}
