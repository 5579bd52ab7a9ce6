"""Lines of a job that set a delay, in the words of each engine. Pure.

Durations stand in the largest unit in which they are whole; the delay is rounded up to whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamgauge.base.units import PS, Tick
from streamgauge.records.advice import CodeLine, Question

#: units from the largest on: picoseconds, and what Spark, Java and SQL call them
_UNITS = (
    (86_400 * PS["s"], "day", "Days", "DAY"),
    (3_600 * PS["s"], "hour", "Hours", "HOUR"),
    (60 * PS["s"], "minute", "Minutes", "MINUTE"),
    (PS["s"], "second", "Seconds", "SECOND"),
    (PS["ms"], "millisecond", "Millis", ""),
)
#: number of digits -> the least number that needs more
_DIGITS = {2: 100, 3: 1000}


def lines(
    question: Question, delay: int, tick: Tick, event_time: str = "ts", idle: int | None = None
) -> tuple[CodeLine, ...]:
    """Returns what to write for a delay. event_time: column of the event time. delay, idle: in ticks.

    idle: how long a part may be silent before the watermark no longer waits for it; None: no part is ever idle.
    """
    made = _lines(question, delay * PS[tick], PS[tick], event_time, None if idle is None else idle * PS[tick])
    return tuple(CodeLine(engine=engine, text=text) for engine, text in made)


def _lines(
    question: Question, delay_ps: int, tick_ps: int, event_time: str, idle_ps: int | None
) -> Iterator[tuple[str, str]]:
    yield "Spark", f'.withWatermark("{event_time}", "{spark(delay_ps)}")'
    idleness = "" if idle_ps is None else f".withIdleness({java(idle_ps)})"
    yield "Flink", f"WatermarkStrategy.<Event>forBoundedOutOfOrderness({java(delay_ps)}){idleness}"
    if question.allowed_lateness:
        yield "Flink", f".allowedLateness({java(question.allowed_lateness * tick_ps)})"
    if delay_ps < _DIGITS[3] * _UNITS[0][0]:
        yield "Flink SQL", f"WATERMARK FOR `{event_time}` AS `{event_time}` - {sql(delay_ps)}"
    if question.length * tick_ps % PS["ms"]:
        return  # Kafka's windows are whole milliseconds
    length, grace = java(question.length * tick_ps), java(delay_ps)
    match question.answers:
        case "tumbling":
            yield "Kafka Streams", f"TimeWindows.ofSizeAndGrace({length}, {grace})"
        case "sliding":
            slide = java(question.slide * tick_ps)
            yield "Kafka Streams", f"TimeWindows.ofSizeAndGrace({length}, {grace}).advanceBy({slide})"
        case "session":
            yield "Kafka Streams", f"SessionWindows.ofInactivityGapAndGrace({length}, {grace})"
        case "join":
            yield "Kafka Streams", f"JoinWindows.ofTimeDifferenceAndGrace({length}, {grace})"


def spark(ps: int) -> str:
    """A duration as Spark reads an interval: 1 second, 37 seconds."""
    count, (_, name, _, _) = _largest(ps)
    return f"{count} {name}{'' if count == 1 else 's'}"


def java(ps: int) -> str:
    """A duration as an expression of Java, of `java.time.Duration`."""
    count, (_, _, name, _) = _largest(ps)
    # a number beyond an int is a mistake without its letter
    return f"Duration.of{name}({count}{'L' if count >= 2**31 else ''})" if count else "Duration.ZERO"


def sql(ps: int) -> str:
    """A duration as an interval of Flink's SQL, whose first unit has two digits, or three if (3) says so."""
    count, (size, _, _, name) = _largest(ps)
    if count < _DIGITS[3] and size > PS["ms"]:
        return f"INTERVAL '{count}' {name}{_digits(count)}"
    seconds, ms = divmod(count * size // PS["ms"], 1000)
    if seconds < _DIGITS[2]:
        return f"INTERVAL '{seconds}.{ms:03}' SECOND"
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.{ms:03}"
    return f"INTERVAL '{days} {clock}' DAY{_digits(days)} TO SECOND(3)"


def _digits(count: int) -> str:
    return "" if count < _DIGITS[2] else "(3)"


def _largest(ps: int) -> tuple[int, tuple[int, str, str, str]]:
    """The duration in the largest unit in which it is whole, rounded up to milliseconds; seconds if it is 0."""
    whole = -(-ps // PS["ms"]) * PS["ms"]
    unit = next(unit for unit in _UNITS if whole % unit[0] == 0) if whole else _UNITS[3]
    return whole // unit[0], unit
