"""Settings of a system under test. Each engine has its own model, in its folder below engines/, found by its name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from streamgauge.base.field_types import Model, Name
from streamgauge.base.plugins import Parts
from streamgauge.base.reached import Reached as Reached
from streamgauge.base.units import Duration

#: the one table of engines: by the name that a benchmark file gives as `engine`, the model of its settings.
#: It is text, so that nothing here imports an engine; a model is loaded when a file is checked.
ENGINES = Parts(
    "engines",
    {
        "spark": "streamgauge.bench.engines.spark.settings:SparkSettings",
        "flink": "streamgauge.bench.engines.flink.settings:FlinkSettings",
        "known": "streamgauge.bench.engines.known.settings:KnownSettings",
        "job": "streamgauge.bench.engines.job.settings:JobSettings",
    },
    "Class",
)
#: a value that names no file and no code: a flag, a number, a size
_PLAIN = re.compile(r"true|false|-?\d+(\.\d+)?[A-Za-z]*")
#: an option of a JVM that names no file and no command
_JVM_SIZE = re.compile(r"-X(ms|mx|mn|ss)\d+[kKmMgG]?|-Xshare:auto|-XX:[+-]\w+|-XX:(?!On)\w+=\d+[kKmMgG]?")
#: the number of an engine's settings that is the interval of its checkpoints, in milliseconds
CHECKPOINT = "checkpoint_ms"
#: what a user's own engine is called
OWN = "package.module:Class"
#: the engine of a system that names none
DEFAULT = "spark"


class Semantics(Model):
    """Words on how an engine follows event time, for a table beside its figures; the oracle follows `Rules`.

    Each text completes its description. revises: True if an answer may be given once more.
    """

    takes: str = Field(description="rows are taken")
    watermark: str = Field(description="a watermark follows")
    queues: str = Field(description="with several queues, the watermark")
    late: str = Field(description="an event is late")
    counts: str = Field(description="late events are counted")
    final: str = Field(description="an answer is final")
    emits: str = Field(description="a row is emitted")
    revises: bool = False


#: the first column of a table of Semantics
WORDS = {name: field.description for name, field in Semantics.model_fields.items() if field.description}


class System(Model):
    """A system under test: an engine and its settings. The keys here are those of every engine."""

    #: module:Class of its `Adapter` (bench/driver/system.py), called with (settings, directory)
    adapter: ClassVar[str] = ""
    #: None: nobody has declared it
    semantics: ClassVar[Semantics | None] = None
    #: True if one process of it may serve several streams in turns
    shares: ClassVar[bool] = True
    #: True if the driver sends it all declared columns, not only those of the query
    every_column: ClassVar[bool] = False
    name: Name = Field(description="name of the system")
    engine: str = Field(description=f"{', '.join(ENGINES.built_in)}, a registered name, or {OWN}")
    example: bool = Field(
        default=False, description="slow or wrong on purpose, to see the release check refuse it; no form proposes it"
    )
    cpus: tuple[int, ...] | None = Field(default=None, description="pin the system to these CPUs, once it is warm")

    @property
    def over_wire(self) -> bool:
        """True if whole suites are asked of it over the wire (bench/answers/wire_suite.py), not in a session."""
        return False

    def ids(self, columns: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002 - a query of ours names no ids
        """Names of the columns that are ids, as far as the settings tell. columns: declared ones with their types."""
        return ()

    @property
    def lines(self) -> bool:
        """True if the driver sends it the source's lines, whatever the query."""
        return False

    @property
    def partition_by(self) -> str | None:
        """The column whose values decide an event's queue; None if events take turns."""
        return None

    @property
    def since_1970(self) -> bool:
        """True if it takes no event time before 1970."""
        return False

    @property
    def start_s(self) -> float:
        """Seconds that it takes to be ready, as far as the settings ask for them."""
        return 0.0

    @property
    def away_s(self) -> Mapping[str, float]:
        """Seconds that it is usually away after a fault, by the fault's name; a fault that is not named is as a start.

        They estimate how long a measurement takes, and whether a trial is long enough to see the system back.
        """
        return {}

    @property
    def striking_s(self) -> Mapping[str, float]:
        """Seconds that it may take at most to bring a fault about, by the fault's name, where that is not instant."""
        return {}

    def decides(self, key: str, measurement: str) -> bool:  # noqa: ARG002 - most settings decide all
        """False if that key has no part in trials of that measurement, so that none is done anew for its sake."""
        return True

    @property
    def workers(self) -> int | None:
        """Number of tasks that work at the same time, of which each queue needs one; None where that is not known."""
        return None

    @property
    def state(self) -> str | None:
        """Kind of state store, in words; None if nobody has declared it."""
        return None

    def located(self, base: Path) -> Self:  # noqa: ARG002 - without file names there is nothing to resolve
        """The settings with file names resolved from base, the folder of the benchmark file."""
        return self

    def checkpointing(self, interval: Duration) -> Self | None:  # noqa: ARG002 - not every engine has checkpoints
        """The settings with checkpoints at that interval; None if they have no such interval."""
        return None

    def numbers(self, value: int) -> Mapping[str, Mapping[str, object]]:  # noqa: ARG002 - some have no number
        """Changes that put this number into a setting which has a number, by the setting's name."""
        return {}

    def reached(self) -> Iterator[Reached]:
        """Yields what the settings name beyond the file, with their own keys."""
        yield from ()

    def check_columns(self, columns: Mapping[str, str]) -> None:
        """Raises UserError for a column that the settings name, but the source does not declare so."""

    def check_installed(self) -> None:
        """Raises UserError if the engine is not installed where the settings say."""

    def installed_by(self, versions: Mapping[str, str]) -> str | None:  # noqa: ARG002 - `make setup` is enough
        """Returns the command that installs these versions of the engine; None if `make setup` does."""
        return None


def naming_code(conf: Mapping[str, str]) -> list[str]:
    """Lists the keys of an engine's settings whose values may name code that it loads: no numbers, sizes and flags."""
    return [
        key
        for key, value in conf.items()
        if not _PLAIN.fullmatch(value) and not all(map(_JVM_SIZE.fullmatch, value.split()))
    ]


def resolved(base: Path, **names: str | None) -> dict[str, str]:
    """Resolves file names from base, for `located`; a name without a slash is one on PATH and is left out.

    Symlinks are kept: a virtual environment's python is one.
    """
    return {key: os.path.normpath(base.absolute() / name) for key, name in names.items() if name and "/" in name}


#: what a pattern reads as more than itself; JSON Schema's patterns take no other escape
_SPECIAL, _ESCAPED = re.compile(r"[\\.*+?()\[\]{}|^$]"), r"\\\g<0>"


def _own(engine: str) -> str:
    if ENGINES.outside(engine) is None:
        raise ValueError(f"found {engine!r}, allowed: {', '.join(ENGINES.names())}, or {OWN}")
    return engine


def _add_pattern(schema: dict[str, JsonValue]) -> None:
    """Adds the places of code, and the names that packages register now."""
    names = ENGINES.names()[len(ENGINES.built_in) :]
    schema["pattern"] = "|".join((".:.", *(f"^{_SPECIAL.sub(_ESCAPED, name)}$" for name in names)))


class OwnSettings(System):
    """Settings of an engine of the user's own: further keys are free, unless its adapter has a model for them."""

    model_config = ConfigDict(extra="allow")

    engine: Annotated[str, AfterValidator(_own)] = Field(
        description="package.module:Class, an adapter of your own, or the name by which a package registers one",
        json_schema_extra=_add_pattern,
    )

    def numbers(self, value: int) -> Mapping[str, Mapping[str, object]]:
        given = (self.model_extra or {}).get("parallelism")
        return {"parallelism": {"parallelism": value}} if isinstance(given, int) else {}

    def reached(self) -> Iterator[Reached]:
        yield Reached("code", "engine", ENGINES.outside(self.engine) or self.engine)


def settings_of(engine: str) -> type[System]:
    if engine not in ENGINES.built_in:
        return OwnSettings
    model = ENGINES.load(engine, "engine")
    assert isinstance(model, type)
    assert issubclass(model, System)
    return model


class _ByEngine:
    """Checks a system by the model of its engine, and describes all of them in the JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_checked)

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        models = {engine: settings_of(engine) for engine in (*ENGINES.built_in, OWN)}
        choices = {engine: model.__pydantic_core_schema__ for engine, model in models.items()}
        return handler(core_schema.tagged_union_schema(choices, "engine"))


AnySystem = Annotated[System, _ByEngine()]


def _checked(given: object) -> System:
    if isinstance(given, System):
        return given
    engine = given.get("engine", DEFAULT) if isinstance(given, dict) else DEFAULT
    return settings_of(engine if isinstance(engine, str) else "").model_validate(given)
