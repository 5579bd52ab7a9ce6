"""OpenMetrics: what Prometheus reads. Each figure is a sample of a gauge, at the time at which it was measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from streamgauge.catalog.results import identity, measured
from streamgauge.records.claim import mark_of
from streamgauge.records.result import Result
from streamgauge.results.exchange.figures import PARTS

#: the family's ending, what it has of a figure, and what its help says of it
_FIELDS: tuple[tuple[str, Callable[[Result], float | None], str], ...] = (
    ("", lambda one: one.value, ""),
    ("_low", lambda one: one.low, ", low end of its interval"),
    ("_high", lambda one: one.high, ", high end of its interval"),
)


def text_of(figures: Sequence[Result]) -> str:
    """Text with all figures and their intervals. Of two of a series in the same second, the later one stands."""
    families = {one.metric: one.unit for one in figures}
    lines: list[str] = []
    for metric, unit in sorted(families.items()):
        mine = [one for one in figures if one.metric == metric]
        for ending, field, what in _FIELDS:
            name = "streamgauge_" + re.sub(r"[^a-zA-Z0-9_]", "_", metric) + ending
            if samples := list(_samples(name, mine, field)):
                about = metric + (unit and f" in {unit}") + what
                lines += [f"# TYPE {name} gauge", f"# HELP {name} {_escaped(about)}", *samples]
    return "\n".join([*lines, "# EOF", ""])


def _samples(name: str, figures: Sequence[Result], field: Callable[[Result], float | None]) -> Iterator[str]:
    """Yields the lines of a family: series after series, each in the order of time."""
    points: dict[str, dict[int, float]] = {}
    for one in figures:
        if (value := field(one)) is not None:
            points.setdefault(_labels(one), {})[int(datetime.fromisoformat(one.at).timestamp())] = value
    for labels, values in sorted(points.items()):
        yield from (f"{name}{{{labels}}} {values[moment]!r} {moment}" for moment in sorted(values))


def _labels(figure: Result) -> str:
    names = measured(figure)
    labels = {part: names[part] for part in PARTS}
    labels["machine"] = " ".join(map(str, identity(figure.machine).values()))
    if mark := mark_of(figure.claim):
        labels["claim"] = mark
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
