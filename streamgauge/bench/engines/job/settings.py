"""Settings of the engine `job`."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, StrictStr, model_validator

from streamgauge.base import secrets, variables
from streamgauge.base.errors import UserError
from streamgauge.base.field_types import Delay, Model
from streamgauge.base.units import Duration, Tick
from streamgauge.bench.driver.ids import KINDS
from streamgauge.bench.engines.job.templates import PLACES, JobFaults, Template, Words
from streamgauge.config.systems import Reached, System
from streamgauge.descriptions import schema_registry
from streamgauge.descriptions.kafka_security import TOKEN_HOST, Security
from streamgauge.descriptions.schema_registry import SchemaRegistry
from streamgauge.streams.kafka.records import Form

#: programs that start a script here, and what it looks like; others, such as docker or ssh, may have it elsewhere
_STARTS_SCRIPTS = re.compile(r"(python|pypy)[\d.]*|java|sh|bash|spark-submit|flink")
_SCRIPT = re.compile(r"[^-{}:,=\s][^{}:,=\s]*\.(py|jar|java|sh)")
_OF_KIND = {"string": str, "int64": int, "float64": int | float}
_SENTINEL = {"ticks": 0, "s": 0, "ms": 0, "us": 0, "ns": 0}


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise ValueError(f"found {text!r}, allowed: a regular expression ({problem})") from None
    return text


class _OneOfTwo(Model):
    """Two keys, of which one is given."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = self.model_dump(exclude_none=True)
        if len(given) != 1:
            raise ValueError(f"give {' or '.join(type(self).model_fields)}, one of the two")
        return self


class JobProgress(_OneOfTwo):
    """The progress of a job: one of the two keys."""

    group: Template | None = Field(default=None, description="consumer group whose committed offsets tell the progress")
    checkpoint: Template | None = Field(
        default=None, description="folder of a Spark query's checkpoint, whose offset log tells the progress"
    )


class JobReady(_OneOfTwo):
    """The sign that a job waits for rows: one of the two keys."""

    log: Annotated[str, AfterValidator(_pattern)] | None = Field(
        default=None, description="regular expression that a line of the job's output matches"
    )
    seconds: Annotated[float, Field(gt=0, le=600)] | None = Field(default=None, description="seconds after its start")


class JobCarried(Model):
    """Columns of an answer that carry the wall clocks of its largest contributor, ns."""

    event_wall: str = Field(default="event_wall", description="column of the largest event_wall")
    offered_wall: str = Field(default="offered_wall", description="column of the largest offered_wall")


class JobAnswer(Model):
    """The answers of a job, how they are checked, and who contributed to them."""

    format: Literal["json", "avro", "confluent-avro", "confluent-json"] = Field(
        default="json",
        description="value of an answer: JSON or Avro, with the number of a registry's schema or without",
    )
    writer_schema: str | None = Field(
        default=None, description="format avro: the schema of the answers as JSON, or a file with it"
    )
    sql: str | None = Field(
        default=None, description="DuckDB's SQL over the table events, or a file with it: the right answers"
    )
    key: tuple[str, ...] = Field(default=(), description="columns that tell answers apart; by default all")
    lateness: Delay | None = Field(
        default=None, description="lateness from which on the job may drop an event; by default it must drop none"
    )
    grace: Delay | None = Field(
        default=None,
        description="time after which the job drops an event, once a later one of its partition lies so far beyond the "
        "end of the workload's window, as Kafka Streams does",
    )
    mode: Literal["append", "upsert"] = Field(
        default="append", description="upsert: the last record of a key is its answer, and none after a tombstone"
    )
    carried: JobCarried | None = Field(
        default=None, description="columns that carry the contributors' wall clocks, where there is no sql"
    )
    quiet: Delay = Field(
        default=Duration.parse("2s"), description="time without a new answer after which all have come"
    )

    @model_validator(mode="after")
    def _read_by_a_schema(self) -> Self:
        schema_registry.check_writer_schema(self.writer_schema, self.format)
        return self

    def located(self, base: Path, key: str) -> Self:
        """The same, with the texts of files that lie at base. key: of the answer, for messages."""
        changed: dict[str, object] = {}
        if self.sql is not None and re.fullmatch(r"\S+\.sql", self.sql):
            changed["sql"] = schema_registry.text_of(base / self.sql, f"{key}.sql")
        if self.writer_schema is not None:
            changed["writer_schema"] = schema_registry.schema_text(self.writer_schema, base, f"{key}.writer_schema")
        return self.model_copy(update=changed)


class JobSettings(System):
    """The engine job: a command of the user's own, which reads a Kafka topic and writes another one."""

    adapter: ClassVar[str] = "streamgauge.bench.engines.job.job_system:JobSystem"
    shares: ClassVar[bool] = False  # a topic has the rows of one stream
    every_column: ClassVar[bool] = True

    engine: Literal["job"] = Field(description="a job of your own that reads and writes Kafka")
    command: Words = Field(
        description=f"command and its arguments; places: {', '.join(f'{{{name}}}' for name in PLACES)}"
    )
    version: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="version of the job, kept with its figures; the command or the environment names it"
    )
    bootstrap: Annotated[str, Field(min_length=1)] = Field(description="host:port of the Kafka broker")
    format: Literal["json", "avro", "confluent-avro", "confluent-json", "line"] = Field(
        default="json",
        description="value of a record: the declared columns as JSON or Avro, with the number of a registry's schema "
        "or without, or the source's line",
    )
    registry: SchemaRegistry | None = Field(default=None, description="schema registry of formats confluent-…")
    started: Literal["trial", "once"] = Field(
        default="trial",
        description="start the job anew for each trial, or once for all trials that follow the ladder of a search; "
        "once needs answer.sql with answer.key, and a format other than line",
    )
    headers: bool = Field(
        default=True,
        description="give each record the headers seq, offered_wall, event_wall and attempt; "
        "without them the publisher takes less CPU",
    )
    timestamp: Literal["append", "event"] = Field(
        default="append",
        description="time of a record: when the broker appends it, or that of the event in whole milliseconds",
    )
    key: str | None = Field(
        default=None,
        description="column of type string or int64 whose text is a record's key, and decides its partition as Kafka's "
        "Java client does",
    )
    sentinel: str | dict[str, StrictStr | StrictInt | StrictFloat | None] | None = Field(
        default=None,
        description="values that the sentinel has in some columns; format line: the line of an event far in the "
        "future, by {time:%Y-%m-%d}, {s}, {ms}, {us}, {ns}",
    )
    progress: JobProgress = Field(
        default=JobProgress(group="{group}"), description="source of the job's progress; by default its consumer group"
    )
    warm: Delay = Field(
        default=Duration.parse("15s"),
        description="time for which a job warms up with the stream's first rows, whose event times are moved into the "
        "past; not with format line",
    )
    ready: JobReady | None = Field(
        default=None, description="sign that the job waits for rows; by default its progress tells, or 30 s have passed"
    )
    answer: JobAnswer = Field(default=JobAnswer(), description="check of the answers, and who contributed to them")
    environment: dict[str, Template] = Field(default_factory=dict, description="further variables for the commands")
    faults: JobFaults = Field(
        default=JobFaults(), description="commands that bring faults about, for the measurement recovery"
    )
    security: Security = Field(
        default_factory=dict,
        description="settings of librdkafka for SASL and TLS, such as sasl.username; secrets as ${VARIABLE}",
    )
    directory: str | None = Field(
        default=None, description="folder in which the command runs; by default that of the benchmark file"
    )

    @model_validator(mode="after")
    def _keys_that_fit(self) -> Self:
        if (self.format == "line") != isinstance(self.sentinel, str):
            raise ValueError(
                "sentinel: needed by format line, and by that alone: the line of an event far in the future, such as "
                "'{time:%Y-%m-%d %H:%M:%S},,'; other formats take values of columns"
            )
        if isinstance(self.sentinel, str):
            from datetime import UTC, datetime

            try:
                self.sentinel.format(time=datetime.now(UTC), **_SENTINEL)
            except (KeyError, IndexError, ValueError, AttributeError) as problem:
                raise ValueError(f"sentinel: found {self.sentinel!r}: {problem!r}") from None
        if self.answer.sql is not None and self.answer.carried is not None:
            raise ValueError("answer: give sql or carried, not both: the sql tells who contributed")
        if self.answer.grace is not None and (self.answer.sql is None or self.answer.lateness is not None):
            raise ValueError("answer: grace needs sql, and no lateness: it says which events the job drops")
        if self.answer.carried is not None and not self.headers:
            raise ValueError("headers: found false, but answer.carried needs what the headers carry")
        schema_registry.check_registry(self.registry, self.format, self.answer.format)
        return self

    @model_validator(mode="after")
    def _distinct_trials(self) -> Self:
        """A job that goes on takes later event times in each trial, and answers of earlier ones stay in its topic."""
        if self.started == "once" and (self.format == "line" or self.answer.sql is None or not self.answer.key):
            raise ValueError(
                "started: once needs answer.sql with answer.key, and another format than line, which cannot take a "
                "later time"
            )
        return self

    @model_validator(mode="after")
    def _version_that_is_named(self) -> Self:
        """A night or a release check starts the version before again; that must be another program then."""
        named = any("{version}" in text for text in (*self.command, *self.environment.values()))
        if named and self.version is None:
            raise ValueError("version: this key is missing; command or environment have the place {version}")
        if self.version is not None and not named:
            raise ValueError("version: neither command nor environment has the place {version}, which tells what runs")
        return self

    def reached(self) -> Iterator[Reached]:
        for key, words in self.commands.items():
            yield Reached("program", key, shlex.join(words))
            if secrets.masked({"command": words}) != {"command": list(words)}:
                yield Reached("secret", key, "a secret among its arguments")
        if self.environment:
            yield Reached("program", "environment", ", ".join(self.environment))
        yield Reached("host", "bootstrap", self.bootstrap)
        if TOKEN_HOST in self.security:
            yield Reached("host", f"security.{TOKEN_HOST}", self.security[TOKEN_HOST])
        if self.registry is not None:
            yield from self.registry.reached()
        texts = {"security": self.security, "environment": self.environment, **self.commands}
        for place, text in texts.items():
            for name in dict.fromkeys(variables.named(str(text))):
                yield Reached("variable", place, name)

    def ids(self, columns: Mapping[str, str]) -> tuple[str, ...]:
        """The columns of answer.key that the source has, unless a time in the key tells the answers of laps apart."""
        from streamgauge.bench.oracle.own_sql import tells_time

        key = self.answer.key
        if self.lines or tells_time(self.answer.sql, key, columns):
            return ()
        return tuple(name for name in key if columns.get(name) in KINDS)

    @property
    def commands(self) -> dict[str, Sequence[str]]:
        """Commands by their keys."""
        return {"command": self.command} | {f"faults.{key}": words for key, words in self.faults.commands.items()}

    @property
    def away_s(self) -> Mapping[str, float]:
        """The killed members of a group stay in it for 45 s, unless its consumers set another timeout."""
        return {} if self.progress.group is None else dict.fromkeys({"kill", "restart"} - {*self.faults.spared}, 45.0)

    @property
    def striking_s(self) -> Mapping[str, float]:
        return self.faults.longest_s

    def numbers(self, value: int) -> Mapping[str, Mapping[str, object]]:
        counts = [name for name, text in self.environment.items() if text.isdecimal()]
        return {f"environment.{name}": {"environment": self.environment | {name: str(value)}} for name in counts}

    def decides(self, key: str, measurement: str) -> bool:
        return key != "faults" or (measurement == "recovery" and bool(self.faults.commands))

    @property
    def lines(self) -> bool:
        return self.format == "line"

    @property
    def partition_by(self) -> str | None:
        return self.key

    def check_columns(self, columns: Mapping[str, str]) -> None:
        named = [name for name, kind in columns.items() if kind in KINDS]
        if self.key is not None and self.key not in named:
            allowed = ", ".join(named) or "none"
            raise UserError(
                f"systems.{self.name}.key: found {self.key!r}, allowed: columns of type {' or '.join(KINDS)}: {allowed}"
            )
        for name, value in self.sentinel.items() if isinstance(self.sentinel, dict) else ():
            if name not in columns:
                raise UserError(f"systems.{self.name}.sentinel: found {name!r}, allowed: {', '.join(columns)}")
            if value is not None and not isinstance(value, _OF_KIND[columns[name]]):
                raise UserError(
                    f"systems.{self.name}.sentinel.{name}: found {value!r}, allowed: a value of type {columns[name]}"
                )

    @property
    def since_1970(self) -> bool:
        return self.timestamp == "event"

    def form(self, tick: Tick) -> Form:
        """The form of its input's records. tick: of the stream."""
        line, given = (self.sentinel, {}) if isinstance(self.sentinel, str) else ("", self.sentinel or {})
        return Form(self.format, tick, self.headers, line, self.since_1970, key=self.key, sentinel=given)

    @property
    def start_s(self) -> float:
        return self.warm.seconds + ((self.ready.seconds or 0.0) if self.ready else 0.0)

    def located(self, base: Path) -> Self:
        directory = os.path.normpath(base.absolute() / (self.directory or ""))
        answer = self.answer.located(base, f"systems.{self.name}.answer")
        registry = self.registry and self.registry.located(base)
        return self.model_copy(update={"directory": directory, "answer": answer, "registry": registry})

    def check_installed(self) -> None:
        if importlib.util.find_spec("confluent_kafka") is None:
            raise UserError(f"systems.{self.name}.engine: confluent-kafka is not installed; install the extra kafka")
        needed = {"format": "fastavro"} if "avro" in f"{self.format} {self.answer.format}" else {}
        for key, module in (needed | ({"registry": "urllib3"} if self.registry else {})).items():
            if importlib.util.find_spec(module) is None:
                raise UserError(f"systems.{self.name}.{key}: {module} is not installed; install the extra kafka")
        for key, words in self.commands.items():
            _check_command(f"systems.{self.name}.{key}", words, Path(self.directory or "."))


def _check_command(key: str, words: Sequence[str], place: Path) -> None:
    """Raises UserError if a command's program, or the script that it starts here, is not there."""
    program = words[0]
    if "{" in program:
        return
    if "/" in program and not (place / program).exists():
        raise UserError(f"{key}: found no {program!r} in {place}")
    if "/" not in program and shutil.which(program) is None:
        there = f"; to run the file in {place}, write ./{program}" if (place / program).exists() else ""
        raise UserError(f"{key}: found no {program!r} on PATH{there}")
    script = next(filter(_SCRIPT.fullmatch, words[1:]), None)
    if script and _STARTS_SCRIPTS.fullmatch(Path(program).name) and not (place / script).exists():
        raise UserError(f"{key}: found no {script!r} in {place}")
