"""Parts of a page that the measurements of a cell share: their blocks, words for answers and loads, lines of ages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from streamgauge.records.record import Record
from streamgauge.records.spread import Spread
from streamgauge.results.report.blocks import Block, Cell, Chart, Hole, State, Table, Text, attempt_all
from streamgauge.results.report.charts import Trace, axis, figure, line
from streamgauge.results.report.formatting import MISSING, number, seconds, share
from streamgauge.results.report.run_records import CellRecord, Records

R = TypeVar("R", bound=Record)
Points = Sequence[tuple[float, float]]
#: result of comparing answers in words
ANSWERS = {True: "right", False: "wrong", None: "not compared"}
_STATES: dict[bool | None, tuple[State, str]] = {
    True: ("good", "equal to an independent answer"),
    False: ("bad", "not equal to an independent answer: the figure is void"),
    None: ("open", ""),
}
#: units in which others are shown, and the size of one
_SHOWN = {"bytes": ("MiB", 2.0**20)}
#: most rows of a line in the table of its chart, about
_ROWS = 20


def blocks_of(
    records: Records, record: CellRecord, model: type[R], what: str, *makers: Callable[[R], Block | list[Block]]
) -> list[Block]:
    """Blocks of a measurement by those who make them from its record; a Hole without a record."""
    name = what.replace("-", "")
    run = records.of_cell(record.cell, name, model)
    if run is None:
        return [Hole(f"No {what}", records.why(records.status(name, **record.cell.model_dump())))]
    return [block for make in makers for block in attempt_all(what.capitalize(), make, run)]


def answers(correct: bool | None, words: str = "") -> Text:
    """A cell with the result of comparing answers."""
    state, hint = _STATES[correct]
    return Text(words or ANSWERS[correct], state, hint=hint)


def load(fraction: float | None, otherwise: str = "as the file names") -> str:
    """The load of a measurement in words: a fraction of the rate that the search found, or what the file names."""
    return f"{share(fraction)} of the sustainable rate" if fraction else otherwise


def within(spread: Spread, of: str) -> str:
    """The interval of a figure in seconds, and what it is over."""
    low, high = spread.interval or (None, None)
    return f"90\u202f% interval {MISSING if low is None else f'{seconds(low)} to {seconds(high)}'}, of {of}"


def unit_of(unit: str) -> tuple[str, float]:
    """The unit in which a series is shown, and the size of one."""
    return _SHOWN.get(unit, (unit, 1.0))


def ages(title: str, since: str, column: str, lines: Sequence[tuple[str, str, Points]], note: str) -> Chart:
    """Chart of the age of the oldest event that waits. lines: group, name and points; the legend has the groups."""
    groups = list(dict.fromkeys(group for group, _, _ in lines))
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for group, name, points in lines:
        trace = line(group, [at for at, _ in points], [age for _, age in points], groups.index(group))
        is_first = all(before["legendgroup"] != group for before in traces)
        hover = f"{name}: %{{y:.4g}} s<extra></extra>"
        traces.append(trace | {"legendgroup": group, "showlegend": is_first, "hovertemplate": hover})
        rows += [[name, number(at), number(age)] for at, age in points[:: len(points) // _ROWS + 1]]
    shown, table = figure(traces, axis(f"seconds since the {since}"), axis("age (s)")), ["at (s)", "age (s)"]
    return Chart(title, shown, Table([column, *table], rows), f"Age of the oldest event that waits. {note}")
