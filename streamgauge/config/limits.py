"""Settings of the disk space that artifacts may take, and of when a task of a run counts as hung."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamgauge.base.field_types import ByteCount, Delay, Model
from streamgauge.base.units import Duration, parse_bytes


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


class Timeouts(Model):
    """Timeouts of tasks: a task that runs longer counts as hung, is ended, and is reported as failed."""

    factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=3.0, description="multiple of its estimated duration after which a task is ended"
    )
    least: Delay = Field(default=Duration.parse("30m"), description="shortest time after which a task is ended")
