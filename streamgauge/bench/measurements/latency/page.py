"""Blocks of the page that show a cell's latency runs: latency, age, and whether the answers were right."""

from __future__ import annotations

from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.verdict import settled_age
from streamgauge.results.report import trials
from streamgauge.results.report.blocks import Block, Cell, Chart, Hole, Row, Table, Text, attempt
from streamgauge.results.report.charts import DASHES, PALETTE, SYMBOLS, Axis, Trace, axis, delay_axis, figure, line
from streamgauge.results.report.formatting import MISSING, count, number
from streamgauge.results.report.measured import answers
from streamgauge.results.report.model import typical
from streamgauge.results.report.run_records import CellRecord, Records, load_of
from streamgauge.results.report.trials import thinned

_SPLITS = (trials.split, trials.split_over_time)
_PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}


def blocks(records: Records, record: CellRecord) -> list[Block]:
    """Builds the blocks of a cell's latency runs; none for a cell that has neither these nor a search."""
    if not record.latency:
        plan = records.benchmark.latency
        why = records.why(record.latency_status) if plan.fractions or plan.rates else "the benchmark asks for none"
        return [Hole("No latency", why)] if record.search else []
    return [
        attempt("Latency by percentile", _by_percentile, record.latency),
        attempt("Latency over time", _latency_over_time, record.latency),
        *(attempt("Latency split", make, record.split_runs) for make in _SPLITS if record.split_runs),
        attempt("Age predicted and measured", _predicted, record),
        attempt("Correctness", _correctness, record.latency),
    ]


def _predicted(record: CellRecord) -> Table:
    """Table of the age that the model predicts at each latency run's rate, beside the measured one."""
    model = typical(record.search)
    measured = {(run.common, run.rate_events_per_s): settled_age(run.observation) for run in record.latency_trials}
    is_predicted = model is None or model.batch_cost_s is not None  # without batches, nothing is
    rows: list[Row] = [
        {
            "of the rate": load_of(run),
            "events/s": number(run.rate_events_per_s),
            **({"predicted age (s)": _age(model, run.rate_events_per_s)} if is_predicted else {}),
            "measured age (s)": number(measured.get((run.common, run.rate_events_per_s))),
            "run": _validity(run) if run.doubt else Text("settled", "good"),
            "what its queues showed": run.reason,
        }
        for run in record.latency
    ]
    caption = "Age of the oldest waiting event in the latency runs"
    return Table.of(rows, f"{caption}: predicted, and measured" if is_predicted else caption, cards=True)


def _age(model: Estimate | None, rate: float) -> str:
    """The age in seconds that the model predicts at a rate."""
    if model is None:
        return MISSING
    age = model.age_at(rate)
    return "does not settle" if age is None else number(age)


def _by_percentile(runs: list[LatencyRun]) -> Chart:
    traces: list[Trace] = []
    rows: list[Row] = []
    for nth, run in enumerate(runs):
        latencies = {
            "event time": run.event_latency,
            "processing time": run.processing_latency,
            "link's share": run.link_share,  # only where a broker is between
        }
        for named, latency in latencies.items():
            if latency is None:
                continue
            quantiles = {_PERCENTILES[name]: value for name, value in latency.by_name(_PERCENTILES)}
            rows.append(
                {
                    "of the rate": load_of(run),
                    "events/s": number(run.rate_events_per_s),
                    "latency": named,
                    **{f"{name} (ms)": number(value) for name, value in quantiles.items()},
                    "rows": count(latency.count),
                    "verdict": run.doubt or "settled",
                    "measurement": _validity(run),
                }
            )
            if latency is run.event_latency:
                traces.append(
                    line(
                        _name(run),
                        list(quantiles), list(quantiles.values()), nth, mode="lines+markers",
                        marker={"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 8}, opacity=1 if run.is_sound else 0.45,
                    )
                )  # fmt: skip
    return Chart(
        "Event-time latency by percentile",
        figure(traces, axis("", type="category"), _latency_axis(traces), showlegend=True),
        Table.of(rows),
        "At fractions of the sustainable rate. Latency: emission time − the latest event time of the contributors. A "
        "link's share is part of each latency: the time from when a row was due until the broker had it.",
    )


def _name(run: LatencyRun) -> str:
    return load_of(run) + ("" if run.is_sound else f" ({_validity(run).text})")


def _latency_over_time(runs: list[LatencyRun]) -> Chart:
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, run in enumerate(runs):
        name, points = _name(run), thinned(run.over_time)
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
    rows: list[Row] = [
        {
            "of the rate": load_of(run),
            "output": answers(run.correct),
            "events lost": count(run.late_events),
            "stream s per s": number(run.stream_seconds_per_second),
            "late expected": count(run.late_drops_expected),
            "late reported": count(run.late_drops_reported),
            "counted in": run.late_drops_counted_in or MISSING,
            "rows emitted": count(run.emitted),
            "CPU-µs/event": number(run.system_cpu_us_per_event),
        }
        for run in runs
    ]
    return Table.of(rows, "Correctness and work", cards=True)


def _latency_axis(traces: list[Trace]) -> Axis:
    return delay_axis("latency (ms)", [v for trace in traces for v in trace["y"]], 1e-3)


def _validity(run: LatencyRun) -> Text:
    if run.correct is False:
        return Text("void", "bad", hint="the output was wrong")
    if not run.valid:
        return Text("invalid", "open", hint=run.reason or MISSING)
    if run.doubt:
        return Text(run.doubt, "open", hint=run.reason or MISSING)
    return Text("valid", "good")
