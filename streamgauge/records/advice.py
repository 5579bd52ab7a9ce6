"""The record of an advice, `advice.json`: what each watermark delay loses, and which one keeps its promise.

Times are whole ticks. docs/advise.md explains it.
"""

from __future__ import annotations

from typing import Literal, get_args

from streamgauge.base.units import Tick
from streamgauge.records.loss import Loss
from streamgauge.records.profile import Hint, Span
from streamgauge.records.record import Part, Record

Answers = Literal["tumbling", "sliding", "session", "join", "event"]
ANSWERS: tuple[Answers, ...] = get_args(Answers)
Target = Literal["lost", "windows_wrong"]


class Question(Part):
    """Question that a job answers from its events, and the loss that it may have."""

    answers: Answers
    length: int = 0  # of a window; the gap of sessions; or how far apart two events of a join may lie
    slide: int = 0  # from one window's begin to the next one's
    key: str | None = None  # column of the key; without one, all events have one key
    value: str | None = None  # column whose sum is looked at
    left: str | None = None  # COLUMN=VALUE: the events that are the left half of a join
    allowed_lateness: int = 0  # how much longer an answer may be revised once it was given
    target: Target | None = None
    share: float | None = None  # largest share of the events that may be lost, or of the windows that may be wrong

    @property
    def windows(self) -> bool:
        """True if the answers are of windows at fixed places."""
        return self.answers in ("tumbling", "sliding")

    @property
    def answer(self) -> str:
        """The word for one answer."""
        return "window" if self.windows else {"session": "session", "join": "pair"}.get(self.answers, "event")


class Errors(Part):
    """Relative errors of the answers that are wrong; a missing answer's is 1."""

    median: float
    worst: float


class Wait(Part):
    """Time after a window's end until its answer comes; quantiles within 0.4 %. None if no answer comes."""

    p50: int | None
    p99: int | None


class Trade(Part):
    """Gains and losses of one watermark delay, with a watermark after each event.

    Without windows, what is said of them is None. The answers of a join are its pairs.
    """

    delay: int
    lost: int  # events in no answer that they belong to
    lost_in_part: int  # events that at least one of their answers lacks; more than `lost` where windows overlap
    windows: int | None = None  # answers of the whole stream: windows by key, sessions, or pairs
    windows_wrong: int | None = None  # answers that stay wrong
    count_error: Errors | None = None  # of the number of events in a wrong answer; None without a wrong one
    value_error: Errors | None = None  # of the sum of the value in an answer whose count is wrong
    wait: Wait | None = None  # in event time: from a window's end to the event that closes it
    wait_arrival: Wait | None = None  # in arrival time, where the source has it
    open_windows: int | None = None  # most windows, by key, that are open at once
    revised: int | None = None  # times that an answer is given again, as late events come within the allowed lateness


class Realised(Part):
    """A test of a rule: the share that a block lost at the delay which the blocks before it had given."""

    span: Span  # event times in the block
    delay: int
    share: float


class Tested(Part):
    """A rule for the delay, chosen on the past and tested on the block after it, many times."""

    rule: str
    delay: int | None  # what the rule gives from the whole stream
    tests: int
    held: int  # tests in which at most the promised share was lost
    realised_p50: float
    realised_max: float
    realised: tuple[Realised, ...] = ()  # the tests, in the order of the stream


class Advised(Part):
    """The delay that is advised."""

    delay: int
    promised: float
    rule: str
    tests: int
    held: int
    realised_p50: float
    realised_max: float


class PartAdvice(Part):
    """The advice on a part of the stream, such as a device or a partition, if it has a watermark of its own."""

    part: str | None  # value of the column; None: the events without one
    events: int
    enough: int  # a delay that loses none of its events; the smallest such one, but for sessions
    advised: Advised | None
    reason: str | None  # why no delay is advised


class ByEngine(Part):
    """Loss of a delay under the rules of an engine."""

    engine: str
    rule: str  # its rule in words
    delay: int
    loss: Loss
    state_bytes: int | None = None  # of the windows that are open at once; None where nobody has measured it


class CodeLine(Part):
    """A line of a job that sets the delay."""

    engine: str
    text: str


class MeasuredDelay(Part):
    """A watermark delay as a cell of a run: what a system carried at it, beside what the stream loses at it."""

    trade: Trade
    cell: str
    claim: str  # kind of the claim about the rate
    rate_events_per_s: float | None = None
    interval: tuple[float, float] | None = None  # the 90 % interval of the rate
    p50_ms: float | None = None
    p99_ms: float | None = None  # of event-time latency at the rate that all delays share; None if it was not sustained
    state_bytes: int | None = None  # the largest state at that rate; None where the engine reports none
    output: str  # whether the answers were right


class MeasuredTrade(Part):
    """The trade of an advice, measured: cells that differ in their watermark alone."""

    run: str
    system: str
    processes: int  # fresh processes of each delay
    latency_at_events_per_s: float
    stream_seconds_per_second: float | None = None  # stream time that passes in a second at that rate
    delays: tuple[MeasuredDelay, ...]


class Advice(Record):
    """Losses of a stream at each watermark delay, the delay that is advised, and the reason."""

    events: int
    tick: Tick
    event_time: Span
    question: Question
    curve: tuple[Trade, ...]  # by ascending delay
    advised: Advised | None
    reason: str | None  # why no delay is advised
    blocks: int  # into which the stream is cut for the tests
    rules: tuple[Tested, ...]  # the first is the naive one, which is never advised: enough for the past as a whole
    by_part: tuple[PartAdvice, ...] = ()  # of all parts of the column that was named, the most events first
    asked: tuple[int, ...] = ()  # delays that were asked about
    asked_tests: tuple[Tested, ...] = ()  # each of these, tested like a rule; none without a promise
    hints: tuple[Hint, ...] = ()
    engines: tuple[ByEngine, ...] = ()
    lines: tuple[CodeLine, ...] = ()
