"""Rules by which an engine drops late events, as its adapter declares them before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StrictBool, StrictInt, model_validator
from pydantic.dataclasses import dataclass

from streamgauge.records.loss import Kind

#: whose largest event time a watermark follows: all queues have one watermark; each has its own, of which the least
#: judges every event; each judges its own events, as Kafka Streams' time of a partition does; or each key has its own
Clock = Literal["all queues", "least queue", "own queue", "own key"]
#: what an engine counts as late; groups are those of a micro-batch
Counted = Literal["rows", "groups", "events in no window", "none"]
#: ms, below every event time, and within 64 bits also in µs: a watermark before the first event, if an engine has none
LEAST_MS = -(2**62) // 1000
#: 36,000 years in µs: no span of a rule is longer, so that sums of times fit into 64 bits
MOST_US = 2**60
_Span = Annotated[StrictInt, Field(ge=0, le=MOST_US)]
_FORBID = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_FORBID)
class Operator:
    """Rule by which an operator loses an event: never, once its window or session has ended, or below the watermark.

    tolerance: an event below it may be lost, by what a job says of itself. length_us: of a window, or the gap of a
    session. A window begins at each multiple of slide_us, plus offset_us. lag_us: how far the operator's watermark lies
    behind that of the first one.
    """

    kind: Kind
    length_us: _Span = 0
    slide_us: _Span = 0
    offset_us: Annotated[StrictInt, Field(ge=-MOST_US, le=MOST_US)] = 0
    lag_us: _Span = 0

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.kind in ("window", "session") and self.length_us == 0:
            raise ValueError(f"length_us: found 0, allowed for a {self.kind}: from 1 on")
        if self.kind == "window" and (self.slide_us == 0 or self.length_us % self.slide_us):
            allowed = f"a whole part of the window's length, {self.length_us}"
            raise ValueError(f"slide_us: found {self.slide_us}, allowed: {allowed}")
        return self

    @property
    def span(self) -> str:
        """Description of its windows, or of its gap; empty where it has none."""
        if self.kind == "session":
            return f"sessions with a gap of {self.length_us:,} µs"
        if self.kind != "window":
            return ""
        begin = self.offset_us % self.slide_us
        return f"windows of {self.length_us:,} µs every {self.slide_us:,} µs{f', plus {begin:,} µs' if begin else ''}"


@dataclass(frozen=True, config=_FORBID)
class Pace:
    """Cadence of a watermark while a stream comes at its own speed.

    kind: after each event, at intervals of arrival, or with micro-batches at such intervals. interval_us: length of an
    interval; 0: one for each event. behind: how many intervals later an event moves the watermark by which others are
    judged; 1: by the watermark of their own micro-batch, which follows those before it; 2: by that of the one before.
    step_us: the largest event time is rounded down to a multiple.
    """

    kind: Literal["event", "interval", "micro-batch"] = "event"
    interval_us: _Span = 0
    behind: Literal[1, 2] = 1
    step_us: Annotated[StrictInt, Field(ge=1, le=MOST_US)] = 1

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.kind == "event") != (self.interval_us == 0):
            allowed = "0" if self.kind == "event" else "from 1 on"
            raise ValueError(f"interval_us: found {self.interval_us}, allowed for the kind {self.kind}: {allowed}")
        return self

    @property
    def cadence(self) -> str:
        every = f"every {self.interval_us / 1e6:g} s"
        return {
            "event": "a watermark after each event",
            "interval": f"a watermark {every}",
            "micro-batch": f"a micro-batch {every}",
        }[self.kind]


@dataclass(frozen=True, config=_FORBID)
class Rules:
    """Rules of an engine for late events of a query.

    operators: one for each time that the query reads the stream; none before a query is known. delay_us: how far the
    watermark stays behind. equal_is_late: an event at the watermark itself is late, where an operator judges each event
    by itself. joins_first: an event joins the open session that it touches; any other event is judged as a session of
    its own. begins_ms: the watermark before the first event, and the least that there is; what ends at it is late at
    once.
    """

    operators: tuple[Operator, ...] = ()
    delay_us: _Span = 0
    clock: Clock = "all queues"
    pace: Pace = Pace()
    equal_is_late: StrictBool = False
    joins_first: StrictBool = True
    begins_ms: Annotated[StrictInt, Field(ge=LEAST_MS, le=-LEAST_MS)] = LEAST_MS
    late_counted: Counted = "rows"

    @property
    def losing(self) -> Operator:
        """The first operator that may lose an event; the first of all if none may."""
        return next((one for one in self.operators if one.kind != "never"), self.operators[0])

    @property
    def kind(self) -> Kind:
        """The rule of that operator: "never" if no operator loses an event."""
        return self.losing.kind

    @property
    def by_key(self) -> bool:
        """True if an event's key decides whether it is lost."""
        return self.clock == "own key" or (self.kind == "session" and self.joins_first)


@dataclass(frozen=True, config=_FORBID)
class EngineRules:
    """Rules of an engine before anybody knows a query, by what a job answers (records/advice.py: Answers).

    title: what readers call the engine. by_answer: without operators; their delay is what the engine adds to that of a
    job. Of an answer that is not there, nobody has declared a rule. revises: a job may allow a lateness, within which a
    window takes events after its answer. window_bytes: of state for a window by key that is open, if it was measured.
    """

    title: str
    by_answer: Mapping[str, Rules]
    revises: StrictBool = False
    window_bytes: Annotated[StrictInt, Field(gt=0)] | None = None
