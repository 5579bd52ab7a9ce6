"""Settings of when a task of a run counts as hung."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamgauge.base.field_types import Delay, Model
from streamgauge.base.units import Duration


class Timeouts(Model):
    """Timeouts of tasks: a task that runs longer counts as hung, is ended, and is reported as failed."""

    factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=3.0, description="multiple of its estimated duration after which a task is ended"
    )
    least: Delay = Field(default=Duration.parse("30m"), description="shortest time after which a task is ended")
