"""Hints about the parts of a stream: one whose clock is ahead, and disorder that only comes from merging them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from streamgauge.base.units import Tick, show_about
from streamgauge.records.profile import Hint, part_name
from streamgauge.streams.disorder.parts import Figures, Name, Without

#: most parts that are looked for as those ahead of the others
FEW = 5


def about_parts(
    column: str,
    figures: Mapping[Name, Figures],
    out_of_order: int,
    tick: Tick,
    without: Callable[[Sequence[Name]], Without],
) -> tuple[Hint, ...]:
    """Returns the hints about the parts of a stream with so many events out of order.

    without: measures the stream without some parts.
    """
    within = sum(one.delays.count for one in figures.values())
    if 10 * within > out_of_order or len(figures) < 2 or not out_of_order:
        return ()
    hints = list[Hint]()
    for name, late, by in _ahead(figures, out_of_order, without):
        text = f"{column} {part_name(name)} runs {show_about(by, tick)} ahead of the others; without it"
        text += f"{' too' * bool(hints)} {late:,} events are out of order instead of {out_of_order:,}"
        events = figures[name].events
        hints.append(Hint(kind="part_ahead", text=text, events=events, lines=(), without=late, part=name))
    return tuple(hints) or (_merging(column, len(figures), out_of_order, within),)


def _ahead(
    figures: Mapping[Name, Figures], out_of_order: int, without: Callable[[Sequence[Name]], Without]
) -> list[tuple[Name, int, float]]:
    """Returns the fewest parts without which a tenth of the disorder is left; none if they are not ahead.

    Each has the events that are out of order without it and those before, and how far ahead it runs, in ticks. They are
    the minority: a part that is ahead of one other, or of half of the events, may as well be the right one.
    """
    names, left = list[Name](), list[int]()
    total = sum(one.events for one in figures.values())
    for name in sorted(figures, key=lambda one: -figures[one].overtaken)[:FEW]:
        names.append(name)
        left_out = sum(figures[one].events for one in names)
        if 2 * left_out > total or len(figures) < len(names) + 2 or not figures[name].overtaken:
            return []
        measured = without(names)
        left.append(measured.out_of_order)
        if 10 * left[-1] <= out_of_order:
            by = [ahead.approximate().p50 or 0 for ahead in measured.ahead]
            return list(zip(names, left, by, strict=True)) if min(by) > 0 else []
    return []


def _merging(column: str, parts: int, out_of_order: int, within: int) -> Hint:
    merged = out_of_order - within
    if within:
        text = f"{merged:,} of {out_of_order:,} events out of order are in order within their {column}: merging the "
        text += f"{parts:,} streams makes them so"
    else:
        text = f"each of {parts:,} streams by {column} is in order alone: all {merged:,} events out of order come from "
        text += "merging them"
    return Hint(kind="merging", text=text, events=merged, lines=(), without=within)
