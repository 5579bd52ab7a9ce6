"""Measures the disorder of each part of a stream, in two passes of a few tasks over row groups, and gives hints."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration, ticks_per_second
from streamgauge.catalog.artifacts import Artifact
from streamgauge.records.profile import ByPart, Delays, Profile, Span, StreamPart
from streamgauge.streams.disorder import parts
from streamgauge.streams.disorder.part_hints import about_parts
from streamgauge.streams.disorder.parts import Block, Figures, Left, Name, Without
from streamgauge.streams.disorder.profile import Spread, watermark_grid
from streamgauge.streams.disorder.row_groups import RowGroup, column_array, parts_of, read, row_groups, shares
from streamgauge.streams.stages.workers import Workers

#: most parts of a stream; each has an entry in the profile
MOST_PARTS = 10_000


def measure(workers: Workers, events: Artifact, profile: Profile, column: str, idle: Duration) -> ByPart:
    """Measures the parts of an artifact with event times in stream order. Raises UserError for too many of them.

    profile: that of the whole stream. column: its values name the parts. idle: the shortest idle spell.
    """
    cut = shares(row_groups(events.files()), workers.cores)
    grid, idle_ticks = watermark_grid(profile.tick), math.ceil(idle.seconds * ticks_per_second(profile.tick))

    def first_pass(share: list[RowGroup]) -> Left:
        so_far = Left(share[0].before)
        for group in share:
            so_far = so_far.and_then(parts.left(_blocks([group], column), so_far.largest))
            _check_few(so_far, column)
        return so_far

    before = list(accumulate(workers.each(cut, first_pass), Left.and_then, initial=Left()))
    end = before.pop()
    _check_few(end, column)

    def second_pass(item: tuple[list[RowGroup], Left]) -> dict[Name, Figures]:
        share, earlier = item
        return parts.measure(_blocks(share, column), earlier, grid, idle_ticks)

    figures: dict[Name, Figures] = {}
    for of_share in workers.each(list(zip(cut, before, strict=True)), second_pass):
        for name, more in of_share.items():
            figures[name] = figures.get(name, Figures()).and_then(more)
    figures = {name: one.to_end(end.largest - end.parts[name].at, idle_ticks) for name, one in figures.items()}

    def without(names: Sequence[Name]) -> Without:
        items = [(share, earlier.largest_without(names)) for share, earlier in zip(cut, before, strict=True)]
        measured = workers.each(items, lambda item: parts.without(_blocks(item[0], column), item[1], names))
        return reduce(Without.and_then, measured)

    return ByPart(
        column=column,
        idle=idle_ticks,
        out_of_order=sum(one.delays.count for one in figures.values()),
        parts=tuple(_record(name, figures[name], grid) for name in sorted(figures, key=_natural)),
        hints=about_parts(column, figures, profile.out_of_order or 0, profile.tick, without),
    )


def _check_few(so_far: Left, column: str) -> None:
    if len(so_far.parts) > MOST_PARTS:
        raise UserError(f"by: found more than {MOST_PARTS:,} values of {column}, allowed: at most {MOST_PARTS:,}")


def _blocks(groups: Sequence[RowGroup], column: str) -> Iterator[Block]:
    """Yields the events of each row group with their parts."""
    for group in groups:
        table = read([group], ["event_time", column])
        yield Block(*parts_of(table.column(column)), column_array(table, "event_time"))


def _record(name: Name, figures: Figures, grid: Sequence[int]) -> StreamPart:
    late = [] if figures.late is None else [count for count in figures.late.tolist() if count]
    steps = [*grid, figures.delays.largest] if late else grid  # at the longest delay no event is late
    return StreamPart(
        part=name,
        events=figures.events,
        out_of_order=figures.delays.count,
        delay=_delays(figures.delays),
        watermark_curve=tuple(zip(steps, [*late, 0], strict=False)),
        event_time=Span(min=figures.low, max=figures.high),
        behind=_delays(figures.behind),
        longest_idle=figures.longest_idle,
        idle_spells=figures.idle_spells,
        overtaken=figures.overtaken,
    )


def _delays(spread: Spread) -> Delays:
    return Delays(**spread.approximate().model_dump(exclude={"histogram"}))


def _natural(name: Name) -> tuple[bool, list[tuple[str, int]]]:
    """Sorts d2 before d10; events without a part come last."""
    pieces = re.findall(r"([^0-9]*)([0-9]*)", name or "")
    return name is None, [(text, int(number or 0)) for text, number in pieces]
