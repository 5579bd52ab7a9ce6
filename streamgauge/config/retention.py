"""Settings of the disk space that artifacts may take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamgauge.base.field_types import ByteCount, Model
from streamgauge.base.units import parse_bytes


class Retention(Model):
    """Limits of the disk space that artifacts take, and which data is kept; results are never deleted."""

    disk_budget: ByteCount = Field(
        default=parse_bytes("50GiB"),
        description="checked before a run, which deletes old data first",
        json_schema_extra={"default": "50GiB"},
    )
    keep_runs: Annotated[int, Field(ge=1)] = Field(
        default=3, description="the newest runs of each benchmark keep their data"
    )
