"""Sections of a benchmark file that measurements add to it, besides those that every file has."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, create_model, model_serializer, model_validator

from streamgauge.bench.measurements import MEASUREMENTS, Section, UncheckedSection, refusal, section_model
from streamgauge.config import mistakes
from streamgauge.config.benchmark import Benchmark

#: name of the extended model in this module
_HERE = "ExtendedBenchmark"


class _Extended(Benchmark):
    """Benchmark with sections of packages. One that it does not ask for is not recorded, as its package may go."""

    model_config = ConfigDict(title=Benchmark.__name__)

    @model_validator(mode="before")
    @classmethod
    def _refuse_names(cls, raw: object) -> object:
        for name in raw if isinstance(raw, dict) else ():
            if name in MEASUREMENTS.names() and name not in cls.model_fields:
                raise ValueError(f"{name}: found a measurement that cannot have this name: {_refusal(name)}")
        return raw

    @model_serializer(mode="wrap")
    def _asked(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        keys = dump(self)
        return {key: value for key, value in keys.items() if value is not None or key in Benchmark.model_fields}


def benchmark_model() -> type[Benchmark]:
    """Returns the model of a benchmark file, with the sections of all measurements that are known now.

    A key of the file itself keeps its meaning: a package cannot take it for its section.
    """
    added = [name for name in MEASUREMENTS.names() if name not in Benchmark.model_fields]
    return _extended(tuple(name for name in added if not _refusal(name))) if added else Benchmark


def never_asked() -> list[str]:
    """A line for each measurement of a package that bears the name of a key of every file."""
    return [
        f"{name}: {place} is registered as a measurement of this name, which is a key of every benchmark file, so that "
        "none asks for it; rename it"
        for name, place in MEASUREMENTS.hidden(Benchmark.model_fields)
    ]


def _refusal(name: str) -> str:
    """Says why a package's measurement cannot have a section of this name; empty if it can."""
    return refusal(name) or ("the model of a benchmark has it; rename it" if name in dir(Benchmark) else "")


@cache
def _extended(names: tuple[str, ...]) -> type[Benchmark]:
    fields: Any = {
        name: (
            (section_model(name) if name in MEASUREMENTS.built_in else UncheckedSection) | None,
            Field(default=None, description=f"settings of the measurement {name}; without them it is not measured"),
        )
        for name in names
    }
    return create_model(_HERE, __base__=_Extended, __module__=__name__, **fields)


def __getattr__(name: str) -> type[Benchmark]:
    """Returns the extended model by its name in this module, where pickle looks for the class of an object."""
    if name == _HERE:
        return benchmark_model()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def checked_section(name: str, section: Section) -> Section:
    """Returns a section as its measurement reads it, which imports a package's code. Raises UserError."""
    if not isinstance(section, UncheckedSection):
        return section
    given = section.model_dump(exclude_unset=True)
    return mistakes.check(section_model(name), given, lambda path: ".".join(map(str, (name, *path))))
