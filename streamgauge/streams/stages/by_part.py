"""Measures the disorder of each part of a stream, in two passes of a few tasks over row groups, and gives hints."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

import pyarrow as pa

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration, Tick, ticks_per_second
from streamgauge.catalog.artifacts import Artifact
from streamgauge.records.profile import ByPart, Profile, Span, StreamPart
from streamgauge.streams.disorder import parts
from streamgauge.streams.disorder.part_hints import about_parts
from streamgauge.streams.disorder.parts import Block, Figures, Left, Name, Without
from streamgauge.streams.disorder.profile import Spread, watermark_curve, watermark_grid
from streamgauge.streams.disorder.row_groups import RowGroup, column_array, parts_of, read, row_groups, shares
from streamgauge.streams.stages.workers import Workers

#: most parts of a stream; each has an entry in the profile
MOST_PARTS = 10_000


@dataclass(frozen=True)
class Parts:
    """The parts of a stream: values of a column; without a column, partitions, to which seqs belong in turns."""

    column: str | None
    partitions: int = 1

    def blocks(self, groups: Sequence[RowGroup]) -> Iterator[Block]:
        for group in groups:
            table = read([group], ["event_time", self.column or "seq"])
            if self.column:
                names, codes = parts_of(table.column(self.column))
            else:
                names, codes = parts_of(pa.chunked_array([column_array(table, "seq") % self.partitions]))
            yield Block(names, codes, column_array(table, "event_time"))


def measure(
    workers: Workers, events: Artifact, by: Parts, idle: Duration, tick: Tick, whole: Profile | None = None
) -> ByPart:
    """Measures the parts of an artifact with event times in stream order. Raises UserError for too many of them.

    idle: the shortest idle spell. whole: the stream's profile, for hints; None: no hints.
    """
    cut, column = shares(row_groups(events.files()), workers.cores), by.column or "partition"
    grid, idle_ticks = watermark_grid(tick), math.ceil(idle.seconds * ticks_per_second(tick))

    def first_pass(share: list[RowGroup]) -> Left:
        so_far = Left(share[0].before)
        for group in share:
            so_far = so_far.and_then(parts.left(by.blocks([group]), so_far.largest))
            _check_few(so_far, column)
        return so_far

    before = list(accumulate(workers.each(cut, first_pass), Left.and_then, initial=Left()))
    end = before.pop()
    _check_few(end, column)

    def second_pass(item: tuple[list[RowGroup], Left]) -> dict[Name, Figures]:
        share, earlier = item
        return parts.measure(by.blocks(share), earlier, grid, idle_ticks)

    figures: dict[Name, Figures] = {}
    for of_share in workers.each(list(zip(cut, before, strict=True)), second_pass):
        for name, more in of_share.items():
            figures[name] = figures.get(name, Figures()).and_then(more)
    figures = {name: one.to_end(end.silence(name), idle_ticks) for name, one in figures.items()}

    def without(names: Sequence[Name]) -> Without:
        items = [(share, earlier.largest_without(names)) for share, earlier in zip(cut, before, strict=True)]
        measured = workers.each(items, lambda item: parts.without(by.blocks(item[0]), item[1], names))
        return reduce(Without.and_then, measured)

    return ByPart(
        column=column,
        idle=idle_ticks,
        out_of_order=sum(one.delays.count for one in figures.values()),
        parts=tuple(_record(name, figures[name], grid) for name in sorted(figures, key=_natural)),
        bursts=sum((one.bursts.all() for one in figures.values()), Spread()).approximate().summary,
        hints=() if whole is None else tuple(about_parts(column, figures, whole, idle_ticks, without)),
    )


def _check_few(so_far: Left, column: str) -> None:
    if len(so_far.parts) > MOST_PARTS:
        raise UserError(f"by: found more than {MOST_PARTS:,} values of {column}, allowed: at most {MOST_PARTS:,}")


def _record(name: Name, figures: Figures, grid: Sequence[int]) -> StreamPart:
    return StreamPart(
        part=name,
        events=figures.events,
        out_of_order=figures.delays.count,
        out_of_order_in_all=figures.bursts.all().total,
        delay=figures.delays.approximate().summary,
        watermark_curve=watermark_curve(grid, figures.late, figures.delays),
        event_time=Span(min=figures.low, max=figures.high),
        behind=figures.behind.approximate().summary,
        longest_idle=figures.longest_idle,
        idle_spells=figures.idle_spells,
        overtaken=figures.overtaken,
    )


def _natural(name: Name) -> tuple[bool, list[tuple[str, int]]]:
    """Sorts d2 before d10; events without a part come last."""
    pieces = re.findall(r"([^0-9]*)([0-9]*)", name or "")
    return name is None, [(text, int(number or 0)) for text, number in pieces]
