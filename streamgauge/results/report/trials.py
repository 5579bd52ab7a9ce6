"""Tables and charts of trials: events in and out, resources spent, and the parts of the latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streamgauge.results.report.blocks import MISSING, Cell, Chart, Table, count, number
from streamgauge.results.report.charts import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    SYMBOLS,
    axis,
    figure,
    line,
)
from streamgauge.results.report.run_records import Json, load_text

#: most points of a line: more could not be told apart on a screen
MOST_POINTS = 200
#: the colour of a trial by its verdict
COLOURS = {"sustainable": GREEN, "unsustainable": RED, "inconclusive": ORANGE, "invalid": GREY}
#: a recovery trial's verdict in plain words
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
Points = Callable[[Json], Iterable[tuple[float, float, list[Cell]]]]


def outcome_of(trial: Json) -> str:
    """The verdict, or "invalid" for a trial that measured nothing, which is not the same as a slow one."""
    invalid = (trial.get("observation") or {}).get("invalid")
    return "invalid" if invalid else str(trial.get("outcome", "inconclusive"))


def said(trial: Json) -> str:
    """The verdict of a recovery trial in plain words."""
    return _SAID.get(outcome_of(trial), outcome_of(trial))


def name_of(trial: Json, nth: int) -> str:
    """Names a recovery trial by its number, a latency run by its fraction of the rate."""
    return load_of_trial(trial) if "fraction" in trial else f"recovery\u00a0{nth}"


def load_of_trial(trial: Json) -> str:
    """Names the load of a latency run by its line of the log."""
    return load_text(trial["fraction"], trial.get("rate_events_per_s", 0.0), trial.get("common", False))


def thinned(points: Iterable[Any]) -> list[Any]:
    kept = list(points)
    return kept[:: max(1, -(-len(kept) // MOST_POINTS))]


def over_time(
    trials: list[Json], points: Points, title: str, label: str, more: tuple[str, ...] = (), since: str = "trial began"
) -> Chart:
    """Charts one line per recovery trial. points: yields (seconds, value, further table cells) of a trial."""
    traces: list[Json] = []
    rows: list[list[Cell]] = []
    for nth, trial in enumerate(trials, 1):
        kept = thinned(points(trial))
        which = f"{name_of(trial, nth)}, {trial.get('purpose') or 'at'} {number(trial['rate_events_per_s'])}/s"
        colour = COLOURS.get(outcome_of(trial), INK)
        traces.append(
            line(
                f"{which}: {said(trial)}", [at for at, _, _ in kept], [value for _, value, _ in kept],
                mode="lines+markers" if len(kept) <= 40 else "lines",
                marker={"symbol": SYMBOLS[(nth - 1) % len(SYMBOLS)], "size": 6},
                line={"color": colour, "width": 1.5, "dash": DASHES[(nth - 1) % len(DASHES)]},
            )
        )  # fmt: skip
        rows += [[which, number(at), number(value), *cells] for at, value, cells in kept]
    return Chart(
        title,
        figure(
            traces,
            axis(f"seconds since the {since}"),
            axis(label, rangemode="tozero", tickformat=",~r"),
            showlegend=True,
        ),
        Table(["trial", "at (s)", label, *more], rows),
        "One line per recovery trial: green caught up, vermilion fell behind, orange not clear, grey invalid.",
    )


def batch_durations(trials: list[Json]) -> Chart:
    columns = ("rows", "state rows", "state (MiB)")
    return over_time(trials, _batch_points, "Duration of micro-batches in the recovery trials", "duration (s)", columns)


def _batch_points(trial: Json) -> Iterable[tuple[float, float, list[Cell]]]:
    drivers = (trial.get("details") or {}).get("drivers") or [{}]
    start = (drivers[0].get("start_wall_ns") or 0) / 1e9
    for b in batches_of(trial):
        state: list[Cell] = [count(b.get("state_rows")), _mib(b.get("state_bytes"))]
        yield b["at"] - start, b["duration_ms"] / 1000, [count(b["rows"]), *state]


def batches_of(trial: Json) -> list[Json]:
    """The engine's own record of its micro-batches that took rows; empty for an engine without any."""
    found = ((trial.get("details") or {}).get("system") or {}).get("batches")
    return [batch for batch in found if batch.get("rows")] if isinstance(found, list) else []


def counted(trials: list[Json]) -> Table:
    """Table of each trial's events in and out, as driver and system counted them."""
    rows: list[list[Cell]] = []
    for nth, trial in enumerate(trials, 1):
        details, seen, check = (trial.get(key) or {} for key in ("details", "observation", "check"))
        batches = (details.get("system") or {}).get("batches")
        dropped = sum(b.get("dropped", 0) for b in batches) if isinstance(batches, list) else None
        speed = ((details.get("drivers") or [{}])[0]).get("stream_seconds_per_second")
        rows.append(
            [
                name_of(trial, nth),
                number(trial.get("rate_events_per_s")),
                *(count(value) for value in (seen.get("offered"), seen.get("taken"), details.get("emitted"))),
                count(check.get("expected_late")),
                "unchecked" if check.get("reported_late", 0) is None else count(check.get("reported_late", dropped)),
                str(check.get("late_counted") or MISSING),
                number(trial.get("carried_events_per_s")),
                number(speed),
            ]
        )
    columns = ["trial", "events/s", "offered", "taken", "emitted", "late expected", "late reported", "counted in"]
    columns += ["carried/s", "stream s per s"]
    return Table(columns, rows, folded="Events in and out of each trial, and late drops", cards=True)


def spent(trials: list[Json]) -> Table:
    """Table of CPU, memory, garbage collection, state, batches and clock offsets of each trial."""
    rows: list[list[Cell]] = []
    for nth, trial in enumerate(trials, 1):
        details, taken = trial.get("details") or {}, (trial.get("observation") or {}).get("taken")
        system, drivers = details.get("system") or {}, details.get("drivers") or []
        batches = batches_of(trial)
        durations = sorted(b["duration_ms"] for b in batches)
        driver_cpu = sum(d.get("cpu_seconds") or 0 for d in drivers) if drivers else None
        slip = (details.get("slip_ns") or {}).get("p99")
        rows.append(
            [
                name_of(trial, nth),
                number(durations[(len(durations) - 1) // 2]) if durations else MISSING,
                number(durations[-1]) if durations else MISSING,
                count(max((b.get("state_rows") or 0 for b in batches), default=None)),
                _mib(max((b.get("state_bytes") or 0 for b in batches), default=system.get("state_bytes"))),
                number(system.get("cpu_seconds")),
                _per_event(system.get("cpu_seconds"), taken),
                _mib(system.get("rss_bytes") or system.get("memory_bytes")),
                number(system.get("gc_seconds")),
                number(driver_cpu),
                _per_event(driver_cpu, taken),
                _mib(sum(d.get("peak_memory_bytes") or 0 for d in drivers) or None),
                number(None if slip is None else slip / 1e6),
                _offsets(details.get("clock_offset_ns")),
                _offsets([clock] if (clock := details.get("system_clock_offset_ns")) else None),
            ]
        )
    columns = ["trial", "batch p50 (ms)", "batch max (ms)", "state rows, max", "state (MiB)"]
    columns += [f"system {what}" for what in ("CPU (s)", "CPU-µs/event", "memory (MiB)", "GC (s)")]
    columns += [f"driver {what}" for what in ("CPU (s)", "CPU-µs/event", "memory (MiB)", "slip p99 (ms)")]
    return _told(
        [*columns, "driver's clock (ms)", "system's clock (ms)"],
        rows,
        folded="Cost of each trial: batches, state, CPU, memory",
    )


def _told(columns: list[str], rows: list[list[Cell]], folded: str) -> Table:
    """Table without the columns of which no row has a figure: an engine without micro-batches has no batch."""
    kept = [place for place in range(len(columns)) if any(row[place] not in (MISSING, None) for row in rows)]
    return Table([columns[place] for place in kept], [[row[place] for place in kept] for row in rows], folded=folded)


def _per_event(cpu_seconds: float | None, events: int | None) -> str:
    return number(cpu_seconds / events * 1e6) if cpu_seconds is not None and events else MISSING


def _mib(size: float | None) -> str:
    return number(None if size is None else size / _MIB)


def _offsets(found: list[list[int]] | None) -> str:
    """Formats clock offsets with their error bounds, in ms: a driver's clock − the controller's, or the system's."""
    return ", ".join(f"{offset / 1e6:+.3f} ± {error / 1e6:.3f}" for offset, error in found or ()) or MISSING


def split(runs: list[Json]) -> Chart:
    """Charts the mean latency in parts, one bar for each run."""
    whole = [(load_of_trial(run), (run.get("details") or {}).get("latency_split_ns") or {}) for run in runs]
    traces: list[Json] = []
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
    rows: list[list[Cell]] = [[of, *(number(_ms(ns.get(part))) for part in parts)] for of, ns in whole]
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
        _split_table(["of the rate"], rows, parts),
        "Mean event-time latency of a row in parts, at fractions of the sustainable rate. Queue wait: offered until "
        + (
            "handed over. Engine: until emitted, the wait for the watermark included."
            if _is_continuous(runs)
            else "handed over. Watermark hold: until the batch that closes the window. Micro-batch: until emitted."
        ),
    )


def split_over_time(runs: list[Json]) -> Chart:
    """Charts the parts of the latency as stacked areas for the highest fraction; the table has all fractions."""
    traces: list[Json] = []
    rows: list[list[Cell]] = []
    shown, parts = max(runs, key=lambda run: run["fraction"]), _parts(runs)
    for run in runs:
        epochs = thinned(e for e in run["details"]["epochs"] if e.get("latency_split_ns") and e.get("at_s") is not None)
        for e in epochs:
            cells = (number(_ms(e["latency_split_ns"].get(part))) for part in parts)
            rows.append([load_of_trial(run), number(e["at_s"]), *cells])
        for part, (name, colour, _) in parts.items() if run is shown else ():
            y = [_ms(e["latency_split_ns"].get(part)) for e in epochs]
            if any(value is not None for value in y):
                traces.append(
                    line(name, [e["at_s"] for e in epochs], y, stackgroup="parts", fillcolor=colour,
                         line={"color": "#fff", "width": 1, "dash": "solid"},
                         hovertemplate=f"{name}: %{{y:,.4r}} ms<extra></extra>")
                )  # fmt: skip
    return Chart(
        f"Parts of the latency over time, at {load_of_trial(shown)}",
        figure(
            traces, axis("seconds since the run began"), axis("mean (ms)", rangemode="tozero", tickformat=",~r"),
            showlegend=True, legend=_IN_ORDER,
        ),
        _split_table(["of the rate", "at (s)"], rows, parts),
        f"Stacked from below in the order of the legend; one point per "
        f"{'report of the engine' if _is_continuous(runs) else 'micro-batch'}.",
    )  # fmt: skip


def _is_continuous(runs: list[Json]) -> bool:
    """True for an engine without micro-batches: its account is of stretches under one watermark."""
    return any("stretches" in ((run.get("details") or {}).get("system") or {}) for run in runs)


def _parts(runs: list[Json]) -> dict[str, tuple[str, str, str]]:
    """The parts of the latency that the engine can tell: without micro-batches, one is all that happens within it."""
    if not _is_continuous(runs):
        return _PARTS
    known = {part: _PARTS[part] for part in ("disorder", "queue_wait")}
    return known | {"micro_batch": ("engine", *_PARTS["micro_batch"][1:])}


def _split_table(first: list[str], rows: list[list[Cell]], parts: dict[str, tuple[str, str, str]]) -> Table:
    return Table([*first, *(f"{name} (ms)" for name, _, _ in parts.values())], rows)


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6
