"""Prints a run's summary on the terminal: each stage's state, each stream's disorder, and each cell's figures."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from streamgauge.base.console import Console
from streamgauge.base.words import first_of
from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import scopes_of, stages_of
from streamgauge.config import Benchmark
from streamgauge.records.manifests import StreamManifest
from streamgauge.results.report.degrees import comparisons, in_cpus
from streamgauge.results.report.model import limited_by
from streamgauge.results.report.run_records import CellRecord, Records

COLOUR = {"done": "green", "failed": "red", "skipped": "yellow", "started": "yellow", "partly": "yellow"}
_COLOURED = {"right": "[green]right[/]", "wrong": "[red]wrong[/]"}


def show(benchmark: Benchmark, store: Store, run_log: RunLog, console: Console | None = None) -> bool:
    """Prints tables from the run's records and the streams' manifests; returns False if answers were wrong."""
    console = console or Console()
    console.print(_stages(benchmark, run_log))
    console.print(_streams(benchmark, store, run_log))
    return not benchmark.all_cells() or show_figures(benchmark, store, run_log, console)


def show_figures(benchmark: Benchmark, store: Store, run_log: RunLog, console: Console | None = None) -> bool:
    """Prints what the cells were measured for: their rates and latencies, and a line for each other figure.

    Returns False if answers were wrong.
    """
    console = console or Console()
    records = Records(benchmark, store, run_log.path.name)
    console.print(_cells(benchmark, records.cells))
    for line in _lines(records):
        console.print(Text(line), soft_wrap=True)
    return not any(cell.wrong for cell in records.cells)


def _lines(records: Records) -> Iterator[str]:
    """Yields what disorder costs, figures that the table has no column for, and sentences on each cell."""
    yield from (f"{compared.name}: {compared.sentence}" for compared in comparisons(records))
    names = tuple(f"{name}_" for name in records.benchmark.sections if name not in ("search", "latency"))
    for _, one in results.numbered(records.directory)[0]:
        if one.metric.startswith(names) and one.reason != results.REPLACED:
            remark = f"; {one.reason}" if one.is_sound and one.reason else ""
            yield f"{one.experiment}.{one.workload}.{one.system}: {one.metric} {one.text}{remark}"
    limits = dict.fromkeys(limited_by(cell.search) for cell in records.cells)
    yield from (f"limited by {limit}: {meaning}" for limit, meaning in limits if limit)
    costs = in_cpus(records)
    for cell in records.cells:
        name, loss = cell.cell.name, cell.search.lost_at_own_speed if cell.search else None
        if cell.wrong:
            yield f"{name}: answers were wrong in {first_of(cell.wrong)}"
        if name in costs:
            yield f"{name}: {costs[name].sentence}"
        if loss and loss.rule != "never":
            yield f"{name}: {loss.sentence}"


def _stages(benchmark: Benchmark, run_log: RunLog) -> Table:
    """Table of every stage that the benchmark has, including those that did not run after an earlier failure."""
    table = Table("stage", "of", "state", "seconds", "note", title="Stages")
    for stage in stages_of(benchmark):
        for scope in scopes_of(benchmark, stage.scope):
            name = " ".join(scope.values())
            last = run_log.latest(stage.name, **scope)
            if last is None:
                table.add_row(stage.name, name, "[yellow]not run[/]", "", "")
                continue
            note = last.error or ("reused" if last.reused else "")
            seconds = "" if last.seconds is None else f"{last.seconds:.1f}"
            table.add_row(stage.name, name, f"[{COLOUR[last.state]}]{last.state}[/]", seconds, escape(note))
    return table


def _streams(benchmark: Benchmark, store: Store, run_log: RunLog) -> Table:
    table = Table("experiment", "target", "out of order", "achieved", "events", "sha256", title="Streams")
    for experiment in benchmark.experiments:
        last = run_log.latest("generate", experiment=experiment.name)
        stream = store.find("stream", last.key) if last and last.key and last.state == "done" else None
        if stream is None:
            table.add_row(experiment.name, experiment.wanted, "", "not made", "", "")
            continue
        manifest = stream.read(StreamManifest)
        events, out = manifest.events, manifest.achieved_out_of_order
        percent = f"{100 * out / events:.4g} %" if events else ""
        table.add_row(experiment.name, experiment.wanted, str(out), percent, str(events), manifest.sha256[:16])
    return table


def _cells(benchmark: Benchmark, cells: list[CellRecord]) -> Table:
    """Table of the cells' rates, and of the event-time latency p50 / p99 in ms at fractions and at shared rates.

    Figures that are not proven or not sound are marked.
    """
    fractions, rates = benchmark.latency.fractions, benchmark.latency.rates
    loads = (*(f"at {100 * fraction:g} %" for fraction in fractions), *(f"at {rate:,.10g}/s" for rate in rates))
    columns = ("cell", "events/s", "90 % interval", "limited by", *loads, "output")
    table = Table(*columns, title="Cells")
    for cell in cells:
        own = {run.fraction: run for run in cell.latency if not run.common}
        shared = {run.rate_events_per_s: run for run in cell.latency if run.common}
        latencies = [_latency(own.get(one)) for one in fractions] + [_latency(shared.get(one)) for one in rates]
        name = " ".join(cell.cell.model_dump().values())
        limit, _ = limited_by(cell.search)
        table.add_row(name, _rate(cell), _interval(cell), limit, *latencies, _COLOURED.get(cell.output, cell.output))
    return table


def _rate(cell: CellRecord) -> str:
    if not cell.rate:
        return f"[yellow]{cell.claim.kind}[/]" if cell.search else "[yellow]not measured[/]"
    doubt = f"\n[yellow]{cell.claim.mark}[/]" if cell.claim.mark else ""
    return f"{cell.rate:,.0f}{doubt}"


def _interval(cell: CellRecord) -> str:
    low, high = cell.interval
    return "" if low is None or high is None else f"{low:,.0f} to {high:,.0f}\nof {cell.interval_of}"


def _latency(run: LatencyRun | None) -> str:
    if run is None:
        return ""
    if not run.valid:
        return "[yellow]invalid[/]"
    event = run.event_latency
    if event.p99_ms is None:
        return "no row"
    doubt = f"\n[yellow]{run.doubt}[/]" if run.doubt else ""
    return f"{event.p50_ms:,.0f} / {event.p99_ms:,.0f} ms{doubt}"
