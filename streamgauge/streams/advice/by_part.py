"""Advice on each part of a stream, such as a device or a partition, whose watermark is its own. Pure, but for reading.

All events are held at once. A part is late behind its own largest time, and not behind that of the others.
"""

from __future__ import annotations

import numpy as np

from streamgauge.base.units import Tick
from streamgauge.records.advice import PartAdvice, Question
from streamgauge.streams.advice import promise, windows
from streamgauge.streams.advice.pieces import Stream
from streamgauge.streams.advice.simulated import Sessions
from streamgauge.streams.advice.slack import enough, judged
from streamgauge.streams.advice.windows import Panes
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times
from streamgauge.streams.disorder.row_groups import parts_of, read

#: most events that are held
MOST_EVENTS = 20_000_000


def of_stream(stream: Stream, column: str, tick: Tick) -> tuple[PartAdvice, ...]:
    """Returns the advice on each value of the column, those with the most events first."""
    times, keys, _, _ = stream.whole()
    names, codes = parts_of(read(stream.groups, [column]).column(column))
    sizes = np.bincount(codes, minlength=len(names))
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])
    return tuple(
        of_part(names[part], times[rows[part]], keys[rows[part]], stream.question, tick)
        for part in np.argsort(-sizes, kind="stable").tolist()
    )


def of_part(part: str | None, times: Times, keys: Times, question: Question, tick: Tick) -> PartAdvice:
    """Returns the advice on a part from all its events in their order. keys: a number for each."""
    if question.answers == "session":
        sessions = Sessions(times, keys, None, question, tick)
        delays = sessions.delays()
        items, least, rules = len(sessions.items), delays[-1], sessions.rules(delays)
    else:
        events = judged(times, BEFORE_ALL, question)
        slack, ends, least = events.slack, events.ends, enough(events.slack, 0, tick)
        if question.target == "windows_wrong":
            known = Panes.of(events, 0, keys, None).windows(question)
            slack, ends = windows.slack(known, question), known.ends
        items = len(slack)
        rules = promise.of_slack(slack, ends, question.share or 0.0, tick)
    advised, reason = promise.judgement(question, rules, items, tick)
    return PartAdvice(part=part, events=len(times), enough=least, advised=advised, reason=reason)
