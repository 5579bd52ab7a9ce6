"""OpenMetrics: what Prometheus reads. Each figure is a sample of a gauge, at the time at which it was measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from streamgauge.catalog.results import identity, measured
from streamgauge.records.claim import mark_of
from streamgauge.records.result import Result
from streamgauge.results.exchange.figures import PARTS

_NOT_NAME = re.compile(r"[^a-zA-Z0-9_]")
#: the family's ending, what it has of a figure, and what its help says of it
_FIELDS: tuple[tuple[str, Callable[[Result], float | None], str], ...] = (
    ("", lambda one: one.value, ""),
    ("_low", lambda one: one.low, ", low end of its interval"),
    ("_high", lambda one: one.high, ", high end of its interval"),
)


def text_of(figures: Sequence[Result]) -> str:
    """Text with all figures and their intervals. Of two of a series in the same second, the later one stands."""
    families: dict[str, list[Result]] = {}
    for one in figures:
        families.setdefault(_NOT_NAME.sub("_", one.metric), []).append(one)
    lines: list[str] = []
    for family, mine in sorted(families.items()):
        for ending, field, what in _FIELDS:
            name = f"streamgauge_{family}{ending}"
            if samples := list(_samples(name, mine, field)):
                abouts = {one.metric: one.metric + (one.unit and f" in {one.unit}") + what for one in mine}
                about = _escaped("; ".join(abouts[metric] for metric in sorted(abouts)))
                lines += [f"# TYPE {name} gauge", f"# HELP {name} {about}", *samples]
    return "\n".join([*lines, "# EOF", ""])


def _samples(name: str, figures: Sequence[Result], field: Callable[[Result], float | None]) -> Iterator[str]:
    """Yields the lines of a family: series after series, each in the order of time."""
    points: dict[str, dict[int, Result]] = {}
    for one in figures:
        points.setdefault(_labels(one), {})[int(datetime.fromisoformat(one.at).timestamp())] = one
    for labels, last in sorted(points.items()):
        for moment in sorted(last):
            if (value := field(last[moment])) is not None:
                yield f"{name}{{{labels}}} {value!r} {moment}"


def _labels(figure: Result) -> str:
    names = measured(figure)
    labels = {part: names[part] for part in PARTS}
    labels["machine"] = " ".join(map(str, identity(figure.machine).values()))
    if _NOT_NAME.search(figure.metric):  # another metric may have the same family
        labels["metric"] = figure.metric
    if mark := mark_of(figure.claim):
        labels["claim"] = mark
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
