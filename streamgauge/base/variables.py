"""Values that name variables of the environment as ${VARIABLE}: filled in only by the process that needs them."""

from __future__ import annotations

import os
import re
from typing import Any

from streamgauge.base import secrets
from streamgauge.base.errors import UserError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def is_one(value: object) -> bool:
    """True for ${VARIABLE} and nothing beside it."""
    return isinstance(value, str) and _VARIABLE.fullmatch(value) is not None


def named(text: str) -> list[str]:
    """Names of the variables in a text."""
    return _VARIABLE.findall(text)


def value_of(variable: str, where: str) -> str:
    """The value of a variable, which is a secret from now on. Raises UserError if it is not set."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UserError(f"{where}: the environment variable {variable} is not set; export it")
    secrets.know([value])
    return value


def filled(value: object, where: str) -> Any:
    """Settings with the values of the variables that their texts name. Raises UserError for one that is not set."""
    if isinstance(value, str):
        for name in named(value):
            if name not in os.environ:
                raise UserError(f"{where}: the environment has no variable {name}")
            secrets.know([os.environ[name]])
        return _VARIABLE.sub(lambda name: os.environ[name[1]], value)
    if isinstance(value, dict):
        return {key: filled(one, f"{where}.{key}") for key, one in value.items()}
    return [filled(one, where) for one in value] if isinstance(value, list | tuple) else value
