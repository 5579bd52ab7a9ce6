"""Field types that models of files share, and the form of such models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from streamgauge.base.units import Duration, parse_bytes


def _length(length: object) -> Duration:
    """Parses a duration. Raises ValueError for a negative one."""
    duration = Duration.parse(length)
    if duration.ps < 0:
        raise ValueError(f"found {length}, allowed: 0 or more")
    return duration


Delay = Annotated[
    Duration,
    BeforeValidator(_length),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ps|ns|us|ms|s|m|min|h|d)$"}),
]
ByteCount = Annotated[
    int,
    BeforeValidator(parse_bytes),
    WithJsonSchema({"type": ["string", "integer"], "pattern": r"^\d+(\.\d+)?\s*(kB|[MGT]B|[KMGT]iB|B)?$"}),
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Ratio = Annotated[int, Field(gt=0, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)


def _named_variables(value: Mapping[str, str]) -> Mapping[str, str]:
    """Refuses a secret where the name of its variable belongs, without repeating it."""
    for header, variable in value.items():
        if not _VARIABLE.fullmatch(variable):
            raise ValueError(
                f"{header}: found no name of an environment variable (not shown, as it may be a secret), allowed: "
                "letters, digits and _"
            )
    return value


#: header -> environment variable that holds its value
SecretHeaders = Annotated[dict[str, str], AfterValidator(_named_variables)]


def check_delivery(url: str | None, timeout: Duration) -> None:
    """Raises ValueError for a URL or a timeout that nothing can be delivered with."""
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url: allowed: http://host:port/path or https://…")
        if parts.username or parts.password:
            raise ValueError("url: found credentials; use headers_from_env, which keeps them out of files and logs")
    if timeout.ps <= 0:
        raise ValueError(f"timeout: found {timeout}, allowed: above 0")
