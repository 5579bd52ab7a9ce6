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
#: a key of a benchmark file -> the option that gives it
_OPTIONS = {
    "source.time.column": "--time", "source.time.unit": "--unit", "source.time.format": "--format",
    "source.time.iso": "--iso", "source.time.year": "--year", "source.time.columns": "--time",
    "source.time.zone": "--zone", "source.time": "--time",
    "source.arrival.column": "--arrival", "source.arrival.unit": "--arrival-unit",
    "source.arrival.format": "--arrival-format",
    "source.arrival.iso": "--arrival-iso", "source.arrival.columns": "--arrival",
    "source.arrival.year": "--year", "source.decimal": "--decimal",
    "source.comment": "--comment", "source.arrival": "--arrival",
    "source.separator": "--separator",
    "source.header": "--no-header", "source.columns": "--columns", "source.order": "--order",
    "source.max_bad_fraction": "--max-bad-fraction",
    "source.kafka.from": "--from", "source.kafka.until": "--until", "source.kafka.most_events": "--most-events",
    "source.kafka.values": "--values", "source.kafka.security": "--security",
    "source.kafka.registry.address": "--registry", "source.kafka.registry": "--registry",
    "source.kafka.writer_schema": "--writer-schema",
    "source.files": "the name of the file", "source.format": "the end of the file's name",
    "overrides.scale": "--scale", "overrides.seed": "--seed", "overrides.outputs": "--outputs",
    "overrides.experiments": "--experiment", "overrides.workloads": "--workload", "overrides.systems": "--system",
    "overrides.processes": "--processes", "overrides.proof_steps": "--proof-steps",
    "experiment.target_percent": "--target", "experiment.target": "--target", "experiment.seed": "--seed",
    "experiment.on_infeasible": "--on-infeasible", "on_infeasible: closest": "--on-infeasible closest",
    "order: event_time": "--order event_time", "target: source": "--target source",
    "order: arrival": "--order arrival", "source.by": "--by",
    **{f"{before}delay.{key}": f"--{option}" for before in ("experiment.", "") for key, option in {
        "distribution": "delay", **{key: key for key in ("min", "max", "mean", "stddev", "sigma", "alpha", "profile")},
    }.items()},
    **{f"{before}delay.outages.{key}": f"--{option}" for before in ("experiment.", "") for key, option in {
        "by": "outages", **{key: key for key in ("spacing", "like", "partitions", "delivery")},
    }.items()},
}  # fmt: skip
_KEY = re.compile("|".join(rf"(?<![\w.]){re.escape(key)}(?!\w)" for key in sorted(_OPTIONS, key=len, reverse=True)))
#: a model's own check begins with the key that it is about
_OF_MODEL = re.compile(r"^(source(?:\.time|\.kafka)?|experiment\.delay(?:\.outages)?): ([a-z_]+): ")


def named(message: str) -> str:
    """Returns the message with options in place of keys.

    Example: "check source.separator" -> "check --separator".
    """
    return _KEY.sub(lambda match: _OPTIONS[match[0]], _OF_MODEL.sub(r"\1.\2: ", message))


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
    """Names the option that gave a column in a message, raised within, that this column is not there.

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
