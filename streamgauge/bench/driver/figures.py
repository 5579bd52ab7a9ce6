"""Checks the figures that an adapter gives of its system: whoever is measured may say anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from streamgauge.bench.driver.requests import Offsets, Whole, shown
from streamgauge.bench.oracle.batches import Rules

_LONGEST_S = 1e10  # three centuries of CPU
Seconds = Annotated[float, Field(ge=0, le=_LONGEST_S, allow_inf_nan=False)]
_SECONDS = TypeAdapter(Seconds, config=ConfigDict(strict=True))
_Watermark = Annotated[int, Field(gt=-(2**62) // 1000, lt=2**62 // 1000)]


class _Told(BaseModel):
    """Figures. Unknown keys stay as they are: an adapter may tell more."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")


class _Stretch(_Told):
    ends: list[Offsets]
    watermark_ms: _Watermark | None


class _Batch(_Stretch):
    batch_id: Whole
    dropped: Whole = 0
    at: Seconds = 0
    rows: Whole = 0
    duration_ms: Seconds = 0


class _Link(_Told):
    p99: Whole | None = None


class _Compared(_Told):
    wrong: str | None


class _Figures(_Told):
    drained: bool | None = None
    failure: str | None = None
    invalid: str | None = None
    unchecked: str | None = None
    cpu_seconds: Seconds | None = None
    gc_seconds: Seconds | None = None
    rss_bytes: Whole | None = None
    state_bytes: Whole | None = None
    epochs: Whole | None = None
    late_dropped: Whole | None = None
    batches: list[_Batch] | None = None
    stretches: list[_Stretch] | None = None
    link_slip_ns: _Link | None = None
    check: _Compared | None = None
    software: dict[str, str] = Field(default_factory=dict)
    application: dict[str, str] = Field(default_factory=dict)
    rules: dict[str, Any] = Field(default_factory=dict)

    @field_validator("rules")
    @classmethod
    def _known(cls, rules: dict[str, Any]) -> dict[str, Any]:
        try:
            Rules(**rules)
        except TypeError:
            raise ValueError from None
        return rules


def checked(told: object) -> tuple[dict[str, Any], str | None]:
    """Returns the figures, and None; or none of them, and in one line why they are unusable."""
    if not isinstance(told, dict):
        return {}, f"the system's figures: found {shown(told)}, allowed: an object"
    try:
        _Figures.model_validate(told)
        json.dumps(told, allow_nan=False)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        words = "rules that streamgauge has (Rules)" if place == "rules" else first["msg"]
        return {}, f"the system's figures: {place}: found {shown(first['input'])}, allowed: {_allowed(words)}"
    except (TypeError, ValueError, RecursionError) as problem:
        return {}, f"the system's figures: found what is no JSON ({problem}), allowed: finite numbers, texts, lists"
    return told, None


def seconds(told: Callable[[], object]) -> tuple[float | None, str | None]:
    """Returns CPU seconds, or None where the adapter does not know them; and why they are unusable, or None."""
    used = told()
    if used is None:
        return None, None
    try:
        return _SECONDS.validate_python(used), None
    except ValidationError:
        return None, f"the system's cpu_seconds: found {shown(used)}, allowed: seconds, 0 or more"


def _allowed(message: str) -> str:
    """Returns what pydantic asks for, without its own subject."""
    return message.removeprefix("Input should be ").removeprefix("Value error, ")
