"""Hints about the parts of a stream: one whose clock is ahead, one that stops, disorder that comes from merging."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log1p

from streamgauge.base.units import Tick, moment, show_about, show_enough, show_ticks
from streamgauge.records.profile import Hint, Profile, part_name
from streamgauge.streams.disorder.parts import Figures, Name, Silence, Without
from streamgauge.streams.disorder.profile import Spread, bucket_edges

#: most parts that are looked for as those ahead of the others, and most that are named as idle
FEW = 5
#: after a part that stops, so many times as many events follow as ever came between two of its own
_LONGER = 5
#: negative logarithm of the probability that a part stops by chance
_UNLIKELY = 20
#: how many times as long the delays of the merged stream are as those within its parts, if merging makes them
_SHORTER = 5

Left = Callable[[Sequence[Name]], Without]


def about_parts(column: str, figures: Mapping[Name, Figures], whole: Profile, idle: int, without: Left) -> list[Hint]:
    """Returns the hints about the parts of a stream.

    whole: its profile. idle: ticks of the shortest idle spell. without: measures the stream without some parts.
    """
    if len(figures) < 2:
        return []
    hints = _ahead(column, figures, whole, without) or _merging(column, figures, whole)
    return [*hints, *_idle(column, figures, whole, idle)]


def _ahead(column: str, figures: Mapping[Name, Figures], whole: Profile, without: Left) -> list[Hint]:
    """Returns a hint for each of the fewest parts without which hardly any disorder is left.

    They are the minority: a part that is ahead of one other, or of half of the events, may as well be the right one.
    """
    first = sorted(figures, key=lambda one: -figures[one].overtaken)[:FEW]
    if 2 * sum(figures[name].overtaken for name in first) < (whole.out_of_order or 1):
        return []
    hints, names = list[Hint](), list[Name]()
    for name in first:
        names.append(name)
        left_out = sum(figures[one].events for one in names)
        if 2 * left_out > whole.events or len(figures) < len(names) + 2 or not figures[name].overtaken:
            return []
        left = without(names)
        late = left.delays.count
        text = f"without it{' too' * bool(hints)} {late:,} events are out of order instead of {whole.out_of_order:,}"
        text += _enough(left.delays.largest, whole)
        hints.append(
            Hint(kind="part_ahead", text=text, events=figures[name].events, without=late,
                 enough_without=left.delays.largest, part=name)
        )  # fmt: skip
        if _hardly_any(left.delays, whole):
            by = [_by(ahead, whole.tick) for ahead in left.ahead]
            texts = [f"{column} {part_name(hint.part)} {how}; {hint.text}" for hint, how in zip(hints, by, strict=True)]
            return [hint.model_copy(update={"text": text}) for hint, text in zip(hints, texts, strict=True)]
    return []


def _hardly_any(left: Spread, whole: Profile) -> bool:
    """True if at most a tenth of the events out of order is left, or two thirds with a tenth of the median delay."""
    before = whole.out_of_order or 0
    if before - left.count < max(20, whole.events // 1000):
        return False
    shorter = 10 * (left.approximate().p50 or 0) <= (whole.delay.p50 or 0)
    return 10 * left.count <= before or (3 * left.count <= 2 * before and shorter)


def _by(ahead: Spread, tick: Tick) -> str:
    """Words for how far a part is ahead of the others, most of the time or now and then."""
    summary = ahead.approximate()
    usual, most = summary.p50 or 0, summary.p99 or 0
    if 2 * usual >= most:
        return f"runs {show_about(usual, tick)} ahead of the others"
    far = sum(events for bucket, events in ahead.buckets.items() if 2 * bucket_edges(bucket)[0] >= most)
    return f"has {far:,} of {ahead.count:,} events ahead of the others, by about {show_about(most, tick)}"


def _enough(delay: int, whole: Profile) -> str:
    if not 0 < delay < (whole.delay.max or 0):
        return ""
    return f", and a watermark delay of {show_enough(delay, whole.tick)} loses none"


def _merging(column: str, figures: Mapping[Name, Figures], whole: Profile) -> list[Hint]:
    """Returns a hint if hardly any event is out of order within its part, or none by much."""
    within, longest = sum(one.delays.count for one in figures.values()), whole.delay.max or 0
    out_of_order, enough = whole.out_of_order or 0, max(one.delays.largest for one in figures.values())
    if not out_of_order or (10 * within > out_of_order and _SHORTER * enough > longest):
        return []
    parts, merged = f"{len(figures):,}", out_of_order - within
    if not within:
        text = f"each of {parts} streams by {column} is in order alone: all {merged:,} events out of order come from "
        text += "merging them"
    elif 10 * within <= out_of_order:
        text = f"{merged:,} of {out_of_order:,} events out of order are in order within their {column}: merging the "
        text += f"{parts} streams makes them so"
    else:
        text = f"merging {parts} streams by {column} makes delays longer"
    needs = f"a delay of {show_enough(enough, whole.tick)}" if enough else "no delay"
    text += f"; a watermark for each {column} needs {needs}, one for all {show_enough(int(longest), whole.tick)}"
    return [Hint(kind="merging", text=text, events=merged, without=within, enough_without=enough)]


def _idle(column: str, figures: Mapping[Name, Figures], whole: Profile, idle: int) -> list[Hint]:
    """Returns a hint for each part that stops; none if that is usual among the parts."""
    stopped = [(one.end, name) for name, one in figures.items() if one.end and _stops(one, one.end, whole.events, idle)]
    if 2 * len(stopped) > len(figures):
        return []
    hints = list[Hint]()
    for end, name in sorted(stopped, key=lambda one: -one[0].events)[:FEW]:
        text = f"{column} {part_name(name)} stops at {moment(end.since, whole.tick)}, "
        text += f"{show_ticks(end.ticks, whole.tick)} and {end.events:,} events of others before the end"
        if not hints:
            text += f": if each {column} has a watermark, as partitions have in Flink, it holds all others back from "
            text += "then on, unless it counts as idle after a while (--idle)"
        if len(hints) + 1 == FEW and len(stopped) > FEW:
            text += f"; {len(stopped) - FEW:,} more parts stop"
        hints.append(Hint(kind="part_idle", text=text, events=end.events, part=name))
    return hints


def _stops(part: Figures, end: Silence, events: int, idle: int) -> bool:
    """Returns whether a part hardly stays away by chance: each of its returns might as well have come later."""
    return (
        end.ticks > idle
        and 100 * end.events >= events
        and end.events >= _LONGER * part.longest_absence
        and -part.returns * log1p(-end.events / events) >= _UNLIKELY
    )
