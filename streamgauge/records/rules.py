"""Rules by which an engine drops late events, as its adapter declares them before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from streamgauge.records.loss import Kind

#: whose largest event time a watermark follows: all queues have one watermark; each has its own, of which the least
#: judges every event; each judges its own events, as Kafka Streams' time of a partition does; or each key has its own
Clock = Literal["all queues", "least queue", "own queue", "own key"]
#: what an engine counts as late; groups are those of a micro-batch
Counted = Literal["rows", "groups", "events in no window", "none"]
#: below every event time, in ms and in µs: a watermark before the first event, where the engine sets none
LEAST_MS = -(2**62) // 1000
#: 36,000 years in µs: no span of a rule is longer, so that sums of times fit into 64 bits
_MOST_US = 2**60


def _one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raises ValueError for a value that is not allowed."""
    if value not in allowed:
        raise ValueError(f"{name}: found {value!r:.80}, allowed: {', '.join(map(str, allowed))}")


def _whole(name: str, value: object, least: int = 0, most: int = _MOST_US) -> None:
    """Raises ValueError for what is no whole number within these bounds."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name}: found {value!r:.80}, allowed: a whole number from {least} to {most}")


@dataclass(frozen=True)
class Operator:
    """Rule by which an operator loses an event: never, once its window or session has ended, or below the watermark.

    tolerance: an event below it may be lost, by what a job says of itself. length_us: of a window, or the gap of a
    session. A window begins at each multiple of slide_us, plus offset_us. lag_us: how far the operator's watermark lies
    behind that of the first one.
    """

    kind: Kind
    length_us: int = 0
    slide_us: int = 0
    offset_us: int = 0
    lag_us: int = 0

    def __post_init__(self) -> None:
        _one_of("kind", self.kind, get_args(Kind))
        _whole("length_us", self.length_us, 1 if self.kind in ("window", "session") else 0)
        _whole("slide_us", self.slide_us)
        _whole("offset_us", self.offset_us, -_MOST_US)
        _whole("lag_us", self.lag_us)
        if self.kind == "window" and (self.slide_us == 0 or self.length_us % self.slide_us):
            allowed = f"a whole part of the window's length, {self.length_us}"
            raise ValueError(f"slide_us: found {self.slide_us}, allowed: {allowed}")


@dataclass(frozen=True)
class Pace:
    """Cadence of a watermark while a stream comes at its own speed.

    kind: after each event, at intervals of arrival, or with micro-batches at such intervals. interval_us: length of an
    interval; 0: one for each event. behind: how many intervals later an event moves the watermark by which others are
    judged; 1: by the watermark of their own micro-batch, which follows those before it; 2: by that of the one before.
    step_us: the largest event time is rounded down to a multiple.
    """

    kind: Literal["event", "interval", "micro-batch"] = "event"
    interval_us: int = 0
    behind: int = 1
    step_us: int = 1

    def __post_init__(self) -> None:
        _one_of("kind", self.kind, ("event", "interval", "micro-batch"))
        _whole("interval_us", self.interval_us, *((0, 0) if self.kind == "event" else (1,)))
        _one_of("behind", self.behind, (1, 2))
        _whole("step_us", self.step_us, 1)

    @property
    def cadence(self) -> str:
        """The cadence in words."""
        every = f"every {self.interval_us / 1e6:g} s"
        return {
            "event": "a watermark after each event",
            "interval": f"a watermark {every}",
            "micro-batch": f"a micro-batch {every}",
        }[self.kind]


@dataclass(frozen=True)
class Rules:
    """Rules of an engine for late events of a query.

    operators: one for each time that the query reads the stream. delay_us: how far the watermark stays behind.
    equal_is_late: an event at the watermark itself is late, where an operator judges each event by itself. joins_first:
    an event joins the open session that it touches; any other event is judged as a session of its own. begins_ms: the
    watermark before the first event, and the least that there is; what ends at it is late at once. exact: the rules
    tell which events are lost at the stream's own speed; otherwise the pace is an estimate, or the loss only may be.
    """

    operators: tuple[Operator, ...]
    delay_us: int = 0
    clock: Clock = "all queues"
    pace: Pace = Pace()
    equal_is_late: bool = False
    joins_first: bool = True
    begins_ms: int = LEAST_MS
    late_counted: Counted = "rows"
    exact: bool = True

    def __post_init__(self) -> None:
        _one_of("clock", self.clock, get_args(Clock))
        _one_of("late_counted", self.late_counted, get_args(Counted))
        _operators(self.operators)
        _pace(self.pace)
        _whole("delay_us", self.delay_us)
        _whole("begins_ms", self.begins_ms, LEAST_MS, -LEAST_MS)
        for name in ("equal_is_late", "joins_first", "exact"):
            _one_of(name, vars(self)[name], (False, True))

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

    @property
    def soonest(self) -> Self:
        """The rules with a watermark after each event, under which no fewer events are lost than at any other pace."""
        return replace(self, pace=Pace())


def _operators(given: object) -> None:
    """Raises ValueError for what are no operators."""
    if not (isinstance(given, tuple) and all(isinstance(one, Operator) for one in given)):
        raise ValueError(f"operators: found {given!r:.80}, allowed: a tuple of Operator(…)")


def _pace(given: object) -> None:
    """Raises ValueError for what is no pace."""
    if not isinstance(given, Pace):
        raise ValueError(f"pace: found {given!r:.80}, allowed: Pace(…)")
