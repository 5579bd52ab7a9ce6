"""Settings of a source that is a Kafka topic."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, Self, TypeGuard

from pydantic import BeforeValidator, ConfigDict, Field, NonNegativeInt, PositiveInt, WithJsonSchema, model_validator

from streamgauge.base.field_types import Model
from streamgauge.base.units import PS, Duration
from streamgauge.descriptions.kafka_security import Security
from streamgauge.descriptions.schema_registry import SchemaRegistry, check_registry, check_writer_schema, schema_text

#: what a record tells beside its value, as a column of the source, and its type; a header's name follows HEADER
OWN = {"kafka.partition": "int64", "kafka.offset": "int64", "kafka.timestamp": "int64", "kafka.key": "string"}
HEADER = "kafka.header."
#: name of the column by which the partitions of a topic are measured
PARTITION = "kafka_partition"
_AGO = re.compile(r"-(.+)")
_OFFSETS = re.compile(r"(\d+:\d+)(,\d+:\d+)*")
_ADDRESS = re.compile(r"kafka://([^/@\s]+)/([A-Za-z0-9._-]{1,249})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ALLOWED = "an age such as -2h, an instant such as 2026-05-01T12:00:00Z, or partitions with offsets such as 0:100,1:250"


def moment_ms(given: str, now_ms: int) -> int:
    """Returns an age or an instant in ms since 1970. Raises ValueError for another text."""
    if ago := _AGO.fullmatch(given):
        return now_ms - Duration.parse(ago[1]).ps // PS["ms"]
    at = datetime.fromisoformat(given)
    return ((at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


def _edge(word: str) -> Callable[[object], object]:
    """A check of one end of a range: the word, an age, an instant of ISO-8601, or offsets by partition."""

    def check(given: object) -> object:
        if isinstance(given, date):  # as YAML reads it
            given = given.isoformat()
        if isinstance(given, dict) or given == word:
            return given
        if isinstance(given, str) and _OFFSETS.fullmatch(given):
            pairs = [pair.split(":") for pair in given.split(",")]
            return {int(partition): int(offset) for partition, offset in pairs}
        try:
            moment_ms(str(given), 0)
        except ValueError:
            raise ValueError(f"found {given!r}, allowed: {word}, {_ALLOWED}") from None
        return given

    return check


Offset = NonNegativeInt
_EDGE = {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "integer"}}]}


class Pinned(Model):
    """Records of a topic that do not change: those of its id in fixed ranges of offsets."""

    topic_id: str = Field(description="id of the topic; one that is made anew under its name has another")
    ranges: dict[int, tuple[Offset, Offset]] = Field(
        description="partition → its first offset, and the one that ends it"
    )
    appended: bool = Field(description="true if records bear the time at which the broker took them")


class Topic(Model):
    """A range of a Kafka topic's records, and what their values hold."""

    model_config = ConfigDict(serialize_by_alias=True)

    bootstrap: Annotated[str, Field(min_length=1)] = Field(description="host:port of the Kafka broker")
    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] = Field(description="name of the topic")
    start: Annotated[str | dict[int, Offset], BeforeValidator(_edge("earliest")), WithJsonSchema(_EDGE)] = Field(
        default="earliest", alias="from", description=f"the first records: earliest, {_ALLOWED}"
    )
    until: Annotated[str | dict[int, Offset], BeforeValidator(_edge("latest")), WithJsonSchema(_EDGE)] = Field(
        default="latest", description=f"the end, which is no longer read: latest, {_ALLOWED}"
    )
    most_events: PositiveInt | None = Field(
        default=None,
        description="number of offsets from the first on that are read at most; each partition gives its share",
    )
    values: Literal["json", "line", "avro", "confluent-avro", "confluent-json"] = Field(
        default="json", description="contents of a record's value: json, line, avro, confluent-avro, confluent-json"
    )
    writer_schema: str | None = Field(default=None, description="values avro: their schema as JSON, or a file with it")
    registry: SchemaRegistry | None = Field(default=None, description="schema registry of values confluent-…")
    security: Security = Field(
        default_factory=dict,
        description="settings of librdkafka for SASL and TLS, such as sasl.username; secrets as ${VARIABLE}",
    )
    pinned: Pinned | None = Field(default=None, description="written by a run: the records that it has read")

    @model_validator(mode="after")
    def _read_by_a_schema(self) -> Self:
        check_registry(self.registry, self.values)
        check_writer_schema(self.writer_schema, self.values)
        return self

    def located(self, base: Path) -> Self:
        """The same, with the text of the schema's file and the place of the certificates, which lie at base."""
        schema = self.writer_schema and schema_text(self.writer_schema, base, "source.kafka.writer_schema")
        registry = self.registry and self.registry.located(base)
        return self.model_copy(update={"writer_schema": schema, "registry": registry})

    @property
    def url(self) -> str:
        return f"kafka://{self.bootstrap}/{self.topic}"

    @property
    def has_parts(self) -> bool:
        """True if several partitions are read, as far as that is known."""
        return self.pinned is not None and len(self.pinned.ranges) > 1

    @property
    def offsets(self) -> int:
        """Number of offsets in the fixed range; 0 without one."""
        return sum(end - first for first, end in self.pinned.ranges.values()) if self.pinned is not None else 0

    @property
    def is_json(self) -> bool:
        """True if decoded values are JSON objects, false if they are lines of fields."""
        return self.values != "line"


def of_topic(source: dict[str, object]) -> dict[str, object]:
    """Returns the keys of a source with what a topic determines: lines without a header, the unit of records' times."""
    timed = {key: {**time, "unit": "ms"} for key in ("time", "arrival") if _is_plain_own_time(time := source.get(key))}
    topic = source.get("kafka")
    is_line = isinstance(topic, dict) and topic.get("values") == "line"
    return {"header": False, **({} if is_line else {"separator": "tab"}), **source, **timed}


def _is_plain_own_time(time: object) -> TypeGuard[dict[str, object]]:
    """True for a column of records' own times that does not say how they are written."""
    if not isinstance(time, dict) or time.get("column") != "kafka.timestamp":
        return False
    return not any(time.get(key) for key in ("unit", "format", "iso"))


def is_beside(place: str | int) -> bool:
    """True for a column that a record tells beside its value."""
    return place in OWN or str(place).startswith(HEADER)


def refuse_unknown(key: str, place: str | int) -> None:
    """Raises ValueError for a column that looks as if records had it."""
    if str(place).startswith("kafka.") and not is_beside(place):
        own = ", ".join((*OWN, f"{HEADER}NAME"))
        raise ValueError(f"{key}: found column {place!r}, allowed: {own}, or what a value has")


def of_url(text: str) -> dict[str, str]:
    """Returns the keys that kafka://HOST:PORT/TOPIC gives. Raises ValueError for another text."""
    address = _ADDRESS.fullmatch(text)
    if address is None:
        raise ValueError(f"found {text!r}, allowed: kafka://HOST:PORT/TOPIC")
    return {"bootstrap": address[1], "topic": address[2]}
