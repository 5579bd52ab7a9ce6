"""Counts what a stream loses, event by event in plain Python, from the rules in words."""

from __future__ import annotations

Event = tuple[int, int]  # event time and arrival


def watermarks(
    events: list[Event],
    delay: int,
    interval: int,
    behind: int,
    step: int,
    least: int | None,
    queues: int,
    *,
    own: bool = False,
) -> list[int | None]:
    """The watermark that judges each event; None: there is none yet. own: each queue judges its own events."""
    watermarks: list[int | None] = []
    for i, (_, arrival) in enumerate(events):
        largest: list[int | None] = []
        watched = [i % queues] if own else list(range(queues))
        for queue in watched:
            mine = [j for j in range(i) if j % queues == queue]
            if interval:  # also events that come later in this piece never count: their interval has not ended
                mine = [j for j in mine if events[j][1] // interval <= arrival // interval - behind]
            largest.append(max((events[j][0] for j in mine), default=None))
        known = [one for one in largest if one is not None]
        watermark = None if len(known) < len(watched) else min(known) // step * step - delay
        if least is not None:
            watermark = least if watermark is None else max(watermark, least)
        watermarks.append(watermark)
    return watermarks


def windows_of(event: int, length: int, slide: int) -> list[int]:
    """Ends of the windows [end - length, end) that hold the event."""
    candidates = range((event // slide) * slide - length, event + 2 * length + slide, slide)
    return [start + length for start in candidates if start <= event < start + length]


def windowed(events: list[Event], marks: list[int | None], length: int, slide: int) -> tuple[int, int, int]:
    """Number of events in no window, of events that a window lacks, and of windows that lack one."""
    nowhere = partly = 0
    lacking = set()
    for (event, _), mark in zip(events, marks, strict=True):
        ends = windows_of(event, length, slide)
        closed = [end for end in ends if mark is not None and end <= mark]
        nowhere += closed == ends
        partly += bool(closed)
        lacking |= set(closed)
    return nowhere, partly, len(lacking)


def below(events: list[Event], marks: list[int | None], *, equal: bool) -> int:
    return sum(
        mark is not None and (event < mark or (equal and event == mark))
        for (event, _), mark in zip(events, marks, strict=True)
    )


def alone(events: list[Event], marks: list[int | None], gap: int) -> int:
    return sum(mark is not None and event + gap <= mark for (event, _), mark in zip(events, marks, strict=True))


def joined(events: list[Event], keys: list[int], marks: list[int | None], gap: int) -> int:
    """Events whose session, with all open ones that it touches, has ended; sessions are sets of their events."""
    lost, held = 0, list[tuple[int, set[int]]]()  # key, event times
    for (event, _), key, mark in zip(events, keys, marks, strict=True):
        held = [(k, times) for k, times in held if k != key or mark is None or max(times) + gap > mark]
        near = [times for k, times in held if k == key and min(times) <= event + gap and event <= max(times) + gap]
        whole = {event}.union(*near)
        if mark is not None and max(whole) + gap <= mark:
            lost += 1
            continue
        held = [(k, times) for k, times in held if not (k == key and times in near)] + [(key, whole)]
    return lost
