"""Counts what a delay loses under the rules of each engine, in one pass over a stream. Pure, but for reading it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamgauge.base.units import PS, Tick
from streamgauge.catalog.artifacts import Artifact
from streamgauge.descriptions.topic import PARTITION
from streamgauge.records.advice import Advice, ByEngine, Question
from streamgauge.records.loss import Kind
from streamgauge.records.manifests import EventsManifest
from streamgauge.records.rules import EngineRules, Operator, Rules
from streamgauge.streams.advice.lines import lines
from streamgauge.streams.advice.pieces import Keys, arrival_times
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times, running_maximum
from streamgauge.streams.disorder.row_groups import RowGroup, column_array, parts_of, read, row_groups
from streamgauge.streams.lateness.loss import LossCount

_KINDS: dict[str, Kind] = {"tumbling": "window", "sliding": "window", "session": "session"}
_LOST = {
    "window": "an event is lost once the watermark has reached the end of its windows",
    "session": "an event is lost once the watermark has reached the end of its session",
}
_CLOCKS = {
    "all queues": "",
    "least queue": ", the least of the partitions' own",
    "own queue": ", for each partition its own",
    "own key": ", for each key its own",
}
_UNKNOWN_ARRIVAL = "arrival times are unknown: an event counts as coming when the largest event time so far is reached"


@dataclass(frozen=True)
class Asked:
    """A delay in ticks, and the question. most_open: most windows by key that are open at once, if they are known."""

    question: Question
    delay: int
    tick: Tick
    most_open: int | None = None

    def rules(self, engine: EngineRules) -> Rules | None:
        """Returns the rules of an engine; None where it has declared none, or its µs are too coarse."""
        question, ticks = self.question, PS["us"] // PS[self.tick]
        declared = engine.by_answer.get(question.answers)
        if declared is None or question.length % ticks or question.slide % ticks:
            return None
        kind = _KINDS.get(question.answers, "event")
        spans = (question.length // ticks, question.slide // ticks) if kind != "event" else (0, 0)
        beyond = self.delay + (question.allowed_lateness if engine.revises else 0)
        delay_us = declared.delay_us + -(-beyond // ticks)
        return replace(declared, operators=(Operator(kind, *spans),), delay_us=delay_us)

    def state_bytes(self, engine: EngineRules) -> int | None:
        """Bytes of the open windows; None where they are not known."""
        if self.most_open is None or engine.window_bytes is None:
            return None
        return self.most_open * engine.window_bytes


@dataclass(frozen=True)
class Arrivals:
    """Consecutive events in order of arrival. keys, partition: a number for each."""

    event_us: Times
    arrival_us: Times
    keys: Times | None = None
    partition: Times | None = None


def by_engine(
    engines: Iterable[EngineRules], asked: Asked, pieces: Iterable[Arrivals], *, partitions: int = 1,
    with_arrival: bool = True,
) -> tuple[ByEngine, ...]:  # fmt: skip
    """Returns what the delay loses under each engine's rules. with_arrival: arrival times are those of the source.

    Rules `by_key` want the whole stream as one piece.
    """
    ruled = [(engine, rules) for engine in engines if (rules := asked.rules(engine)) is not None]
    counts = [LossCount(rules, partitions) for _, rules in ruled]
    for piece in pieces:
        for count in counts:
            count.add(piece.event_us, piece.arrival_us, keys=piece.keys, queue=piece.partition)
    return tuple(
        ByEngine(
            engine=engine.title,
            rule=in_words(rules, with_arrival),
            delay=asked.delay,
            loss=count.loss(),
            state_bytes=asked.state_bytes(engine),
        )
        for (engine, rules), count in zip(ruled, counts, strict=True)
    )


def of_artifact(engines: Iterable[EngineRules], events: Artifact, asked: Asked) -> tuple[ByEngine, ...]:
    """Returns what the delay loses of an artifact with event times in stream order, under each engine's rules.

    The whole stream is read at once if the rules of one engine are `by_key`, else row group by row group.
    """
    manifest, groups, given = events.read(EventsManifest), row_groups(events.files()), tuple(engines)
    partition = PARTITION if PARTITION in manifest.columns else None
    partitions = 1
    if partition is not None:
        columns = [read([group], [partition]).column(0).unique() for group in groups]
        partitions = len(pa.chunked_array(columns).unique())
    whole = any(rules is not None and rules.by_key for rules in map(asked.rules, given))
    pieces = arrivals(groups, asked, whole=whole, with_arrival=manifest.arrival, partition=partition)
    return by_engine(given, asked, pieces, partitions=partitions, with_arrival=manifest.arrival)


def with_engines(
    advice: Advice, engines: Sequence[EngineRules], events: Artifact, asked: Sequence[int] = (), *,
    event_time: str = "ts", idle: int | None = None,
) -> Advice:  # fmt: skip
    """Returns the advice with what its delay loses on each engine, and the lines that set it.

    Without an advised delay it speaks of the asked ones. event_time: column for the lines. idle: from `lines`.
    """
    most_open = {one.delay: one.open_windows for one in advice.curve}
    delays = (advice.advised.delay,) if advice.advised else tuple(dict.fromkeys(asked))
    table = (
        one
        for delay in delays
        for one in of_artifact(engines, events, Asked(advice.question, delay, advice.tick, most_open.get(delay)))
    )
    written = lines(advice.question, delays[0], advice.tick, event_time, idle) if len(delays) == 1 else ()
    return advice.model_copy(update={"engines": tuple(table), "lines": written})


def in_words(rules: Rules, with_arrival: bool) -> str:
    """Rules in words. with_arrival: arrival times are those of the source."""
    below = "at the watermark or below" if rules.equal_is_late else "below the watermark"
    lost = _LOST.get(rules.kind, f"an event is lost {below}")
    before = ", judged by the watermark of the one before" if rules.pace.behind == 2 else ""
    unknown = "" if with_arrival or rules.pace.kind == "event" else f"; {_UNKNOWN_ARRIVAL}"
    return f"{rules.pace.cadence}{before}{_CLOCKS[rules.clock]}; {lost}{unknown}"


def arrivals(
    groups: Sequence[RowGroup], asked: Asked, *, whole: bool, with_arrival: bool, partition: str | None = None
) -> Iterator[Arrivals]:
    """Yields the events of row groups. whole: as one piece. partition: the column of a topic's partitions."""
    key, before_us = asked.question.key, BEFORE_ALL
    names = ["event_time", *["arrival_time"] * with_arrival, *filter(None, dict.fromkeys((key, partition)))]
    partitions = Keys()
    for some in [groups] if whole else ([group] for group in groups):
        table = read(some, names)
        event_us = column_array(table, "event_time") // (PS["us"] // PS[asked.tick])
        # an unknown arrival time counts as that of the event before
        arrived = arrival_times(table) // (PS["us"] // PS[asked.tick]) if with_arrival else event_us
        arrival_us = running_maximum(arrived, before_us)
        before_us = int(arrival_us[-1])
        keys = parts_of(table.column(key))[1] if key and whole else np.zeros(len(event_us), np.int64)
        yield Arrivals(event_us, arrival_us, keys, partitions.of(table.column(partition)) if partition else None)
