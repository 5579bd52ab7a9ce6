"""The page of all results over time: a chart per query and metric, its systems side by side, changes marked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from streamgauge.answers import functional
from streamgauge.answers.functional import is_sound
from streamgauge.catalog.results import ACCEPTED
from streamgauge.config.systems import ENGINES
from streamgauge.index import Index
from streamgauge.judge.changes import SEGMENT, Change, Found, find
from streamgauge.judge.suspects import SELF, higher_is_better
from streamgauge.report import standing
from streamgauge.report.blocks import Block, Cell, Chart, Note, Outcome, Section, State, Table, Text, number, share
from streamgauge.report.charts import PALETTE, SYMBOLS, Trace, axis, figure, line, translucent
from streamgauge.report.layout import fill, publish

Row = dict[str, Any]
_DAY_S = 86_400
_RANK: list[State] = ["plain", "good", "open", "bad"]
#: a pause between points longer than this many times the usual one is drawn as a gap
_SILENCE = 1.5


@dataclass(frozen=True)
class Curve:
    """A series: what it measures and where, its points oldest first, its change points."""

    series: Row
    points: list[Row]
    found: Found
    outcomes: dict[int, str]  # index of a change -> outcome of the judgement on it, or on a change close by
    self_test: Row | None  # the comparison of the latest A/A run

    @property
    def sound(self) -> list[Row]:
        return [point for point in self.points if is_sound(point)]

    @property
    def name(self) -> str:
        return f"{self.series['system']}, {self.series['mode']}"

    @property
    def higher_is_better(self) -> bool:
        return higher_is_better(str(self.series["unit"]))

    @property
    def is_output(self) -> bool:
        """True if the series describes a query's answer, where any difference is an error at once."""
        return functional.is_output(str(self.series["metric"]))

    @property
    def noise_floor(self) -> float | None:
        return self.self_test["noise_floor"] if self.self_test else None

    @property
    def detectable(self) -> float | None:
        """Least detectable relative change: that of the latest A/A run, else that of Found.detectable."""
        return self.self_test["detectable_effect"] if self.self_test else self.found.detectable


def build(index: Index, out: Path) -> list[str]:
    """Writes the page and returns one line per change on it. Raises UserError if it cannot be written."""
    series = index.series()
    curves = [_curve(index, one, len(series)) for one in series]
    outcome = _outcome(curves)
    drawn = [curve for curve in curves if curve.series["metric"] not in standing.TOLD_APART]
    sections = [*standing.sections(index, [(curve.series, curve.points) for curve in curves]), _summary(drawn)]
    for (benchmark, workload), some in _grouped(drawn, "benchmark", "workload"):
        groups = enumerate(_grouped(some, "experiment", "metric"))
        parts = [
            replace(_part(f"{experiment}, {metric}", beside), id=f"{_slug(benchmark, workload)}-{n}")
            for n, ((experiment, metric), beside) in groups
        ]
        sections.append(Section(_slug(benchmark, workload), f"{benchmark}: {workload}", parts=parts))
    nights = len({str(point["run_id"]) for curve in curves for point in curve.points})
    lead = "A mark on a line is a change of its level. The band is its noise. A gap is a night without a figure."
    publish(out, fill("Results over time", lead, [f"{len(curves)} series", f"{nights} runs"], outcome, sections))
    return [f"{what}: {reason}" for _, what, reason in outcome.problems]


def _curve(index: Index, series: Row, together: int) -> Curve:
    points = index.history(series["key"])
    sound = [point for point in points if is_sound(point)]
    judged = index.judgements(series["key"])
    tests = [j["evidence"]["comparison"] for j in judged if j["outcome"] == SELF]
    values = [float(point["value"]) for point in sound]
    if all(value > 0 for value in values):
        found = find(values, [_moment(point) / _DAY_S for point in sound], series=max(together, 1))
    else:
        found = Found([], None, None, False, len(values), "a value is zero or below: no ratio can be formed")
    places = {str(point["at"]): place for place, point in enumerate(sound)}
    told = [(places[at], j) for j in judged if j["outcome"] != SELF and (at := str(j["changed_at"])) in places]
    found = replace(found, changes=_confirmed_too(found.changes, told))
    return Curve(series, points, found, _outcomes(found.changes, told), tests[-1] if tests else None)


def _outcomes(changes: Sequence[Change], told: list[tuple[int, Row]]) -> dict[int, str]:
    """Maps the index of a change to its judgement.

    A judgement counts only for the nearest change, at most SEGMENT points away. Of several, the closest one counts,
    then the latest.
    """
    near: dict[int, list[tuple[int, str]]] = {}
    for place, judged in reversed(told):
        for change in sorted(changes, key=lambda change: abs(change.index - place))[:1]:
            if (apart := abs(change.index - place)) <= SEGMENT:
                near.setdefault(change.index, []).append((apart, _outcome_of(judged)))
    return {index: min(pairs, key=lambda pair: pair[0])[1] for index, pairs in near.items()}


def _outcome_of(judged: Row) -> str:
    """The outcome in words; of an accepted regression, who accepted it and why."""
    told = judged["evidence"]
    return (
        f"{ACCEPTED} by {told['author']}: {told['reason']}" if judged["outcome"] == ACCEPTED else str(judged["outcome"])
    )


def _confirmed_too(changes: list[Change], told: list[tuple[int, Row]]) -> list[Change]:
    """Adds the changes that a rerun confirmed: a night tests fewer series, so it sees smaller steps than this page."""
    found = list(changes)
    for place, judged in told:
        sure = judged["outcome"] in ("regression", "improvement") and "change" in judged["evidence"]
        if sure and all(abs(change.index - place) > SEGMENT for change in found):
            found.append(Change(**{**judged["evidence"]["change"], "index": place}))
    return sorted(found, key=lambda change: change.index)


def _grouped(curves: Iterable[Curve], *names: str) -> list[tuple[tuple[str, ...], list[Curve]]]:
    def key(curve: Curve) -> tuple[str, ...]:
        return tuple(str(curve.series[name]) for name in names)

    return [(group, list(some)) for group, some in groupby(sorted(curves, key=key), key)]


def _outcome(curves: list[Curve]) -> Outcome:
    problems = [change for curve in curves for change in _changes(curve)]
    states = {state for state, _, _ in problems}
    state: State = "bad" if "bad" in states else "open" if "open" in states else "good"
    said = "No series has changed" if not problems else f"{len(problems)} changes in {len(curves)} series"
    return Outcome(state, said if len(problems) != 1 else f"1 change in {len(curves)} series", problems)


def _changes(curve: Curve) -> list[tuple[State, str, str]]:
    """Lists (state, what, reason) of every change in a series; a change of an output needs no statistics."""
    what = " ".join(
        str(curve.series[name]) for name in ("benchmark", "experiment", "workload", "system", "mode", "metric")
    )
    if curve.is_output:
        metric = str(curve.series["metric"])
        return [
            ("bad", what, f"{functional.said(metric, a, b)} on {_date(b)}")
            for a, b in functional.broken(metric, curve.points)
        ]
    told: list[tuple[State, str, str]] = []
    for change in curve.found.changes:
        outcome = curve.outcomes.get(change.index, "suspect: not rerun")
        reason = f"{_signed(change.magnitude)} since {_date(curve.sound[change.index])} {_range(change.interval)}"
        reason += f"confidence {change.confidence:.2%}; {_limits(curve)}{outcome}"
        if outcome == "regression":
            reason += f"; to accept it: streamgauge results accept {curve.series['key']} --reason …"
        told.append((_state(curve, change.magnitude, outcome), what, reason))
    return told


def _limits(curve: Curve) -> str:
    """The noise floor and the detectable change, as shown beside every verdict."""
    floor = f"noise floor {share(_rounded(curve.noise_floor))}, " if curve.self_test else ""
    return f"{floor}detectable {share(_rounded(curve.detectable))}; "


def _state(curve: Curve, magnitude: float, outcome: str) -> State:
    if outcome in ("improvement", "refuted") or (magnitude > 0) == curve.higher_is_better:
        return "good"
    if outcome.startswith(ACCEPTED):
        return "plain"
    return "bad" if outcome == "regression" else "open"


def _summary(curves: list[Curve]) -> Section:
    rows: list[list[Cell]] = []
    for curve in curves:
        changes, last = _changes(curve), curve.sound[-1] if curve.sound else None
        state: State = "plain" if not changes else max((s for s, _, _ in changes), key=_RANK.index)
        rows.append([
            f"{curve.series['benchmark']} {curve.series['workload']}", curve.series["experiment"], curve.name,
            curve.series["metric"], _told(curve, len(changes), state),
            number(last["value"] if last else None, curve.series["unit"]), share(_rounded(curve.found.noise)),
            share(_rounded(curve.noise_floor)), share(_rounded(curve.detectable)),
            len(curve.points) - len(curve.sound), len(_with_gaps(curve.points)) - len(curve.points), _machine(curve),
        ])  # fmt: skip
    columns = [
        "query",
        "experiment",
        "system",
        "metric",
        "changes",
        "latest",
        "noise",
        "floor (A/A)",
        "detectable",
        "void",
    ]
    columns += ["gaps", "machine"]
    blocks: list[Block] = [Table(columns, rows, cards=True)] if rows else [Note("The index holds no results yet.")]
    return Section(
        "series",
        "All series",
        "Noise: within one level. Floor: below it stay 95 % of comparisons of the system with itself (its latest A/A "
        "run). Detectable: by such a comparison; without one, a step that four nights would show.",
        blocks,
    )


def _told(curve: Curve, changes: int, state: State) -> Text:
    unjudged = bool(curve.found.reason) and not curve.is_output
    return Text("not judged" if unjudged else str(changes), state, hint=curve.found.reason if unjudged else "")


def _part(title: str, curves: list[Curve]) -> Section:
    unit = str(curves[0].series["unit"])
    many = len({_machine(curve) for curve in curves}) > 1
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, curve in enumerate(curves):
        name = f"{curve.name}, {_machine(curve)}" if many else curve.name
        if not curve.is_output:
            traces.append(_band(name, curve, nth))
        shown = _with_gaps(curve.points)
        traces.append(line(
            name, [_when(p) for p in shown], [p["value"] if is_sound(p) else None for p in shown], nth,
            mode="lines+markers", connectgaps=False, legendgroup=name,
            marker={"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 6},
        ))  # fmt: skip
        at = [curve.sound[change.index] for change in curve.found.changes] if not curve.is_output else []
        if at:
            traces.append({
                "type": "scatter", "mode": "markers+text", "name": f"change of {name}", "legendgroup": name,
                "x": [_when(p) for p in at], "y": [p["value"] for p in at], "textposition": "top center",
                "text": [_signed(c.magnitude) for c in curve.found.changes],
                "marker": {"symbol": "star-diamond", "size": 15, "color": PALETTE[nth % len(PALETTE)],
                           "line": {"width": 2, "color": "#1b2430"}},
            })  # fmt: skip
        rows += [
            [_date(p), name, number(p["value"]), p["run_id"], _engines(p), p["reason"] or None] for p in curve.points
        ]
    table = Table(["when", "system", unit, "run", "engines", "void because"], rows)
    zero = {"rangemode": "tozero"} if curves[0].is_output else {}
    return Section("", title, blocks=[Chart(title, figure(traces, axis("", type="date"), axis(unit, **zero)), table)])


def _engines(point: functional.Point) -> str | None:
    """Versions of the engines that took part."""
    software = point["software"]
    return ", ".join(f"{name} {software[name]}" for name in ENGINES if software.get(name)) or None


def _band(name: str, curve: Curve, nth: int) -> Trace:
    """Trace of the noise band: two standard deviations around each level, one outline per level."""
    noise = 2 * (curve.found.noise or 0)
    edges = [0, *(change.index for change in curve.found.changes), len(curve.sound)]
    x: list[Any] = []
    y: list[float | None] = []
    for begin, end in pairwise(edges):
        part = curve.sound[begin:end]
        if not part or not noise:
            continue
        level = median(float(point["value"]) for point in part)
        first, last = _when(part[0]), _when(part[-1])
        x += [first, last, last, first, None]
        y += [level * (1 + noise), level * (1 + noise), level / (1 + noise), level / (1 + noise), None]
    fill_colour = translucent(PALETTE[nth % len(PALETTE)], 0.12)
    return {
        "type": "scatter", "mode": "none", "name": f"noise of {name}", "x": x, "y": y, "fill": "toself",
        "fillcolor": fill_colour, "hoverinfo": "skip", "showlegend": False, "legendgroup": name,
    }  # fmt: skip


def _with_gaps(points: list[Row]) -> list[Row]:
    """Inserts a point without a value into every pause that is longer than usual, so that the line is interrupted."""
    moments = [_moment(point) for point in points]
    distances = [b - a for a, b in pairwise(moments)]
    usual = median(distances) if distances else math.inf
    shown: list[Row] = []
    for point, distance in zip(points, [*distances, 0.0], strict=True):
        shown.append(point)
        if distance > _SILENCE * usual:
            middle = datetime.fromtimestamp(_moment(point) + distance / 2, datetime.fromisoformat(point["at"]).tzinfo)
            shown.append({**point, "at": middle.isoformat(timespec="seconds"), "value": None})
    return shown


def _moment(point: Row) -> float:
    return datetime.fromisoformat(point["at"]).timestamp()


def _when(point: Row) -> str:
    return str(point["at"])[:19].replace("T", " ")


def _date(point: functional.Point) -> str:
    return str(point["at"])[:10]


def _machine(curve: Curve) -> str:
    machine = curve.series["machine"]
    label = f"{machine['host']}: " if machine.get("host") else ""
    return f"{label}{machine.get('cpu')}, {machine.get('cores')} cores"


def _signed(relative: float) -> str:
    return f"{100 * relative:+.1f}\u202f%"


def _range(interval: tuple[float, float] | None) -> str:
    return f"({_signed(interval[0])} to {_signed(interval[1])}); " if interval else ""


def _rounded(relative: float | None) -> float | None:
    return None if relative is None else round(relative, 4)


def _slug(*names: str) -> str:
    return "-".join("".join(c if c.isalnum() else "-" for c in name) for name in names)
