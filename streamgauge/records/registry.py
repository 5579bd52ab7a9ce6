"""The records by the names under which their JSON Schemas are printed."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import loaded
from streamgauge.bench.measurements import MEASUREMENTS, package_of
from streamgauge.records.advice import Advice
from streamgauge.records.answered import Answered
from streamgauge.records.answers import AnswerLine, Capabilities, HardQueries
from streamgauge.records.gate import GateCheck, GateRepetition
from streamgauge.records.judgement import Judgement
from streamgauge.records.manifests import EventsManifest, StreamManifest
from streamgauge.records.night import Delivery, NightReport
from streamgauge.records.profile import Profile
from streamgauge.records.record import Record
from streamgauge.records.release import ReleaseAnswer, ReleaseCheck, ReleaseManifest, Repetition
from streamgauge.records.result import Result
from streamgauge.records.stages import StageLine
from streamgauge.records.topic import TopicRange
from streamgauge.records.validation import Validation

T = TypeVar("T")


def _of_measurement(name: str) -> dict[str, type[Record]]:
    """Records that a measurement declares, by their names. Raises UserError."""
    models: dict[str, type[Record]] = {}
    for key, place in package_of(name).records.items():
        if name not in MEASUREMENTS.built_in and key in RECORDS:
            raise UserError(f"{name}: records: found {key!r}, which is one of Streamgauge's own records; rename it")
        model = loaded(place, name)
        if not (isinstance(model, type) and issubclass(model, Record)):
            raise UserError(f"{name}: {place} is no Record of streamgauge.records.record")
        models[key] = model
    return models


def outputs_of(cell: Path, measurement: str) -> dict[str, bool | None]:
    """Maps each part of a measurement, such as "recovery (kill)", to whether its answers were right; None: not known.

    cell: directory of the cell's records. Raises OSError without its record, or UserError.
    """
    return _by_part(cell, measurement, attrgetter("outputs"))


def partly_of(cell: Path, measurement: str) -> dict[str, tuple[int, int]]:
    """Maps each part of a measurement of which only some trials were compared to how many, of how many.

    Raises as outputs_of does.
    """
    return _by_part(cell, measurement, attrgetter("partly"))


def _by_part(cell: Path, measurement: str, read: Callable[[Answered], dict[str, T]]) -> dict[str, T]:
    model = _of_measurement(measurement).get(measurement, Record)
    parts = read(model.read(cell / f"{measurement}.json")) if issubclass(model, Answered) else {}
    return {f"{measurement} ({part})" if part else measurement: value for part, value in parts.items()}


RECORDS: dict[str, type] = {
    "stages": StageLine,
    "profile": Profile,
    "advice": Advice,
    **{key: model for name in MEASUREMENTS.built_in for key, model in _of_measurement(name).items()},
    "events": EventsManifest,
    "stream": StreamManifest,
    "topic": TopicRange,
    "validation": Validation,
    "answers": AnswerLine,
    "capabilities": Capabilities,
    "hard": HardQueries,
    "results": Result,
    "judgements": Judgement,
    "night": NightReport,
    "notices": Delivery,
    "release": ReleaseCheck,
    "release-answers": ReleaseAnswer,
    "release-repetitions": Repetition,
    "release-manifest": ReleaseManifest,
    "gate": GateCheck,
    "gate-repetitions": GateRepetition,
}


def _of_packages(name: str) -> type[Record]:
    """Returns the record of that name, which may be a further one of a package. Raises UserError."""
    outside = [one for one in MEASUREMENTS.names() if one not in MEASUREMENTS.built_in]
    models: dict[str, type[Record]] = {}
    for measurement in sorted(outside, key=lambda one: one != name):
        models |= _of_measurement(measurement)
        if name in models:
            return models[name]
    raise UserError(f"--record: found {name!r}, allowed: {', '.join((*RECORDS, *models))}")


def schema_of(name: str) -> dict[str, Any]:
    """JSON Schema of the file in which a record is written, or of a line of its log. Raises UserError."""
    model = RECORDS.get(name) or _of_packages(name)
    schema = TypeAdapter(model).json_schema(mode="serialization")
    schema["properties"]["crc32"] = {"type": "string", "description": "checksum of the other keys"}
    if issubclass(model, Record) and model.in_list:
        parts = schema.pop("$defs", {})
        schema = {"type": "array", "items": schema, "$defs": parts}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
