"""Names options where the functions below name keys of a benchmark file, for commands that read none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from pydantic import BaseModel

from streamgauge.base.errors import Infeasible, Mistakes, Outage, UserError
from streamgauge.base.units import Duration
from streamgauge.config import mistakes

M = TypeVar("M", bound=BaseModel)


def _alike(section: str, *keys: str) -> dict[str, str]:
    """Maps keys of a section to the options that have their names."""
    return {f"{section}.{key}": f"--{key.replace('_', '-')}" for key in keys}


def _delays(section: str) -> dict[str, str]:
    """Maps the keys of a section of delays to their options."""
    named = {f"{section}.distribution": "--delay", f"{section}.outages.by": "--outages"}
    named |= _alike(f"{section}.outages", "spacing", "like", "partitions", "delivery")
    return named | _alike(section, "min", "max", "mean", "stddev", "sigma", "alpha", "profile")


#: a key of a benchmark file -> the option that gives it
_OPTIONS = {
    **_alike("source", "time", "arrival", "decimal", "comment", "separator", "columns", "order", "by"),
    **_alike("source", "max_bad_fraction"),
    **_alike("source.time", "unit", "format", "iso", "year", "zone"),
    **_alike("source.arrival", "year"),
    **_alike("source.kafka", "from", "until", "most_events", "values", "security", "registry", "writer_schema"),
    **_alike("overrides", "scale", "seed", "outputs", "processes", "proof_steps"),
    **_alike("experiment", "target", "seed", "on_infeasible"),
    **_delays("experiment.delay"),
    **_delays("delay"),
    **{f"source.{time}.{key}": f"--{time}" for time in ("time", "arrival") for key in ("column", "columns")},
    **{f"source.arrival.{key}": f"--arrival-{key}" for key in ("unit", "format", "iso")},
    **{f"overrides.{kind}s": f"--{kind}" for kind in ("experiment", "workload", "system")},
    "order: event_time": "--order event_time",
    "order: arrival": "--order arrival",
    "target: source": "--target source",
    "on_infeasible: closest": "--on-infeasible closest",
    "experiment.target_percent": "--target",
    "source.header": "--no-header",
    "source.kafka.registry.address": "--registry",
    "source.files": "the name of the file",
    "source.format": "the end of the file's name",
}
_KEY = re.compile("|".join(rf"(?<![\w.]){re.escape(key)}(?!\w)" for key in sorted(_OPTIONS, key=len, reverse=True)))
#: a model's own check begins with the key that it is about
_OF_MODEL = re.compile(r"^(source(?:\.time|\.kafka)?|experiment\.delay(?:\.outages)?): ([a-z_]+): ")


def named(message: str) -> str:
    """Returns the message with options in place of keys, such as --separator in place of source.separator."""
    return _KEY.sub(lambda match: _OPTIONS[match[0]], _OF_MODEL.sub(r"\1.\2: ", message))


def given(options: Mapping[str, object]) -> dict[str, object]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def parse(model: type[M], raw: Mapping[str, object], place: str) -> M:
    """Validates options against a model of the benchmark file. Raises Mistakes that name options.

    place: key of the model within a benchmark file, such as source.
    """
    try:
        return mistakes.check(model, raw, lambda path: ".".join((place, *map(str, path))))
    except Mistakes as problem:
        raise Mistakes([named(line) for line in problem.lines]) from None


@contextmanager
def speaking() -> Iterator[None]:
    """Turns the keys in a message that is raised within into options."""
    try:
        yield
    except Infeasible as problem:
        raise Infeasible(named(str(problem))) from problem
    except UserError as problem:
        raise UserError(named(str(problem))) from problem
    except Outage as problem:
        raise Outage(named(str(problem))) from problem


@contextmanager
def of_columns(given: Mapping[str, str | int | None]) -> Iterator[None]:
    """Puts the option that gave a column into a message, raised within, that this column is not there.

    given: column by option.
    """
    try:
        yield
    except UserError as problem:
        message = str(problem)
        for option, column in given.items():
            wrong = rf"--columns(?=: (?:no column|found the name|\d+ columns are named) {re.escape(repr(column))})"
            message = re.sub(wrong, option, message)
        if message == str(problem):
            raise
        raise UserError(message) from None


def duration(option: str, text: str) -> Duration:
    """The length of time that an option gives. Raises UserError."""
    try:
        return Duration.parse(text)
    except ValueError as problem:
        raise UserError(f"{option}: {problem}") from None
