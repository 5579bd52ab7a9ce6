"""Looks for hints in the times of all events, in flat memory: most files take one pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.base.units import PS, Tick, moment, show_enough, show_ticks, ticks_per_second
from streamgauge.base.words import counted
from streamgauge.descriptions.source import TimeColumn
from streamgauge.records.profile import Hint, HintKind, InFile
from streamgauge.streams.disorder.blocks import Blocks, Count, Kept, Region
from streamgauge.streams.disorder.far_times import Far, far
from streamgauge.streams.disorder.hints import LISTED, NONE_SKIPPED, UNIT_NAMES, Place, Skipped, named
from streamgauge.streams.disorder.row_groups import LARGEST
from streamgauge.streams.disorder.zones import offset_s, repeated_hours

#: most events that are looked for as the few that make others late
FEW = 10
_ROUNDS = 5
_WINDOW = 10_000


@dataclass(frozen=True)
class Origin:
    """The source of the events. places: the beginnings of its files, none for generated events."""

    tick: Tick
    time: TimeColumn
    places: tuple[Place, ...] = ()
    word: str = "line"  # what counts in a file: lines, rows of Parquet, or offsets
    skipped: Skipped = NONE_SKIPPED


def in_file(blocks: Blocks, origin: Origin) -> InFile:
    """Measures the events in the order of their files, and gives hints."""
    if not blocks.events:
        return InFile(events=0, out_of_order=0)
    return _Look(blocks, origin).result()


class _Look:
    """A look at all events. Each hint that leaves events out makes `_kept` and `_count` smaller for those after it."""

    def __init__(self, blocks: Blocks, origin: Origin) -> None:
        self._blocks, self._origin = blocks, origin
        self._held = max(20, blocks.events // 1000)
        self._kept = Kept()
        self._count = self._all = blocks.count(self._kept, self._held)
        self._hints: list[Hint] = []

    def result(self) -> InFile:
        low, high = self._blocks.span
        if low == high:
            if (events := self._all.events) > 2:
                self._add("constant_time", f"all {events:,} events are at {self._moment(low)}", events)
        else:
            newest_first = self._newest_first()
            self._far(generic=not newest_first)
            if not newest_first:
                self._ahead()
            self._files_joined()
            self._hour_twice()
            self._hour_skipped()
            self._whole_days()
        return InFile(events=self._all.events, out_of_order=self._all.out_of_order, hints=tuple(self._hints))

    # -- kinds

    def _newest_first(self) -> bool:
        """Tells of a file with more falls than rises in which reading from its end halves the disorder."""
        if self._all.falls <= self._all.rises or self._all.events < 3:
            return False
        backwards = self._blocks.backwards()
        if 2 * backwards > self._all.out_of_order:
            return False
        self._add(
            "newest_first",
            f"the newest event comes first: time falls {self._all.falls:,} times and rises {self._all.rises:,} times; "
            f"read from the end, {backwards:,} of {self._all.events:,} are out of order; "
            "order: event_time sorts them",
            self._all.events,
            without=backwards,
        )
        return True

    def _far(self, *, generic: bool) -> None:
        for group in far(self._blocks, self._origin.tick, self._origin.time.unit):
            if group.kind == "unit":
                rows = self._blocks.rows(group.region, LISTED) if group.own.events < self._all.events else []
                self._add("unit", self._unit_text(group, rows), group.own.events, rows)
                continue
            kept = Kept((*self._kept.regions, group.region), self._kept.rows)
            count = self._blocks.count(kept, self._held)
            if group.kind in ("far_behind", "far_ahead") and not (
                generic and count.out_of_order < self._count.out_of_order
            ):
                continue
            before, self._kept, self._count = self._count, kept, count
            rows = self._blocks.rows(group.region, LISTED)
            self._add(group.kind, self._far_text(group, rows, before), group.own.events, rows, left=count)

    def _ahead(self) -> None:
        """Tells of at most FEW events that put at least 0.1 % of all events out of order.

        Without them a third fewer are so, or the longest delay is at most a third. An event is ahead if it is later
        than the next 0.1 % of the events, and few of those before it are.
        """
        first = count = self._count
        leads = dict[int, int]()
        for _ in range(_ROUNDS):
            more = dict(leads)
            for row, _ in sorted(count.holders, key=lambda one: -one[1])[:FEW]:
                # an event that another one hides leads by 1 tick, until that one is left out
                some = more | {at: max(lead, more.get(at, 0)) for at, lead in self._leads(row, leads).items()}
                more = some if len(some) <= FEW else more
            if more == leads:
                break
            leads = more
            count = self._blocks.count(self._with(leads), self._held)
        usual = count.delays // max(1, count.out_of_order)
        rows = {row for row, lead in leads.items() if lead > usual}
        if len(rows) < len(leads):
            count = self._blocks.count(self._with(rows), self._held)
        made = first.out_of_order - count.out_of_order
        if made < self._held or (3 * made < first.out_of_order and 3 * count.longest > first.longest):
            return
        self._kept, self._count = self._with(rows), count
        listed = sorted(rows)
        blocks = self._blocks
        ahead = blocks.at(listed[:1], blocks.times)[0] - int(blocks.after(listed[0], 1, self._kept)[0])
        one = len(rows) == 1
        self._add(
            "ahead",
            f"{counted(len(rows), 'event')} ({self._lines(listed[:LISTED], len(rows))}) "
            f"{'is' if one else 'are'} ahead, by {show_ticks(ahead, self._origin.tick)}"
            f"{'' if one else ' the first of them'}, and {'makes' if one else 'make'} {made:,} later ones late; "
            f"{self._without(first, count)}",
            len(rows),
            listed[:LISTED],
            left=count,
        )

    def _leads(self, row: int, left_out: Iterable[int]) -> dict[int, int]:
        """Maps this row and those before it that are later than the events after it to how much later they are."""
        floor = int(self._blocks.after(row, min(self._held, _WINDOW), self._with(left_out)).max())
        rows = self._blocks.rows(Region(floor + 1, LARGEST), 2 * FEW, row + 1)
        return {row: at - floor for row, at in zip(rows, self._blocks.at(rows, self._blocks.times), strict=True)}

    def _files_joined(self) -> None:
        """Tells of files that are read one after the other, if at least half of the disorder is between them."""
        begins = [place.first_seq for place in self._origin.places]
        if len(begins) < 2 or not self._all.out_of_order:
            return
        blocks = self._blocks
        firsts = blocks.walk(lambda k: int(blocks.seqs(k)[0]), range(len(blocks.extents)))
        within = blocks.out_of_order_within([bisect_right(begins, seq) for seq in firsts])
        joined = self._all.out_of_order - within
        if 2 * joined >= self._all.out_of_order:
            text = f"{joined:,} of {self._all.out_of_order:,} events out of order are in order within their file: "
            text += f"{len(begins):,} files are read one after the other, and overlap in time"
            self._add("files_joined", text, joined, without=within)

    def _hour_twice(self) -> None:
        time = self._origin.time
        if not time.is_local:
            if time.unit is None and "%z" not in (time.format or ""):
                self._hour_back()
            return
        per_s = ticks_per_second(self._origin.tick)
        low, high = self._blocks.span
        hours = repeated_hours(time.zone, low // per_s, high // per_s)
        firsts = [Region(h.begin_s * per_s, h.between_s * per_s - 1) for h in hours]
        seconds = [Region(h.between_s * per_s, h.end_s * per_s - 1) for h in hours]
        if any(self._blocks.number(region) for region in seconds):
            return  # a local time is read as the first of two: these have an offset, or other times follow at once
        for hour, region in zip(hours, firsts, strict=True):
            if number := self._blocks.number(region):
                rows = self._blocks.rows(region, LISTED)
                self._add(
                    "hour_twice",
                    f"{number:,} times ({self._lines(rows, number)}) lie between {hour.local} in {time.zone}, an hour "
                    "that the zone has twice; those without an offset are taken for the first",
                    number,
                    rows,
                )

    def _hour_back(self) -> None:
        """Tells of an hour of a Sunday that begins again when it is over, in times that name no zone."""
        hour = 3600 * ticks_per_second(self._origin.tick)
        for row, late in sorted(self._count.holders, key=lambda one: -one[1])[:FEW]:
            last = self._blocks.at([row], self._blocks.times)[0]
            begin = last // hour * hour
            again = float(np.median(self._blocks.after(row, min(late // 20 + 1, _WINDOW), self._kept)))
            is_sunday = begin // (24 * hour) % 7 == 3  # day 0 of the epoch is a Thursday
            if not (is_sunday and last - begin > 0.95 * hour and 0 <= again - begin < 0.05 * hour):
                continue
            both = self._blocks.number(Region(begin, begin + hour - 1))
            if both < 3 * late < 2 * both:
                rows = range(row + 1, row + 1 + LISTED)
                self._add(
                    "hour_twice",
                    f"{late:,} times ({self._lines(rows, late)}) begin the hour of {self._moment(begin)[:16]}Z again, "
                    "as local times do when clocks are put back; is there a column in UTC, or with an offset?",
                    late,
                    rows,
                )

    def _hour_skipped(self) -> None:
        if number := self._origin.skipped.events:
            placed = self._placed(self._origin.skipped.seqs)
            do, them = ("time does", "it") if number == 1 else ("times do", "them")
            text = (
                f"{number:,} {do} not exist in {self._origin.time.zone} ({self._words(placed, number)}), as clocks are "
                f"put forward over {them}; the offset before that is taken"
            )
            self._hints.append(self._hint("hour_skipped", text, number, placed))

    def _whole_days(self) -> None:
        """Tells of dates without a time of day, if there are at least two events for each day of the span."""
        time, day = self._origin.time, 86400 * ticks_per_second(self._origin.tick)
        low, high = self._blocks.span
        if self._all.events < 2 * ((high - low) // day + 2) or time.unit not in (None, "s", "ms", "us", "ns"):
            return
        midnight = -offset_s(time.zone if time.unit is None else "UTC", low // (day // 86400)) * (day // 86400)
        allowed = {(midnight + shift * day // 24) % day for shift in ((0,) if time.zone == "UTC" else (-1, 0, 1))}

        def whole(k: int) -> bool:
            times = self._blocks.times(k)  # most files differ at once
            return all(np.isin(some % day, list(allowed)).all() for some in (times[:100], times))

        if whole(0) and all(self._blocks.walk(whole, range(len(self._blocks.extents)))):
            self._add(
                "whole_days",
                f"all times are whole days, from {self._moment(low)[:10]} to {self._moment(high)[:10]}: the events of "
                "a day count as in order; is there a column with the time of day?",
                self._all.events,
            )

    # -- words

    def _far_text(self, group: Far, rows: list[int], before: Count) -> str:
        lines = self._lines(rows, group.own.events)
        without = self._without(before, self._count)
        verb = "is" if group.own.events == 1 else "are"
        own, main = self._years(group.own.low, group.own.high), self._years(group.main.low, group.main.high)
        if group.kind == "two_units":
            finer = self._origin.time.unit or ""
            few, many = (group.unit, finer) if group.region_is_coarse else (finer, group.unit)
            those = f"{UNIT_NAMES[few]}, not {UNIT_NAMES[many]}" if group.region_is_coarse else f"in {UNIT_NAMES[few]}"
            rest = "" if group.region_is_coarse else f", while the others are {UNIT_NAMES[many]}"
            counts = f"{group.main.events:,} times are in {main}, {group.own.events:,} in {own} ({lines})"
            return f"{counts}, which are {those}{rest}; {without}"
        what = f"{counted(group.own.events, 'event')} ({lines}) {verb}"
        if group.kind == "clock_at_1970":
            at = self._moment(group.own.low) + (
                "" if group.own.low == group.own.high else f" to {self._moment(group.own.high)}"
            )
            return f"{what} at {at}, as of a clock that is not set, and the others in {main}; {without}"
        if group.kind == "far_ahead":
            apart, side = group.own.low - group.main.high, "after"
        else:
            apart, side = group.main.low - group.own.high, "before"
        years = apart // (366 * 86400 * ticks_per_second(self._origin.tick))
        return f"{what} in {own}, {counted(years, 'year')} {side} all others; {without}"

    def _unit_text(self, group: Far, rows: list[int]) -> str:
        read, meant = self._origin.time.unit or "", group.unit
        factor = PS[meant] // PS[read]
        which, lines = ("", f"({self._lines(rows, group.own.events)}) ") if rows else ("all ", "")
        low, high = group.own.low, group.own.high
        years, others = self._years(low, high), self._years(low * factor, high * factor)
        times = f"{which}{group.own.events:,} times {lines}are in {years} if they are {UNIT_NAMES[read]}"
        return f"{times}, and in {others} if they are {UNIT_NAMES[meant]}: is the unit {meant}?"

    def _without(self, before: Count, left: Count) -> str:
        """Words for the events that are left, of those before."""
        all_hints = "these and those above" if len(self._kept.regions) + bool(self._kept.rows) > 1 else "them"
        one = left.events == self._all.events - 1
        text = f"without {'it' if one else all_hints} {left.out_of_order:,} of {left.events:,} are out of order"
        if 0 < left.longest < before.longest:
            text += f", and a watermark delay of {show_enough(left.longest, self._origin.tick)} loses none"
        return text

    def _years(self, low: int, high: int) -> str:
        first, last = (self._moment(at).split("-")[0] if at >= 0 else self._moment(at)[:4] for at in (low, high))
        return first if first == last else f"{first} to {last}"

    def _moment(self, at: int) -> str:
        return moment(at, self._origin.tick)

    def _with(self, rows: Iterable[int]) -> Kept:
        return Kept(self._kept.regions, tuple(sorted(rows)))

    # -- lines

    def _lines(self, rows: Sequence[int], events: int) -> str:
        """Words for the lines of those rows, the first of so many events."""
        return self._words(self._placed(self._blocks.at(rows, self._blocks.seqs)), events)

    def _words(self, placed: Sequence[tuple[Place, int]], events: int) -> str:
        lines = [(place.file, number) for place, number in placed]
        word = self._origin.word if self._origin.places else "event"
        return named(lines, events, word, several=len(self._origin.places) > 1)

    def _placed(self, seqs: Sequence[int]) -> list[tuple[Place, int]]:
        """File and number of the line of each event; of generated events, their number from 1."""
        places = self._origin.places or (Place(file="", first_seq=0, first_line=1),)
        begins = [place.first_seq for place in places]
        placed = []
        for seq in seqs:
            place = places[bisect_right(begins, seq) - 1]
            placed.append((place, seq - place.first_seq + place.first_line))
        return placed

    def _add(
        self,
        kind: HintKind,
        text: str,
        events: int,
        rows: Sequence[int] = (),
        without: int | None = None,
        left: Count | None = None,
    ) -> None:
        """Adds a hint. without: events out of order if nothing were amiss. left: counts without the hint's events."""
        hint = self._hint(kind, text, events, self._placed(self._blocks.at(rows, self._blocks.seqs)), without)
        if left:
            hint = hint.model_copy(update={"without": left.out_of_order, "enough_without": left.longest})
        self._hints.append(hint)

    def _hint(
        self, kind: HintKind, text: str, events: int, placed: Sequence[tuple[Place, int]], without: int | None = None
    ) -> Hint:
        files = tuple(place.file for place, _ in placed) if len(self._origin.places) > 1 else ()
        lines = tuple(line for _, line in placed)
        return Hint(kind=kind, text=text, lines=lines, files=files, events=events, without=without)
