"""The page's section on cells: what each sustainable rate follows from, and the latency at fractions of that rate."""

from __future__ import annotations

from streamgauge.records.latency import LatencyRun
from streamgauge.records.search import SearchAnswer
from streamgauge.results.report import ladder_charts, recovery_charts, trials
from streamgauge.results.report.blocks import (
    MISSING,
    Block,
    Cell,
    Chart,
    Hole,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    attempt,
    between,
    count,
    number,
    share,
)
from streamgauge.results.report.charts import DASHES, PALETTE, SYMBOLS, Axis, Trace, axis, delay_axis, figure, line
from streamgauge.results.report.model import fixed_share, limited_by, settled_age, typical
from streamgauge.results.report.run_records import CellRecord, Records, load_of
from streamgauge.results.report.trials import thinned

_SPLITS = (trials.split, trials.split_over_time)
#: the verdict of a latency run in plain words
_OUTCOMES = {"sustainable": "settled", "unsustainable": "not sustained", "inconclusive": "not settled"}
_PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}


def section(records: Records) -> Section:
    lead = (
        "The highest rate that each cell (experiment × workload × system) carries without falling ever further behind."
    )
    return Section(
        "cells", "Sustainable rate and latency", lead, parts=[_cell(records, record) for record in records.cells]
    )


def _cell(records: Records, record: CellRecord) -> Section:
    name = record.cell.name
    blocks: list[Block] = []
    if record.search:
        blocks.append(attempt("Rate", _figures, record))
        blocks.append(attempt("Lost", _lost, record))
        blocks += [Note(f"{one.sentence[0].upper()}{one.sentence[1:]}.") for one in record.search.doubts]
    else:
        blocks.append(Hole("No sustainable rate", records.why(record.search_status)))
    if record.windows:
        drawn = ladder_charts.carried if ladder_charts.is_continuous(record) else ladder_charts.costs
        blocks += [
            attempt("What a batch costs", drawn, record),
            attempt("Warm-up and ladder over time", ladder_charts.over_time, record),
        ]
        if record.search:
            blocks.append(attempt("What each process showed", ladder_charts.processes, record))
    if record.trials:
        blocks += [
            attempt("Recovery trials", recovery_charts.ages, record.trials),
            attempt("Recovery trials", recovery_charts.table, record),
        ]
        if any(trials.batches_of(trial) for trial in record.trials):
            blocks.append(attempt("Batches over time", trials.batch_durations, record.trials))
    if record.latency:
        blocks += [
            attempt("Latency by percentile", _by_percentile, record.latency),
            attempt("Latency over time", _latency_over_time, record.latency),
            *(attempt("Latency split", make, record.split_runs) for make in _SPLITS if record.split_runs),
            attempt("Age predicted and measured", _predicted, record),
            attempt("Correctness", _correctness, record.latency),
        ]
    elif record.search:
        blocks.append(Hole("No latency", records.why(record.latency_status)))
    if all_trials := [*record.trials, *record.latency_trials]:
        blocks += [
            attempt(what, make, all_trials) for what, make in (("Counted", trials.counted), ("Cost", trials.spent))
        ]
    return Section(
        f"cell-{name}",
        f"{record.cell.experiment} × {record.cell.workload} × {record.cell.system}",
        blocks=blocks,
        folded="How this was measured",
    )


def _figures(record: CellRecord) -> Tiles:
    search, claim = record.search, record.claim
    assert search
    covers = {
        "the fit alone": "events/s, of the fit of one process: without the spread between processes",
        "": "no interval can be given",
    }
    whole = f"events/s, of {record.interval_of}: what a fresh process of this system carries on this machine"
    tiles = [
        ("sustainable rate", number(record.rate), f"{'events/s; ' if record.rate else ''}{claim.sentence}"),
        ("90\u202f% interval", between(record.interval).replace("\u2060", ""), covers.get(record.interval_of, whole)),
        ("limited by", *(limited_by(search) if search.constraint else (MISSING, "not known"))),
        *_costs(search),
        *_proven(record),
        ("driver's ceiling", number(search.driver_ceiling_events_per_s), "events/s without a system"),
        ("machine's own noise", _percent(search.yardstick_spread), _noise(search)),
    ]
    return Tiles(tiles)


def _lost(record: CellRecord) -> Note:
    """Says what the query loses at the stream's own speed; the latency runs' table has what they lost at theirs."""
    loss = record.search.lost_at_own_speed if record.search else None
    sentence = loss.sentence if loss else "what the query loses at the stream's own speed was not counted"
    return Note(f"{sentence[0].upper()}{sentence[1:]}.")


def _costs(search: SearchAnswer) -> list[tuple[str, str, str]]:
    """Tiles with the cost of a batch and of a row in a typical process; without micro-batches, only of a row."""
    one = typical(search)
    if one is None:
        return []
    row = f"{1e6 * one.row_cost_s:.3g}\u00a0µs"
    if one.batch_cost_s is None:
        return [("cost of a row", row, "once the process is warm")]
    at = f"of a batch of {count(one.backlog_rows)} rows, at which the limit lies, is its batch cost"
    return [
        ("batch cost", number(1000 * one.batch_cost_s, "ms"), "before its first row: plan, commit, state"),
        ("cost of a row", row, "more for each row of a batch"),
        ("fixed share", _percent(fixed_share(one)), at),
    ]


def _proven(record: CellRecord) -> list[tuple[str, str, str]]:
    below, above = record.search.proven if record.search else (None, None)
    tiles = []
    for label, rate in (("caught up at", below), ("fell behind at", above)):
        remark = f"events/s, {share(round(rate / record.rate, 2))} of the rate" if rate and record.rate else ""
        tiles.append((label, number(rate), remark or ("events/s" if rate else "no recovery trial was clear")))
    return tiles


def _percent(part: float | None) -> str:
    if part is None:
        return MISSING
    return f"{100 * part:.{2 if part < 0.095 else 3}g}\u202f%"


def _noise(search: SearchAnswer) -> str:
    """Says how steady the machine itself was while the windows were measured."""
    if search.yardstick_spread is None:
        return "the yardstick was not run"
    steal = "stolen CPU time not known" if search.steal is None else f"stolen CPU time at most {_percent(search.steal)}"
    return f"between the slowest and the fastest run of one fixed computation beside the windows; {steal}"


def _predicted(record: CellRecord) -> Table:
    """Table of the age that the model predicts at each latency run's rate, beside the measured one."""
    model = typical(record.search)
    measured = {run.fraction: settled_age(run) for run in record.latency_trials}
    rows: list[list[Cell]] = []
    for run in record.latency:
        predicted: Cell = MISSING
        if model and model.batch_cost_s is not None:
            age = model.age_at(run.rate_events_per_s)
            predicted = "does not settle" if age is None else number(age)
        settled: Cell = Text("settled", "good") if run.is_settled else _validity(run)
        rows.append(
            [
                load_of(run),
                number(run.rate_events_per_s),
                predicted,
                number(measured.get(run.fraction)),
                settled,
                run.reason,
            ]
        )
    columns = ["of the rate", "events/s", "predicted age (s)", "measured age (s)", "run", "what its queues showed"]
    caption = "Age of the oldest waiting event in the latency runs: predicted, and measured"
    if model and model.batch_cost_s is None:  # without batches, nothing is predicted
        columns, caption = [*columns[:2], *columns[3:]], "Age of the oldest waiting event in the latency runs"
        rows = [[*row[:2], *row[3:]] for row in rows]
    return Table(columns, rows, caption, cards=True)


def _by_percentile(runs: list[LatencyRun]) -> Chart:
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, run in enumerate(runs):
        latencies = {
            "event time": run.event_latency,
            "processing time": run.processing_latency,
            "link's share": run.link_share,  # only where a broker is between
        }
        for named, latency in latencies.items():
            if latency is None:
                continue
            values = [value for _, value in latency.by_name(_PERCENTILES)]
            rows.append(
                [
                    load_of(run),
                    number(run.rate_events_per_s),
                    named,
                    *(number(value) for value in values),
                    count(latency.count),
                    _OUTCOMES[run.outcome],
                    _validity(run),
                ]
            )
            if latency is run.event_latency:
                traces.append(
                    line(
                        load_of(run) + ("" if run.is_sound else f" ({_validity(run).text})"),
                        list(_PERCENTILES.values()), values, nth, mode="lines+markers",
                        marker={"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 8}, opacity=1 if run.is_sound else 0.45,
                    )
                )  # fmt: skip
    return Chart(
        "Event-time latency by percentile",
        figure(traces, axis("", type="category"), _latency_axis(traces), showlegend=True),
        Table(
            [
                "of the rate",
                "events/s",
                "latency",
                *(f"{p} (ms)" for p in _PERCENTILES.values()),
                "rows",
                "verdict",
                "measurement",
            ],
            rows,
        ),
        "At fractions of the sustainable rate. Latency: emission time − the latest event time of the contributors. A "
        "link's share is part of each latency: the time from when a row was due until the broker had it.",
    )


def _latency_over_time(runs: list[LatencyRun]) -> Chart:
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, run in enumerate(runs):
        name, points = load_of(run), thinned(run.over_time)
        for column, percentile in ((1, "p50"), (2, "p99")):
            style = {"dash": DASHES[2 - column], "color": PALETTE[nth % len(PALETTE)]}
            more: Trace = {"legendgroup": name, "showlegend": percentile == "p99"}
            hover = f"{name} {percentile}: %{{y:.4g}} ms<extra></extra>"
            x, y = [p[0] for p in points], [p[column] for p in points]
            traces.append(line(name, x, y, line=style, hovertemplate=hover, **more))
        rows += [[name, number(p[0]), number(p[1]), number(p[2])] for p in points]
    return Chart(
        "Event-time latency over time",
        figure(traces, axis("seconds since the run began"), _latency_axis(traces), showlegend=True),
        Table(["of the rate", "at (s)", "p50 (ms)", "p99 (ms)"], rows),
        "Solid p99, dashed p50.",
    )


def _correctness(runs: list[LatencyRun]) -> Table:
    """Table of output checks, late drops and work of the latency runs: the speed of a wrong answer does not count."""
    rows: list[list[Cell]] = []
    for run in runs:
        correct = recovery_charts.OUTPUT.get(run.correct, recovery_charts.NOT_COMPARED)
        rows.append(
            [
                load_of(run),
                correct,
                count(run.late_events),
                number(run.stream_seconds_per_second),
                count(run.late_drops_expected),
                count(run.late_drops_reported),
                run.late_drops_counted_in or MISSING,
                count(run.emitted),
                number(run.system_cpu_us_per_event),
            ]
        )
    columns = ["of the rate", "output", "events lost", "stream s per s", "late expected", "late reported", "counted in"]
    columns += ["rows emitted", "CPU-µs/event"]
    return Table(columns, rows, "Correctness and work", cards=True)


def _latency_axis(traces: list[Trace]) -> Axis:
    return delay_axis("latency (ms)", [v for trace in traces for v in trace["y"]], 1e-3)


def _validity(run: LatencyRun) -> Text:
    if run.correct is False:
        return Text("void", "bad", hint="the output was wrong")
    if not run.valid:
        return Text("invalid", "open", hint=run.reason or MISSING)
    if not run.is_settled:
        return Text(_OUTCOMES[run.outcome], "open", hint=run.reason or MISSING)
    return Text("valid", "good")
