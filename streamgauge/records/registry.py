"""The records by the names under which their JSON Schemas are printed."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from streamgauge.base.errors import UserError
from streamgauge.records.answers import AnswerLine, Capabilities, HardQueries
from streamgauge.records.judgement import Judgement
from streamgauge.records.latency import LatencyRun
from streamgauge.records.manifests import EventsManifest, StreamManifest
from streamgauge.records.night import Delivery, NightReport
from streamgauge.records.profile import Profile
from streamgauge.records.release import ReleaseAnswer, ReleaseCheck, ReleaseManifest, Repetition
from streamgauge.records.result import Result
from streamgauge.records.search import SearchAnswer
from streamgauge.records.stages import StageLine
from streamgauge.records.trial import LatencyTrial, MeasuredTrial, MeasuredWindow, TurnLatencies
from streamgauge.records.validation import Validation

RECORDS: dict[str, type] = {
    "stages": StageLine,
    "profile": Profile,
    "search": SearchAnswer,
    "windows": MeasuredWindow,
    "trials": MeasuredTrial,
    "latency": LatencyRun,
    "latency-trials": LatencyTrial,
    "latency-turns": TurnLatencies,
    "events": EventsManifest,
    "stream": StreamManifest,
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
}
#: their files hold a list of them
_LISTS = {"latency"}


def schema_of(name: str) -> dict[str, Any]:
    """JSON Schema of the file in which a record is written, or of a line of its log. Raises UserError."""
    if name not in RECORDS:
        raise UserError(f"--record: found {name!r}, allowed: {', '.join(RECORDS)}")
    schema = TypeAdapter(RECORDS[name]).json_schema(mode="serialization")
    schema["properties"]["crc32"] = {"type": "string", "description": "checksum of the other keys"}
    if name in _LISTS:
        parts = schema.pop("$defs", {})
        schema = {"type": "array", "items": schema, "$defs": parts}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
