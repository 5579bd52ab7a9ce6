"""Settings of when a task of a run counts as hung."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamgauge.base.units import Duration
from streamgauge.config.fields import Delay, Model


class Timeouts(Model):
    """When a task counts as hung: it is ended, and the night is told as failed."""

    factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=3.0, description="a task is ended after so many times the duration that its plan lets expect"
    )
    least: Delay = Field(default=Duration.parse("30m"), description="no task is ended earlier than after this")
