"""Validates every request of the wire (docs/protocol.md) before a verb sees it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from streamgauge.records.trial import Offsets, StoredHistogram, Whole

_INT64 = 2**63 - 1
Wall = Annotated[int, Field(ge=-_INT64, le=_INT64)]
Attempt = Annotated[str, Field(max_length=200)]
#: largest rate in events/s
MOST_PER_S = 1e12
#: a number that a trial can be made of; a trial itself has narrower bounds (`schedule`)
Number = Annotated[float, Field(ge=0, le=MOST_PER_S, allow_inf_nan=False)]
_DAY_S = 86_400
LONGEST_S = 30 * _DAY_S
#: µs: a sentinel 1,000 years after the last event is after every window
_FARTHEST_US = 1000 * 366 * _DAY_S * 10**6


class Malformed(ValueError):
    """A malformed request, described in one line."""


class Request(BaseModel):
    """A request. Unknown keys are ignored: a later version may send more."""

    model_config = ConfigDict(strict=True, frozen=True)

    @property
    def verb(self) -> str:
        return type(self).__name__.lower()


class Hello(Request):
    version: int = Field(description="a whole number")
    token: str = Field("", max_length=4096, description="text")
    attempt: Attempt | None = Field(None, description="text of at most 200 characters")


class Read(Request):
    partition: Whole = Field(description="a whole number from 0 on")
    start: Whole = Field(alias="from", description="a whole number from 0 on")
    to: Whole | None = Field(None, description="a whole number from 0 on")
    max_rows: Whole | None = Field(None, description="a whole number from 0 on")
    wait_ms: Number = Field(0, description="milliseconds, 0 or more")


class Planned(Request):
    offsets: Offsets = Field(description="an object from partition to row, each a whole number from 0 on")

    @field_validator("offsets")
    @classmethod
    def _numbers(cls, offsets: dict[str, int]) -> dict[str, int]:
        if not all(partition.isascii() and partition.isdigit() and len(partition) < 10 for partition in offsets):
            raise ValueError
        return offsets

    @property
    def rows(self) -> dict[int, int]:
        """Maps partitions to rows."""
        return {int(partition): row for partition, row in self.offsets.items()}


class Commit(Planned): ...


class Ready(Request):
    attempt: Attempt = Field(description="text of at most 200 characters")


class Drops(Request):
    """The part of a report on an engine's own batch, which may add keys."""

    late: Whole = 0


#: by which a mean of wall clocks may be off that was formed in floats of 64 bits
_ROUNDED_NS = 1000


def _two(are_sound: Callable[[int, int], bool]) -> AfterValidator:
    """A check of a list: it has two numbers that are sound together, or none."""

    def check(numbers: list[int]) -> list[int]:
        if numbers and not (len(numbers) == 2 and are_sound(*numbers)):
            raise ValueError
        return numbers

    return AfterValidator(check)


class Body(Request):
    """The report of one epoch. An engine may add keys about its batch."""

    rows: Whole = Field(description="a whole number from 0 on")
    negative: Whole = Field(0, description="a whole number from 0 on")
    least_ns: Wall | None = Field(None, description="the lowest latency in ns if it is negative, or null")
    checksum: int | None = Field(None, ge=-(2**63), lt=2**64, description="a whole number of 64 bits")
    event_latency: StoredHistogram = Field(description="a histogram, as in the protocol")
    processing_latency: StoredHistogram = Field(description="a histogram, as in the protocol")
    emitted_wall_ns: Annotated[list[Wall], _two(lambda first, last: first <= last)] | None = Field(
        None, description="the first and the last emission in ns, or null"
    )
    emitted_mean_wall_ns: Wall | None = Field(None, description="nanoseconds, a whole number")
    clock_offset_ns: Annotated[list[Wall], _two(lambda _, error: error >= 0)] | None = Field(
        None, description="[offset, error] in ns, or null"
    )
    batch: Drops | None = Field(None, description="an object, with whole numbers of late events from 0 on")

    @model_validator(mode="after")
    def _of_these_rows(self) -> Self:
        """Checks for at most one latency of each kind a row, and for a mean emission between first and last."""
        walls, mean = self.emitted_wall_ns, self.emitted_mean_wall_ns
        both = {"event_latency": self.event_latency, "processing_latency": self.processing_latency}
        for name, latencies in both.items():
            if latencies.count > self.rows:
                raise ValueError(f"{name}: found {latencies.count} latencies of {self.rows} rows, allowed: one a row")
        if walls and mean is not None and not walls[0] - _ROUNDED_NS <= mean <= walls[1] + _ROUNDED_NS:
            raise ValueError(f"emitted_mean_wall_ns: found {mean}, allowed: {walls[0]} to {walls[1]}, as emitted")
        return self


def _as_it_came(body: dict[str, Any]) -> dict[str, Any]:
    """The body, keys of the engine's own included. Raises ValidationError."""
    Body.model_validate(body)
    return body


class Report(Ready):
    epoch: Whole = Field(description="a whole number from 0 on")
    body: Annotated[dict[str, Any], AfterValidator(_as_it_came)] = Field(description="an object, as in the protocol")


class Serve(Request):
    key: str = Field(max_length=64, pattern="^[0-9a-f]{8,64}$", description="a stream's key")
    serving: dict[str, Any] = Field(description="an object: what to serve of the stream")


class Open(Request):
    attempt: Attempt = Field("", description="text of at most 200 characters")
    rate: Number = Field(0, description="events/s above 0, at most 1e12")
    seconds: float = Field(0, ge=0, le=LONGEST_S, description="seconds above 0, at most 30 days")
    behind_s: float | None = Field(0, ge=0, le=LONGEST_S, description="seconds, 0 or more, at most 30 days")
    hold: Whole | None = Field(None, description="a whole number of rows from 0 on, or null")
    beyond_us: int = Field(0, ge=0, le=_FARTHEST_US, description="microseconds from 0 to 1,000 years")
    ids: list[str] = Field(default_factory=list, max_length=1000, description="names of declared columns")
    round: int = Field(0, ge=0, lt=2**31, description="a whole number from 0 to 2^31 - 1")
    stream: Whole = Field(0, description="a whole number from 0 on")


class Start(Request):
    start_wall_ns: Wall | None = Field(None, description="a wall clock in ns, a whole number")


class Hold(Request):
    rows: Whole | None = Field(None, description="a whole number from 0 on, or null")
    stream: Whole | None = Field(None, description="a whole number from 0 on, or null")
    first: Wall = Field(0, description="a time in ticks, a whole number of 64 bits")


class Samples(Request):
    since_ns: Wall = Field(0, description="a wall clock in ns, a whole number")


class Latest(Request): ...


class Stop(Request): ...


class Status(Request): ...


class Observe(Request):
    first: Whole = Field(0, description="number of the reports, in the order of their epochs, that are there already")


_OF: dict[str, type[Request]] = {
    model.__name__.lower(): model
    for model in (
        Hello, Latest, Read, Planned, Commit, Ready, Report, Serve, Open, Start, Hold, Samples, Stop, Status, Observe,
    )
}  # fmt: skip
VERBS = tuple(_OF)


def parsed(line: bytes) -> dict[str, object]:
    """The JSON object of one line. Raises Malformed."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise Malformed(f"request: found {shown(line)}, allowed: a JSON object on one line") from None
    if not isinstance(request, dict):
        raise Malformed(f"request: found {shown(request)}, allowed: a JSON object with a verb")
    return request


def checked(request: Mapping[str, object]) -> Request:
    """Returns the valid request of a JSON object. Raises Malformed, which names the first invalid field."""
    verb = request.get("verb")
    if not isinstance(verb, str) or verb not in _OF:
        raise Malformed(f"verb: found {shown(verb)}, allowed: {', '.join(VERBS)}")
    try:
        return _OF[verb].model_validate(request)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        raise Malformed(_line(_OF[verb], first["loc"], first)) from None


def _line(model: type[BaseModel], place: tuple[int | str, ...], error: ErrorDetails) -> str:
    """Says in one line what was found at that place, and what is allowed there."""
    if model is Report and place and place[0] == "body" and (len(place) > 1 or error["type"] == "value_error"):
        return "body." + _line(Body, place[1:], error)
    if error["type"] == "value_error" and not place:
        return str(error["ctx"]["error"])
    named = {field.alias or name: field for name, field in model.model_fields.items()}
    field = named[str(place[0])]
    if error["type"] == "missing":
        return f"{place[0]}: found nothing, allowed: {field.description}"
    return f"{place[0]}: found {shown(error['input'])}, allowed: {field.description}"


def shown(value: object) -> str:
    """Returns a value for a message: on one line, and short."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
