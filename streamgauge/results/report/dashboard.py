"""The page of all results over time: a chart per query and metric, its systems side by side, changes marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median

from streamgauge.base.words import counted
from streamgauge.bench.answers import functional
from streamgauge.config.systems import ENGINES
from streamgauge.records.claim import mark_of
from streamgauge.records.judgement import ACCEPTED, Look
from streamgauge.records.series import Point
from streamgauge.results.index import Index
from streamgauge.results.report import standing
from streamgauge.results.report.blocks import Block, Cell, Chart, Note, Outcome, Section, Spark, State, Table, Text
from streamgauge.results.report.charts import PALETTE, SYMBOLS, Trace, axis, figure, line, translucent
from streamgauge.results.report.curves import Curve
from streamgauge.results.report.formatting import MISSING, marked, share
from streamgauge.results.report.layout import fill, publish
from streamgauge.results.report.metric_names import for_people
from streamgauge.stats.changes import SEGMENT

_RANK: list[State] = ["plain", "good", "open", "bad"]
#: a pause between points longer than this many times the usual one is drawn as a gap
_SILENCE = 1.5


def build(index: Index, out: Path, looks: Mapping[str, Look]) -> list[str]:
    """Writes the page and returns one line per change on it. Raises UserError if it cannot be written.

    looks: what nights saw in each series, by its key.
    """
    curves = [replace(Curve.of(index, one), look=looks.get(one.key, Look())) for one in index.series()]
    outcome = _outcome(curves)
    drawn = [curve for curve in curves if curve.head.metric not in standing.SHOWN_APART]
    sections = [*standing.sections(index, curves), _summary(drawn)]
    queries = _grouped(drawn, lambda curve: (curve.head.benchmark, curve.head.workload))
    for (benchmark, workload), some in sorted(queries, key=lambda one: -max(map(_rank, one[1]))):
        groups = enumerate(_grouped(some, lambda curve: (curve.head.experiment, curve.head.metric)))
        parts = [
            replace(_part(f"{experiment}, {for_people(metric)}", beside), id=f"{_slug(benchmark, workload)}-{n}")
            for n, ((experiment, metric), beside) in groups
        ]
        sections.append(Section(_slug(benchmark, workload), f"{benchmark}: {workload}", parts=parts))
    nights = len({point.run_id for curve in curves for point in curve.points})
    lead = (
        "A mark on a line is a change of its level. The band is its noise. A gap is a night without a figure. "
        "A hollow point is a figure in doubt. A first look (quick) is a series apart."
    )
    publish(out, fill("Results over time", lead, [f"{len(curves)} series", counted(nights, "run")], outcome, sections))
    return [f"{what}: {reason}" for _, what, reason in outcome.problems]


def _grouped(
    curves: Iterable[Curve], key: Callable[[Curve], tuple[str, str]]
) -> list[tuple[tuple[str, str], list[Curve]]]:
    return [(group, list(some)) for group, some in groupby(sorted(curves, key=key), key)]


def _outcome(curves: list[Curve]) -> Outcome:
    problems = [change for curve in curves for change in _changes(curve)]
    figures = [curve for curve in curves if not curve.is_output]
    most = max((len(curve.sound) for curve in figures), default=2 * SEGMENT)
    if not problems and most < 2 * SEGMENT:
        return Outcome("plain", f"Too early to judge: {most} of {2 * SEGMENT} values", [])
    unjudged = sum(bool(curve.look.reason) for curve in figures)
    if not problems and figures and unjudged == len(figures):
        return Outcome("plain", "No series could be judged; each row says why", [])
    states = {state for state, _, _ in problems}
    state: State = "bad" if "bad" in states else "open" if "open" in states else "good"
    sentence = f"{counted(len(problems), 'change')} in {len(curves)} series" if problems else "No series has changed"
    sentence += f"; {unjudged} of {len(curves)} could not be judged" if unjudged else ""
    return Outcome(state, sentence, problems)


def _changes(curve: Curve) -> list[tuple[State, str, str]]:
    """Lists (state, what, reason) of every change in a series; a change of an output needs no statistics."""
    what, metric = curve.name, curve.head.metric
    if curve.is_output:
        return [
            ("bad", what, f"{functional.said(metric, a, b)} on {_date(b)}")
            for a, b in functional.broken(metric, curve.points)
        ]
    lines: list[tuple[State, str, str]] = []
    for change in curve.changes:
        outcome, step = change.outcome, change.step
        reason = f"{_signed(step.magnitude)} since {_date(change.point)} {_range(step.interval)}"
        reason += f"confidence {step.confidence:.2%}; {_limits(curve)}; {outcome}"
        if outcome == "regression":
            reason += f"; to accept it: streamgauge results accept {curve.head.key} --reason …"
        lines.append((_state(curve, step.magnitude, outcome), what, reason))
    return lines


def _limits(curve: Curve) -> str:
    """The noise floor and the detectable change, as shown beside every verdict."""
    floor = f"noise floor {share(_rounded(curve.noise_floor))}, " if curve.self_test else ""
    return f"{floor}detectable {share(_rounded(curve.detectable))}"


def _state(curve: Curve, magnitude: float, outcome: str) -> State:
    if outcome in ("improvement", "refuted") or (magnitude > 0) == curve.higher_is_better:
        return "good"
    if outcome.startswith(ACCEPTED):
        return "plain"
    return "bad" if outcome == "regression" else "open"


def _summary(curves: list[Curve]) -> Section:
    rows: list[list[Cell]] = []
    for curve in sorted(curves, key=lambda one: -_rank(one)):
        changes, last = _changes(curve), curve.sound[-1] if curve.sound else None
        head = curve.head
        unit = "µs" if head.unit == "us" else head.unit
        rows.append([
            f"{head.benchmark} {head.workload}, {head.experiment}",
            Text(curve.label, hint=head.machine_text), for_people(head.metric),
            _changed(curve, len(changes), _worst(curve)), _spark(curve),
            marked(last.value, last.claim, unit) if last else MISSING, _limits_cell(curve),
        ])  # fmt: skip
    columns = ["query, experiment", "system", "metric", "changes", "history", "latest", "noise, and what is missing"]
    blocks: list[Block] = [Table(columns, rows, cards=True)] if rows else [Note("The index holds no results yet.")]
    return Section(
        "series",
        "All series",
        "What changed stands first. Noise: within one level. Floor: below it stay 95 % of comparisons of the system "
        "with itself (its latest A/A run). Detectable: by such a comparison; without one, a step that four nights "
        "would show. Missing: void figures, and gaps, which are pauses longer than usual.",
        blocks,
    )


def _limits_cell(curve: Curve) -> str:
    """The noise, the floor of an A/A run if there is one, the detectable change, and what is missing."""
    limits = _limits(curve).removeprefix("noise ")  # which the heading says
    return "; ".join(filter(None, (share(_rounded(curve.look.noise)), limits, _missing(curve))))


def _missing(curve: Curve) -> str:
    """Counts void figures, and pauses that are longer than usual; empty without any."""
    void, gaps = len(curve.points) - len(curve.sound), len(_with_gaps(curve.points)) - len(curve.points)
    counts = [f"{count} {what}" for count, what in ((void, "void"), (gaps, "gaps" if gaps > 1 else "gap")) if count]
    return ", ".join(counts)


def _rank(curve: Curve) -> int:
    return _RANK.index(_worst(curve))


def _worst(curve: Curve) -> State:
    """The worst state of a series' changes; plain without one."""
    return max((state for state, _, _ in _changes(curve)), key=_RANK.index, default="plain")


def _spark(curve: Curve) -> Spark | None:
    """The history of a series as a sparkline, its changes marked; None below two values."""
    if len(curve.sound) < 2:
        return None
    places = {point.at: number for number, point in enumerate(curve.points)}
    marks = tuple(places[change.step.at] for change in curve.changes)
    return Spark(tuple(point.value if point.is_sound else None for point in curve.points), marks)


def _changed(curve: Curve, changes: int, state: State) -> Text:
    reason = "" if curve.is_output else curve.look.reason
    return Text("not judged" if reason else str(changes), state, hint=reason)


def _part(title: str, curves: list[Curve]) -> Section:
    unit = curves[0].head.unit
    many = len({curve.head.machine_text for curve in curves}) > 1
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, curve in enumerate(curves):
        name = f"{curve.label}, {curve.head.machine_text}" if many else curve.label
        if not curve.is_output:
            traces.append(_band(name, curve, nth))
        shown = _with_gaps(curve.points)
        traces.append(line(
            name, [_when(p) for p in shown], [p.value if p.is_sound else None for p in shown], nth,
            mode="lines+markers", connectgaps=False, legendgroup=name,
            marker={"symbol": _symbols(shown, nth), "size": 6},
        ))  # fmt: skip
        changes = curve.changes
        if changes:
            traces.append({
                "type": "scatter", "mode": "markers+text", "name": f"change of {name}", "legendgroup": name,
                "x": [_when(c.point) for c in changes], "y": [c.point.value for c in changes],
                "textposition": "top center",
                "text": [_signed(c.step.magnitude) for c in changes],
                "marker": {"symbol": "star-diamond", "size": 15, "color": PALETTE[nth % len(PALETTE)],
                           "line": {"width": 2, "color": "#1b2430"}},
            })  # fmt: skip
        rows += [
            [_date(p), name, marked(p.value, p.claim), p.run_id, _engines(p), None if p.is_sound else p.reason or None]
            for p in curve.points
        ]
    table = Table(["when", "system", unit, "run", "engines", "void because"], rows)
    if max(len(curve.sound) for curve in curves) < 2:  # a line needs two points
        return Section("", title, blocks=[table])
    zero = {"rangemode": "tozero"} if curves[0].is_output else {}
    return Section("", title, blocks=[Chart(title, figure(traces, axis("", type="date"), axis(unit, **zero)), table)])


def _symbols(points: list[Point], nth: int) -> list[str]:
    """A series' symbol at each point, hollow where the figure is in doubt."""
    symbol = SYMBOLS[nth % len(SYMBOLS)]
    return [f"{symbol}-open" if mark_of(point.claim) else symbol for point in points]


def _engines(point: Point) -> str | None:
    """Versions of the engines that took part."""
    versions = {name: point.software.get(name) for name in ENGINES.names()}
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version) or None


def _band(name: str, curve: Curve, nth: int) -> Trace:
    """Trace of the noise band: two standard deviations around each level, one outline per level."""
    noise = 2 * (curve.look.noise or 0)
    edges = [0, *(change.place for change in curve.changes), len(curve.sound)]
    x: list[str | None] = []
    y: list[float | None] = []
    for begin, end in pairwise(edges):
        part = curve.sound[begin:end]
        if not part or not noise:
            continue
        level = median(point.figure for point in part)
        first, last = _when(part[0]), _when(part[-1])
        x += [first, last, last, first, None]
        y += [level * (1 + noise), level * (1 + noise), level / (1 + noise), level / (1 + noise), None]
    fill_colour = translucent(PALETTE[nth % len(PALETTE)], 0.12)
    return {
        "type": "scatter", "mode": "none", "name": f"noise of {name}", "x": x, "y": y, "fill": "toself",
        "fillcolor": fill_colour, "hoverinfo": "skip", "showlegend": False, "legendgroup": name,
    }  # fmt: skip


def _with_gaps(points: list[Point]) -> list[Point]:
    """Inserts a point without a value into every pause that is longer than usual, so that the line is interrupted."""
    distances = [b.moment - a.moment for a, b in pairwise(points)]
    usual = median(distances) if distances else math.inf
    shown: list[Point] = []
    for point, distance in zip(points, [*distances, 0.0], strict=True):
        shown.append(point)
        if distance > _SILENCE * usual:
            middle = datetime.fromisoformat(point.at) + timedelta(seconds=distance / 2)
            shown.append(replace(point, at=middle.isoformat(timespec="seconds"), value=None))
    return shown


def _when(point: Point) -> str:
    return point.at[:19].replace("T", " ")


def _date(point: Point) -> str:
    return point.at[:10]


def _signed(relative: float) -> str:
    return f"{100 * relative:+.1f}\u202f%"


def _range(interval: tuple[float, float] | None) -> str:
    return f"({_signed(interval[0])} to {_signed(interval[1])}); " if interval else ""


def _rounded(relative: float | None) -> float | None:
    return None if relative is None else round(relative, 4)


def _slug(*names: str) -> str:
    return "-".join("".join(c if c.isalnum() else "-" for c in name) for name in names)
