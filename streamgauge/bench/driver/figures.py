"""Checks the figures that an adapter gives of its system: whoever is measured may say anything."""

from __future__ import annotations

import json
from collections.abc import Callable

from pydantic import ConfigDict, TypeAdapter, ValidationError

from streamgauge.bench.driver.requests import shown
from streamgauge.records.rules import Rules
from streamgauge.records.trial import Seconds, SystemFigures

_FIGURES = TypeAdapter(SystemFigures)
_SECONDS = TypeAdapter(Seconds, config=ConfigDict(strict=True))


def checked(given: object, declared: Rules) -> tuple[SystemFigures, str | None]:
    """Returns the figures, and None; or none of them, and in one line why they are unusable.

    declared: the late rules of the trial, by the adapter; `rules` among the figures are those that were followed.
    """
    if not isinstance(given, dict):
        return {}, f"the system's figures: found {shown(given)}, allowed: an object"
    followed = given.get("rules", declared)
    if not isinstance(followed, Rules):
        allowed = "Rules(…) of streamgauge.records.rules"
        return {}, f"the system's figures: rules: found {shown(followed)}, allowed: {allowed}"
    if followed != declared:
        ended, begun = _differing(followed, declared), _differing(declared, followed)
        return {}, f"the system's figures: rules: found {ended}, allowed: {begun}, as its adapter declares"
    try:
        figures = _FIGURES.validate_python({name: figure for name, figure in given.items() if name != "rules"})
        json.dumps(figures, allow_nan=False)
    except ValidationError as problem:
        return {}, f"the system's figures: {first_mistake(problem)}"
    except (TypeError, ValueError, RecursionError) as problem:
        return {}, f"the system's figures: found what is no JSON ({problem}), allowed: finite numbers, texts, lists"
    return figures, None


def first_mistake(problem: ValidationError) -> str:
    """Describes the first mistake in one line: where it is, what was found, and what is allowed."""
    first = problem.errors(include_url=False)[0]
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    place, allowed = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Input should be ")
    if place[:1].isdigit():  # an argument without its name, from 0 on
        place = f"{problem.title}, argument {place}"
    return f"{place}: found {shown(first['input'])}, allowed: {allowed}"


def _differing(rules: Rules, others: Rules) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in vars(rules).items() if value != vars(others)[name])


def seconds(given: Callable[[], object]) -> tuple[float | None, str | None]:
    """Returns CPU seconds, or None where the adapter does not know them; and why they are unusable, or None."""
    used = given()
    if used is None:
        return None, None
    try:
        return _SECONDS.validate_python(used), None
    except ValidationError:
        return None, f"the system's cpu_seconds: found {shown(used)}, allowed: seconds, 0 or more"
