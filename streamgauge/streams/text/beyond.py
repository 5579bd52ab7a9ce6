"""Tells of bad lines whose time does not fit into 64 bits: it has a finer unit, or a year such as 9999."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from streamgauge.base.units import TIME_UNITS, moment
from streamgauge.base.words import counted
from streamgauge.records.profile import Hint
from streamgauge.streams.disorder.hints import LISTED, UNIT_NAMES, named
from streamgauge.streams.disorder.row_groups import column_array
from streamgauge.streams.text.parse import Layout, parse

#: how the reason of such a line begins
REASON = "time does not fit"
_LOOKED_AT = 1000
_PLAUSIBLE = ("1990", "2060")


def hints(layout: Layout, bad: Iterable[tuple[str, int, bytes]]) -> tuple[Hint, ...]:
    """Returns a hint of the bad lines, which are (file, line number, text), all of that reason; empty without any."""
    rest = iter(bad)
    lines = list(islice(rest, _LOOKED_AT))
    if not lines:
        return ()
    source, events = layout.source, len(lines) + sum(1 for _ in rest)
    several, word = len({file for file, _, _ in lines}) > 1 or len(source.files) > 1, source.line_word
    listed = [(file, line) for file, line, _ in lines[:LISTED]]
    times = f"{counted(events, 'time')} ({named(listed, events, word, several=several)})"
    finer = _finer(layout, [text for _, _, text in lines])
    are, they_are = ("is", "it is") if events == 1 else ("are", "they are")
    if finer is None:
        kind, what = "beyond_range", "before the year 1678 or after 2261"
    else:
        kind, what = "two_units", f"{UNIT_NAMES[finer]}, not {UNIT_NAMES[source.time.unit or '']}"
    return (
        Hint(
            kind=kind,
            text=f"{times} {are} {what}; {they_are} left out as bad lines",
            lines=tuple(line for _, line in listed),
            files=tuple(file for file, _ in listed) if several else (),
            events=events,
        ),
    )


def _finer(layout: Layout, texts: list[bytes]) -> str | None:
    """The coarsest of the finer units in which all of the lines have plausible times."""
    unit, source = layout.source.time.unit, layout.source
    if unit is None or layout.time[0] < 0:  # a time beside the lines
        return None
    for finer in reversed(TIME_UNITS[1 : TIME_UNITS.index(unit)]):
        time = source.time.model_copy(update={"unit": finer})
        alone = source.model_copy(update={"time": time, "arrival": None, "columns": {}})
        other = replace(layout, source=alone, arrival=(), columns=())
        parsed = parse(b"".join(text + b"\n" for text in texts), other, 0)
        years = [moment(int(at), "ns")[:4] for at in column_array(parsed.events, "event_time")]
        if parsed.bad is None and all(_PLAUSIBLE[0] <= year <= _PLAUSIBLE[1] for year in years):
            return finer
    return None
