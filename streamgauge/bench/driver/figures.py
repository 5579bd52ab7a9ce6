"""Checks the figures that an adapter gives of its system: whoever is measured may say anything."""

from __future__ import annotations

import json
from collections.abc import Callable

from pydantic import ConfigDict, TypeAdapter, ValidationError

from streamgauge.bench.driver.requests import shown
from streamgauge.bench.oracle.batches import Rules
from streamgauge.records.trial import Seconds, SystemFigures

_FIGURES = TypeAdapter(SystemFigures)
_SECONDS = TypeAdapter(Seconds, config=ConfigDict(strict=True))


def checked(given: object) -> tuple[SystemFigures, str | None]:
    """Returns the figures, and None; or none of them, and in one line why they are unusable."""
    if not isinstance(given, dict):
        return {}, f"the system's figures: found {shown(given)}, allowed: an object"
    try:
        figures = _FIGURES.validate_python(given)
        json.dumps(figures, allow_nan=False)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False)[0]
        place, allowed = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Input should be ")
        return {}, f"the system's figures: {place}: found {shown(first['input'])}, allowed: {allowed}"
    except (TypeError, ValueError, RecursionError) as problem:
        return {}, f"the system's figures: found what is no JSON ({problem}), allowed: finite numbers, texts, lists"
    rules = figures.get("rules", {})
    try:
        Rules(**rules)
    except TypeError:
        allowed = "rules that streamgauge has (Rules)"
        return {}, f"the system's figures: rules: found {shown(rules)}, allowed: {allowed}"
    return figures, None


def seconds(given: Callable[[], object]) -> tuple[float | None, str | None]:
    """Returns CPU seconds, or None where the adapter does not know them; and why they are unusable, or None."""
    used = given()
    if used is None:
        return None, None
    try:
        return _SECONDS.validate_python(used), None
    except ValidationError:
        return None, f"the system's cpu_seconds: found {shown(used)}, allowed: seconds, 0 or more"
