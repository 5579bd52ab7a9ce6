"""Settings of the source of events: files, a topic or the Nexmark generator; a format, times, columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from streamgauge.base.field_types import Delay, Model
from streamgauge.base.plugins import Parts
from streamgauge.base.schemas import NEXMARK, RESERVED
from streamgauge.base.secrets import names_user
from streamgauge.base.units import Duration, Tick, TimeUnit, tick_of
from streamgauge.descriptions.nexmark import Nexmark
from streamgauge.descriptions.topic import Topic, of_topic, refuse_unknown

#: formats of sources; a package registers a SourceFormat of streams/sources/formats.py. A place of code is refused:
#: only what is registered has a version for the key of the events, and goes to executors
FORMATS = Parts("sources", dict.fromkeys(("csv", "parquet", "jsonl", "kafka", "nexmark")))
_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
_ONE_OR_MANY = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _known(name: str) -> str:
    if name not in FORMATS.built_in and FORMATS.outside(name) is None:
        raise ValueError(f"found {name!r}, allowed: {', '.join(FORMATS.names())}")
    return name


def _add_names(schema: dict[str, JsonValue]) -> None:
    """Adds the formats of this project, and those that packages register now."""
    schema["enum"] = [*FORMATS.names()]


def _column(column: object) -> object:
    if not isinstance(column, str | int) or isinstance(column, bool) or (isinstance(column, int) and column < 0):
        raise ValueError(f"found {column!r}, allowed: a name, or a 0-based index")
    return column


Place = Annotated[str | Annotated[int, Field(ge=0)], BeforeValidator(_column)]
Kind = Literal["string", "int64", "float64"]


class Column(Model):
    """A column of a stream that has another name than in the source."""

    path: Place = Field(description="name, path of keys or 0-based index of the column in the source")
    type: Kind = Field(description="string, int64 or float64")


def _form(given: object) -> str:
    """The form in which a column is given, as a mark that no message shows."""
    return "~column" if isinstance(given, Column | dict) else "~kind"


AnyColumn = Annotated[Annotated[Kind, Tag("~kind")] | Annotated[Column, Tag("~column")], Discriminator(_form)]


class TimeColumn(Model):
    """The column of a time, and how the time is written: in a unit, by a datetime pattern, or as ISO-8601."""

    column: Place | None = Field(default=None, description="name of the column, or its 0-based index")
    columns: tuple[Place, ...] = Field(
        default=(), description="instead of column: those whose texts make a time with a blank between them"
    )
    unit: TimeUnit | None = Field(default=None, description="unit of times that are whole numbers")
    format: str | None = Field(default=None, description="strptime (%Y-%m-%d) or letters (yyyy-MM-dd HH:mm:ss)")
    iso: bool = Field(default=False, description="times are ISO-8601; so they are without unit and format, too")
    zone: str = Field(default="UTC", description="IANA zone of times without an offset, such as Europe/Berlin")
    year: Annotated[int, Field(ge=1678, le=2261)] | None = Field(
        default=None, description="year of the first time, if the format has none; it moves on at New Year"
    )

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except Exception:
            raise ValueError(f"found {zone!r}, allowed: an IANA zone such as Europe/Berlin") from None
        return zone

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.unit is not None) + (self.format is not None) + self.iso > 1:
            raise ValueError("give at most one of unit, format, iso")
        if (self.column is None) == (not self.columns):
            raise ValueError("column: give this one, a name or a 0-based index, or columns, a list of them")
        if self.columns and self.unit is not None:
            raise ValueError("columns: found with unit, allowed: with format or iso")
        if self.year is not None and self.format is None:
            raise ValueError("year: found without format, allowed: with a format that has no year")
        return self

    @property
    def parts(self) -> tuple[str | int, ...]:
        """The columns whose texts make the time."""
        return self.columns if self.column is None else (self.column,)

    @property
    def is_local(self) -> bool:
        """True if times without an offset are those of a zone whose clocks may be changed."""
        written = re.sub("'[^']*'", "", self.format or "")
        has_offset = re.search("%z" if "%" in written else "[ZXx]", written)
        return self.unit is None and self.zone != "UTC" and not has_offset

    @property
    def is_iso(self) -> bool:
        """True if times are read as ISO-8601, which is the default without unit and format."""
        return self.unit is None and self.format is None


class Source(Model):
    """A source of events: files in declared order, and how to read them; or a generator."""

    files: Annotated[tuple[str, ...], WithJsonSchema(_ONE_OR_MANY)] = Field(
        default=(), description="names of the files, at least one; formats kafka and nexmark have none"
    )
    format: Annotated[str, AfterValidator(_known)] = Field(
        default="csv",
        description="csv (any flat text), parquet, jsonl (one JSON object a line; columns are paths of keys), kafka, "
        "nexmark, or a format that a package registers",
        json_schema_extra=_add_names,
    )
    nexmark: Nexmark | None = Field(default=None, description="format nexmark: parameters of the generator")
    kafka: Topic | None = Field(default=None, description="format kafka: the topic, and which of its records are read")
    separator: str = Field(
        default=",",
        description="separator of the fields: an ASCII character, or comma, semicolon, tab, pipe, space, blanks",
    )
    comment: Annotated[str, Field(pattern=r"^[!-~]{1,8}$")] | None = Field(
        default=None, description="lines that begin so are no events; they go to the quarantine without counting as bad"
    )
    repeats: bool = Field(
        default=False, description="true if separators in a row part fields as one does; separator: blanks sets it"
    )
    quote: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        default='"', description="quote character; null: none"
    )
    decimal: Literal["point", "comma"] = Field(
        default="point", description="mark between a number's whole part and its fraction"
    )
    header: bool = Field(default=True, description="true if the first line of each file holds the fields' names")
    time: TimeColumn = Field(description="column of the event time")
    arrival: TimeColumn | None = Field(
        default=None, description="column of the arrival time; with it the recorded delay is reported, too"
    )
    order: Literal["file", "arrival", "event_time"] = Field(
        default="file", description="order of the events: as in the files, or sorted by arrival or event time"
    )
    columns: dict[str, AnyColumn] = Field(
        default_factory=dict,
        description="columns kept beside the line, for keys and values of workloads: a type, or {path: …, type: …}",
    )
    column_names: tuple[str, ...] | None = Field(default=None, description="names of the fields if no header has them")
    by: str | None = Field(
        default=None,
        description="name of a column, such as a device: the disorder of each of its values is measured, too",
    )
    idle: Delay = Field(
        default=Duration.parse("1m"), description="time without an event after which a value of `by` is idle"
    )
    expectations: tuple[str, ...] = Field(
        default=(), description="suites of Great Expectations (JSON) that judge the events, beside Streamgauge's own"
    )
    max_bad_fraction: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.01, description="largest fraction of lines that may be bad and go to the quarantine"
    )

    @model_validator(mode="before")
    @classmethod
    def _generated(cls, raw: object) -> object:
        """Adds what the format determines: time and columns of a generated source, separator of JSON lines."""
        if isinstance(raw, dict) and raw.get("separator") == "blanks":
            raw = {**raw, "separator": " ", "repeats": True}
        if isinstance(raw, dict) and raw.get("format") == "jsonl":
            return {"separator": "tab", "header": False, **raw}
        if isinstance(raw, dict) and raw.get("format") == "kafka":
            return of_topic(raw)
        if not isinstance(raw, dict) or raw.get("format") != "nexmark":
            return raw
        for key in ("files", "arrival", "column_names"):
            if raw.get(key):
                raise ValueError(f"{key}: not for format nexmark, which reads no file; leave it out")
        return {"nexmark": {}, "time": {"column": "date_time", "unit": "us"}, "columns": dict(NEXMARK), **raw}

    @field_validator("files", mode="before")
    @classmethod
    def _one_or_many(cls, files: object) -> object:
        names = (files,) if isinstance(files, str) else files
        if isinstance(names, list | tuple) and any(isinstance(one, str) and names_user(one) for one in names):
            raise ValueError("found a URL with a user part (not shown), allowed: one without; see docs/security.md")
        return names

    @field_validator("separator", mode="before")
    @classmethod
    def _single_character(cls, given: object) -> object:
        separator = _SEPARATORS.get(given, given) if isinstance(given, str) else given
        if not isinstance(separator, str) or len(separator) != 1 or ord(separator) > 127 or separator in '\r\n"':
            raise ValueError(f"found {given!r}, allowed: one ASCII character, or one of {' '.join(_SEPARATORS)} blanks")
        return separator

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.order == "arrival" and self.arrival is None:
            raise ValueError("order: arrival needs an arrival column; add source.arrival.column")
        if self.quote is not None and (not self.quote.isascii() or self.quote in ("\n", "\r", self.separator)):
            raise ValueError(
                f"quote: found {self.quote!r}, allowed: an ASCII character other than the separator and line ends, "
                "or null"
            )
        self._check_nexmark()
        self._check_topic()
        if not self.files and self.nexmark is None and self.kafka is None:
            raise ValueError("files: found none, allowed: one name or a list")
        if self.comment is not None and self.format != "csv":
            raise ValueError(f"comment: found with format {self.format}, allowed: format csv")
        if self.decimal == "comma" and (self.format != "csv" or self.separator == ","):
            raise ValueError("decimal: found comma, allowed for format csv with another separator")
        self._check_names()
        if self.by is not None and self.by not in self.columns:
            raise ValueError(f"by: found {self.by!r}, allowed: one of columns: {', '.join(self.columns) or 'none'}")
        if self.is_json:
            self._check_json()
        if self.is_typed and self.quote is None:
            raise ValueError(
                f"quote: found null, allowed for format {self.format}: a character, since its rows become CSV lines"
            )
        return self

    def _check_nexmark(self) -> None:
        """Refuses what events that are made here cannot have."""
        if (self.nexmark is not None) != (self.format == "nexmark"):
            raise ValueError("nexmark: these are parameters of format: nexmark; set both or none")
        if self.nexmark is None:
            return
        for name, kind in self.columns.items():
            if NEXMARK.get(name) != kind:
                allowed = ", ".join(f"{name}: {kind}" for name, kind in NEXMARK.items())
                raise ValueError(f"columns: found {name}: {kind}, allowed: {allowed}")
        usual = (("time", self.time, TimeColumn(column="date_time", unit="us")), ("separator", self.separator, ","))
        for key, given, own in usual:
            if given != own:
                raise ValueError(f"{key}: not for format nexmark, which makes its own events; leave it out")

    def _check_topic(self) -> None:
        """Refuses what a topic cannot have, and columns of records that no record has."""
        if (self.kafka is not None) != (self.format == "kafka"):
            raise ValueError("kafka: these are parameters of format: kafka; set both or none")
        if self.kafka is None:
            return
        if self.files:
            raise ValueError("files: not for format kafka, which reads the topic of kafka; leave it out")
        if self.header:
            raise ValueError("header: found true, allowed for format kafka: column_names, as no record has names")
        for key, place in self._places_by_key():
            refuse_unknown(key, place)

    def _check_json(self) -> None:
        if self.separator != "\t" or self.header or self.column_names is not None:  # tab never occurs within JSON
            raise ValueError("separator: not for JSON, nor header and column_names; leave them out")
        for key, place in self._places_by_key():
            if isinstance(place, int):
                raise ValueError(f"{key}: found column {place}, allowed for JSON: a path of keys, such as a.b")

    def _places_by_key(self) -> Iterator[tuple[str, str | int]]:
        for key, column in (("time", self.time), ("arrival", self.arrival)):
            yield from ((key, part) for part in (column.parts if column is not None else ()))
        yield from ((f"columns.{name}", place) for name, place in self.places.items())

    def _check_names(self) -> None:
        """Refuses reserved names, and those that Spark confuses: a and A are one, and a.b is a field of a."""
        seen: set[str] = set()
        for name in self.columns:
            if name.lower() in RESERVED:
                raise ValueError(
                    f"columns: found {name!r}, which is reserved by Streamgauge; give it another name, such as "
                    f"my_{name}: {{path: {name}, type: {self.kinds[name]}}}"
                )
            if name.lower() in seen:
                raise ValueError(f"columns: found {name!r} twice, ignoring case; names must differ")
            if {".", "`", ","} & set(name):
                raise ValueError(
                    f"columns: found {name!r}, allowed: names without . and `, which Spark reads as syntax, and "
                    "without commas, which part names in a list"
                )
            seen.add(name.lower())

    @property
    def own_code(self) -> str | None:
        """The package.module:name of a format that is not one of this project; None for one that is."""
        return FORMATS.outside(self.format)

    @property
    def is_typed(self) -> bool:
        """True if its files have rows of typed columns, which become CSV lines: Parquet, and formats of packages."""
        return self.format == "parquet" or self.own_code is not None

    @property
    def kinds(self) -> dict[str, str]:
        """Types of the columns, by name."""
        return {name: column.type if isinstance(column, Column) else column for name, column in self.columns.items()}

    @property
    def places(self) -> dict[str, str | int]:
        """Names, paths or indexes of the columns in the source, by name."""
        return {name: column.path if isinstance(column, Column) else name for name, column in self.columns.items()}

    @property
    def needed(self) -> tuple[str | int, ...]:
        """The columns that times and columns are read from."""
        return tuple(place for _, place in self._places_by_key())

    @property
    def is_json(self) -> bool:
        return self.format == "jsonl" or (self.kafka is not None and self.kafka.is_json)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what is read: the files, or the topic."""
        return self.files if self.kafka is None else (self.kafka.url,)

    @property
    def is_merged(self) -> bool:
        """False if nobody knows the order between the partitions of its topic."""
        return self.order != "file" or self.kafka is None or not self.kafka.has_parts

    @property
    def line_word(self) -> str:
        """The word for what counts its lines."""
        return "offset" if self.kafka is not None else "row" if self.is_typed else "line"

    @property
    def tick(self) -> Tick:
        return tick_of(self.time.unit)
