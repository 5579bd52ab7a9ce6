"""Tables and charts of trials: events in and out, resources spent, and the parts of the latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from streamgauge.records.trial import (
    Compared,
    EngineBatch,
    LatencyTrial,
    MeasuredTrial,
    Split,
    SystemFigures,
    TrialResult,
)
from streamgauge.results.report.blocks import Chart, Row, Table
from streamgauge.results.report.charts import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    SYMBOLS,
    Trace,
    axis,
    figure,
    line,
)
from streamgauge.results.report.formatting import MISSING, count, number
from streamgauge.results.report.run_records import load_of

#: most points of a line: more look alike on a screen
MOST_POINTS = 200
#: the colour of a trial by its verdict
COLOURS = {"sustainable": GREEN, "unsustainable": RED, "inconclusive": ORANGE, "invalid": GREY}
#: a proof trial's verdict in plain words
_SAID = {"sustainable": "caught up", "unsustainable": "fell behind", "inconclusive": "not clear"}
#: part of the latency -> its name, colour, pattern
_PARTS = {
    "disorder": ("disorder", PURPLE, "."),
    "queue_wait": ("queue wait", ORANGE, ""),
    "watermark_hold": ("watermark hold", SKY, "/"),
    "micro_batch": ("micro-batch", BLUE, ""),
    "commit": ("commit, after it", GREY, "x"),
}
_IN_ORDER = {"traceorder": "normal"}  # plotly reverses the legend of stacked traces
_MIB = 2**20
P = TypeVar("P")
Points = Callable[[MeasuredTrial], Iterable[tuple[float, float, Row]]]


def outcome_of(trial: TrialResult) -> str:
    """The verdict, or "invalid" for a trial that measured nothing, which is not the same as a slow one."""
    return "invalid" if trial.observation.invalid else trial.outcome


def said(trial: TrialResult) -> str:
    """The verdict of a proof trial in plain words."""
    return _SAID.get(outcome_of(trial), outcome_of(trial))


def name_of(trial: TrialResult, nth: int) -> str:
    """Names a proof trial by its number, a latency run by its fraction of the rate."""
    return load_of(trial) if isinstance(trial, LatencyTrial) else f"proof\u00a0{nth}"


def system_of(trial: TrialResult) -> SystemFigures:
    return trial.details.get("system", SystemFigures())


def thinned(points: Iterable[P]) -> list[P]:
    kept = list(points)
    return kept[:: max(1, -(-len(kept) // MOST_POINTS))]


def over_time(
    trials: Sequence[MeasuredTrial], points: Points, title: str, label: str, since: str = "trial began"
) -> Chart:
    """Charts one line per proof trial. points: yields (seconds, value, further cells of the table) of a trial."""
    traces: list[Trace] = []
    rows: list[Row] = []
    for nth, trial in enumerate(trials, 1):
        kept = thinned(points(trial))
        which = f"{name_of(trial, nth)}, {trial.purpose} {number(trial.rate_events_per_s)}/s"
        traces.append(
            line(
                f"{which}: {said(trial)}",
                [at for at, _, _ in kept],
                [value for _, value, _ in kept],
                mode="lines+markers" if len(kept) <= 40 else "lines",
                marker={"symbol": SYMBOLS[(nth - 1) % len(SYMBOLS)], "size": 6},
                line={"color": COLOURS[outcome_of(trial)], "width": 1.5, "dash": DASHES[(nth - 1) % len(DASHES)]},
            )
        )
        rows += [{"trial": which, "at (s)": number(at), label: number(value), **cells} for at, value, cells in kept]
    return Chart(
        title,
        figure(
            traces,
            axis(f"seconds since the {since}"),
            axis(label, rangemode="tozero", tickformat=",~r"),
            showlegend=True,
        ),
        Table.of(rows),
        "One line per proof trial: green caught up, vermilion fell behind, orange not clear, grey invalid.",
    )


def batch_durations(trials: Sequence[MeasuredTrial]) -> Chart:
    return over_time(trials, _batch_points, "Duration of micro-batches in the proof trials", "duration (s)")


def _batch_points(trial: MeasuredTrial) -> Iterable[tuple[float, float, Row]]:
    start_s = next((driver["start_wall_ns"] / 1e9 for driver in trial.details.get("drivers", [])), 0.0)
    for b in batches_of(trial):
        state = {"state rows": count(b.get("state_rows")), "state (MiB)": _mib(b.get("state_bytes"))}
        yield b["at"] - start_s, b["duration_ms"] / 1000, {"rows": count(b["rows"]), **state}


def batches_of(trial: TrialResult) -> list[EngineBatch]:
    """The engine's own record of its micro-batches that took rows; empty for an engine without any."""
    return [batch for batch in system_of(trial).get("batches") or () if batch.get("rows")]


def counted(trials: Sequence[TrialResult]) -> Table:
    """Table of each trial's events in and out, as driver and system counted them."""
    rows: list[Row] = []
    for nth, trial in enumerate(trials, 1):
        observation, check = trial.observation, trial.check or Compared(wrong=None)
        batches = system_of(trial).get("batches")
        dropped = None if batches is None else sum(batch.get("dropped", 0) for batch in batches)
        speed = next((driver["stream_seconds_per_second"] for driver in trial.details.get("drivers", [])), None)
        reported = check.get("reported_late", dropped)
        rows.append(
            {
                "trial": name_of(trial, nth),
                "events/s": number(trial.rate_events_per_s),
                "offered": count(observation.offered),
                "taken": count(observation.taken),
                "emitted": count(trial.details.get("emitted")),
                "late expected": count(check.get("expected_late")),
                "late reported": "unchecked" if reported is None and "reported_late" in check else count(reported),
                "counted in": check.get("late_counted") or MISSING,
                "stream s per s": number(speed),
            }
        )
    return Table.of(rows, folded="Events in and out of each trial, and late drops", cards=True)


def spent(trials: Sequence[TrialResult]) -> Table:
    """Table of CPU, memory, garbage collection, state, batches and clock offsets of each trial."""
    rows: list[Row] = []
    for nth, trial in enumerate(trials, 1):
        details, taken, system = trial.details, trial.observation.taken, system_of(trial)
        drivers, batches, slip = details.get("drivers", []), batches_of(trial), details.get("slip_ns")
        durations = sorted(b["duration_ms"] for b in batches)
        driver_cpu = sum(driver["cpu_seconds"] for driver in drivers) if drivers else None
        clock = details.get("system_clock_offset_ns")
        rows.append(
            {
                "trial": name_of(trial, nth),
                "batch p50 (ms)": number(durations[(len(durations) - 1) // 2] if durations else None),
                "batch max (ms)": number(durations[-1] if durations else None),
                "state rows, max": count(max((b["state_rows"] for b in batches if "state_rows" in b), default=None)),
                "state (MiB)": _mib(
                    max((b["state_bytes"] for b in batches if "state_bytes" in b), default=system.get("state_bytes"))
                ),
                "system CPU (s)": number(system.get("cpu_seconds")),
                "system CPU-µs/event": _per_event(system.get("cpu_seconds"), taken),
                "system memory (MiB)": _mib(system.get("rss_bytes") or system.get("memory_bytes")),
                "system GC (s)": number(system.get("gc_seconds")),
                "driver CPU (s)": number(driver_cpu),
                "driver CPU-µs/event": _per_event(driver_cpu, taken),
                "driver memory (MiB)": _mib(sum(driver["peak_memory_bytes"] for driver in drivers) or None),
                "driver slip p99 (ms)": number(_ms(slip["p99"] if slip else None)),
                "driver's clock (ms)": _offsets(details.get("clock_offset_ns", [])),
                "system's clock (ms)": _offsets([clock] if clock else []),
            }
        )
    # a column without a figure is left out: an engine without micro-batches has no batch
    known = [name for name in rows[0] if any(row[name] != MISSING for row in rows)]
    shown = [{name: row[name] for name in known} for row in rows]
    return Table.of(shown, folded="Cost of each trial: batches, state, CPU, memory")


def _per_event(cpu_seconds: float | None, events: int | None) -> str:
    return number(cpu_seconds / events * 1e6) if cpu_seconds is not None and events else MISSING


def _mib(size: float | None) -> str:
    return number(None if size is None else size / _MIB)


def _offsets(offsets: Iterable[tuple[int, int]]) -> str:
    """Formats clock offsets with their error bounds, in ms: a driver's clock − the controller's, or the system's."""
    return ", ".join(f"{offset / 1e6:+.3f} ± {error / 1e6:.3f}" for offset, error in offsets) or MISSING


def split(runs: Sequence[LatencyTrial]) -> Chart:
    """Charts the mean latency in parts, one bar for each run."""
    whole = [(load_of(run), run.details.get("latency_split_ns", {})) for run in runs]
    traces: list[Trace] = []
    parts = _parts(runs)
    for part, (name, colour, pattern) in parts.items():
        if any(ns.get(part) is not None for _, ns in whole):
            traces.append(
                {
                    "type": "bar", "orientation": "h", "name": name,
                    "y": [of for of, _ in whole], "x": [_ms(ns.get(part)) for _, ns in whole],
                    "marker": {"color": colour, "pattern": {"shape": pattern}},
                    "hovertemplate": f"{name}: %{{x:,.4r}} ms<extra></extra>",
                }
            )  # fmt: skip
    y = {"type": "category", "autorange": "reversed", "automargin": True, "ticksuffix": "  ", "showgrid": False}
    return Chart(
        "Where the latency goes",
        figure(
            traces,
            axis("mean (ms)", tickformat=",~r"),
            y,
            barmode="stack",
            legend=_IN_ORDER,
            height=130 + 40 * len(whole),
        ),
        Table.of([{"of the rate": of, **_shown(ns, parts)} for of, ns in whole]),
        "Mean event-time latency of a row in parts, at fractions of the sustainable rate. Queue wait: offered until "
        + (
            "handed over. Engine: until emitted, the wait for the watermark included."
            if _is_continuous(runs)
            else "handed over. Watermark hold: until the batch that closes the window. Micro-batch: until emitted."
        ),
    )


def split_over_time(runs: Sequence[LatencyTrial]) -> Chart:
    """Charts the parts of the latency as stacked areas for the highest fraction; the table has all fractions."""
    traces: list[Trace] = []
    rows: list[Row] = []
    shown, parts = max(runs, key=lambda run: run.fraction), _parts(runs)
    for run in runs:
        points = thinned(_split_points(run))
        rows += [{"of the rate": load_of(run), "at (s)": number(at_s), **_shown(ns, parts)} for at_s, ns in points]
        for part, (name, colour, _) in parts.items() if run is shown else ():
            y = [_ms(ns.get(part)) for _, ns in points]
            if any(value is not None for value in y):
                traces.append(
                    line(name, [at_s for at_s, _ in points], y, stackgroup="parts", fillcolor=colour,
                         line={"color": "#fff", "width": 1, "dash": "solid"},
                         hovertemplate=f"{name}: %{{y:,.4r}} ms<extra></extra>")
                )  # fmt: skip
    return Chart(
        f"Parts of the latency over time, at {load_of(shown)}",
        figure(
            traces, axis("seconds since the run began"), axis("mean (ms)", rangemode="tozero", tickformat=",~r"),
            showlegend=True, legend=_IN_ORDER,
        ),
        Table.of(rows),
        f"Stacked from below in the order of the legend; one point per "
        f"{'report of the engine' if _is_continuous(runs) else 'micro-batch'}.",
    )  # fmt: skip


def _split_points(run: LatencyTrial) -> Iterable[tuple[float, Split]]:
    """Yields the second and the parts of the latency of each report that has both."""
    for epoch in run.details.get("epochs", []):
        if epoch["latency_split_ns"] and epoch["at_s"] is not None:
            yield epoch["at_s"], epoch["latency_split_ns"]


def _is_continuous(runs: Sequence[LatencyTrial]) -> bool:
    """True for an engine without micro-batches: its account is of stretches under one watermark."""
    return any("stretches" in system_of(run) for run in runs)


def _parts(runs: Sequence[LatencyTrial]) -> dict[str, tuple[str, str, str]]:
    """The parts of the latency that the engine can tell: without micro-batches, one is all that happens within it."""
    if not _is_continuous(runs):
        return _PARTS
    known = {part: _PARTS[part] for part in ("disorder", "queue_wait")}
    return known | {"micro_batch": ("engine", *_PARTS["micro_batch"][1:])}


def _shown(ns: Split, parts: dict[str, tuple[str, str, str]]) -> Row:
    """The cells of a latency in parts."""
    return {f"{name} (ms)": number(_ms(ns.get(part))) for part, (name, _, _) in parts.items()}


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6
