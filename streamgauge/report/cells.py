"""Each cell: how its sustainable rate was found, and its latency at fractions of that rate."""

from __future__ import annotations

import html
from typing import Any

from streamgauge.report import trials
from streamgauge.report.blocks import (
    MISSING,
    Block,
    Cell,
    Chart,
    Hole,
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
from streamgauge.report.charts import (
    DASHES,
    GREEN,
    PALETTE,
    SYMBOLS,
    axis,
    delay_axis,
    figure,
    line,
    rate_axis,
)
from streamgauge.report.records import CellRecord, Json, Records, is_sound
from streamgauge.report.trials import OUTCOMES, outcome_of, thinned

_SPLITS = (trials.split, trials.split_over_time)
_CORRECT: dict[Any, Text] = {
    True: Text("equals the batch answer", "good"),
    False: Text("wrong: the figure is void", "bad"),
}
_PERCENTILES = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p999_ms": "p99.9", "max_ms": "max"}


def section(records: Records) -> Section:
    lead = "Each cell, experiment × workload × system: the highest load it carries without falling ever further behind."
    return Section(
        "cells", "Sustainable rate and latency", lead, parts=[_cell(records, record) for record in records.cells]
    )


def _cell(records: Records, record: CellRecord) -> Section:
    name = record.cell.name
    blocks: list[Block] = []
    if record.search:
        blocks.append(attempt("Rate", _figures, record))
    else:
        blocks.append(Hole("No sustainable rate", records.why(record.search_status)))
    if record.trials:
        blocks += [
            attempt("Rate search", _trace, record),
            attempt("Age over time", _samples, record.trials, "age_s", "Age of the oldest waiting event", "age (s)"),
            attempt("Backlog over time", _samples, record.trials, "backlog", "Backlog", "events waiting"),
        ]
        if any(trials.batches_of(trial) for trial in record.trials):
            blocks.append(attempt("Batches over time", trials.batch_durations, record.trials))
    if record.latency:
        blocks += [
            attempt("Latency by percentile", _by_percentile, record.latency),
            attempt("Latency over time", _latency_over_time, record.latency),
            *(attempt("Latency split", make, record.split_runs) for make in _SPLITS if record.split_runs),
            attempt("Correctness", _correctness, record.latency),
        ]
    elif record.search:
        blocks.append(Hole("No latency", records.why(record.latency_status)))
    if all_trials := [*record.trials, *record.latency_trials]:
        blocks += [
            attempt(what, make, all_trials) for what, make in (("Counted", trials.counted), ("Cost", trials.spent))
        ]
    return Section(
        f"cell-{name}", f"{record.cell.experiment} × {record.cell.workload} × {record.cell.system}", blocks=blocks
    )


def _figures(record: CellRecord) -> Tiles:
    found = record.search or {}
    tiles = [
        ("sustainable rate", number(record.rate), f"events/s; {found.get('reason') or 'no reason given'}"),
        ("interval", between(record.interval), "events/s: sustained, not sustained"),
        ("trials", count(found.get("trials", len(record.trials))), "each with its reason below"),
        *([("spread", share(found.get("spread")), _repeats(found["repeats"]))] if found.get("repeats") else []),
        ("driver's ceiling", number(found.get("driver_ceiling_events_per_s")), "events/s without a system"),
    ]
    return Tiles(tiles)


def _repeats(rates: list[float | None]) -> str:
    return f"of {len(rates)} whole searches: {', '.join(number(rate) for rate in rates)} events/s; the median counts"


def _samples(tried: list[Json], key: str, title: str, label: str) -> Chart:
    return trials.over_time(tried, trials.samples(key), title, label, ("",))


def _trace(record: CellRecord) -> Chart:
    tried = record.trials
    numbers = [trial.get("number", nth) for nth, trial in enumerate(tried, 1)]
    rates = [trial["rate_events_per_s"] for trial in tried]
    path = line(
        "order",
        numbers,
        rates,
        line={"color": "#c3cad4", "width": 1, "dash": "solid"},
        hoverinfo="skip",
        showlegend=False,
    )
    marks = []
    for outcome, (colour, symbol, _) in OUTCOMES.items():
        chosen = [i for i, trial in enumerate(tried) if outcome_of(trial) == outcome]
        if chosen:
            marks.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": outcome,
                    "x": [numbers[i] for i in chosen],
                    "y": [rates[i] for i in chosen],
                    "text": [html.escape(_wrapped(tried[i].get("reason", ""))).replace("\n", "<br>") for i in chosen],
                    "hovertemplate": "trial %{x}: %{y:,.0f} events/s<br>%{text}<extra></extra>",
                    "marker": {"color": colour, "symbol": symbol, "size": 11, "line": {"width": 2, "color": colour}},
                }
            )
    rows: list[list[Cell]] = [
        [
            numbers[i],
            str(trial.get("purpose", "")),
            number(rates[i]),
            Text(outcome_of(trial), OUTCOMES.get(outcome_of(trial), ("", "", "open"))[2]),
            str(trial.get("reason", "")),
            ", ".join(f"{name} {number(value)}" for name, value in (trial.get("figures") or {}).items()),
        ]
        for i, trial in enumerate(tried)
    ]
    return Chart(
        "Search for the rate",
        figure(
            [path, *marks],
            axis("trial", dtick=1 if len(tried) <= 20 else None),
            rate_axis("events/s offered", rates),
            showlegend=True,
            shapes=_answer(record.search or {}),
        ),
        Table(["trial", "purpose", "events/s", "outcome", "reason", "figures"], rows),
        "The line is the sustainable rate, the band its interval." if record.rate else "",
    )


def _answer(search: Json) -> list[Json]:
    """The found rate as a line, its interval as a band across the chart."""
    across = {"xref": "paper", "x0": 0, "x1": 1, "layer": "below"}
    rate, interval = search.get("sustainable_rate_events_per_s"), search.get("interval")
    shapes: list[Json] = []
    if interval and None not in interval:
        shapes.append(
            {
                **across,
                "type": "rect",
                "y0": interval[0],
                "y1": interval[1],
                "fillcolor": GREEN,
                "opacity": 0.15,
                "line": {"width": 0},
            }
        )
    if rate is not None:
        shapes.append({**across, "type": "line", "y0": rate, "y1": rate, "line": {"color": GREEN, "width": 1.5}})
    return shapes


def _by_percentile(runs: list[Json]) -> Chart:
    traces: list[Json] = []
    rows: list[list[Cell]] = []
    for nth, run in enumerate(runs):
        for kind in ("event_latency", "processing_latency"):
            latency = run.get(kind) or {}
            values = [latency.get(key) for key in _PERCENTILES]
            rows.append(
                [
                    share(run["fraction"]),
                    number(run.get("rate_events_per_s")),
                    kind.removesuffix("_latency") + " time",
                    *(number(value) for value in values),
                    count(latency.get("count")),
                    str(run.get("outcome") or MISSING),
                    _validity(run),
                ]
            )
            if kind == "event_latency":
                traces.append(
                    line(
                        share(run["fraction"]) + ("" if is_sound(run) else f" ({_validity(run).text})"),
                        list(_PERCENTILES.values()), values, nth, mode="lines+markers",
                        marker={"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 8}, opacity=1 if is_sound(run) else 0.45,
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
        "At fractions of the sustainable rate; emission time − the event times that made the answer.",
    )


def _latency_over_time(runs: list[Json]) -> Chart:
    traces: list[Any] = []
    rows: list[list[Cell]] = []
    for nth, run in enumerate(runs):
        name, points = share(run["fraction"]), thinned(run.get("over_time") or [])
        for column, percentile in ((1, "p50"), (2, "p99")):
            style = {"dash": DASHES[2 - column], "color": PALETTE[nth % len(PALETTE)]}
            more: Json = {"legendgroup": name, "showlegend": percentile == "p99"}
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


def _correctness(runs: list[Json]) -> Table:
    """Speed of a wrong answer is no speed."""
    rows: list[list[Cell]] = []
    for run in runs:
        correct = _CORRECT.get(run.get("correct"), Text("not compared", "open"))
        rows.append(
            [
                share(run["fraction"]),
                correct,
                *(count(run.get(name)) for name in ("late_drops_expected", "late_drops_reported")),
                str(run.get("late_drops_counted_in") or MISSING),
                count(run.get("emitted")),
                number(run.get("system_cpu_us_per_event")),
            ]
        )
    columns = ["of the rate", "output", "late expected", "late reported", "counted in"]
    columns += ["rows emitted", "CPU-µs/event"]
    return Table(columns, rows, "Correctness and work", cards=True)


def _latency_axis(traces: list[Json]) -> Json:
    return delay_axis("latency (ms)", [v for trace in traces for v in trace["y"]], 1e-3)


def _validity(run: Json) -> Text:
    if run.get("correct") is False:
        return Text("void", "bad", hint="the output was wrong")
    return (
        Text("valid", "good") if run.get("valid") else Text("invalid", "open", hint=str(run.get("reason") or MISSING))
    )


def _wrapped(text: str, width: int = 60) -> str:
    lines, current = [], ""
    for word in text.split():
        if current and len(current) + len(word) >= width:
            lines.append(current)
            current = ""
        current = f"{current} {word}".strip()
    return "\n".join([*lines, current])
