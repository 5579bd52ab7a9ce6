"""The section of the benchmark file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamgauge.bench.measurements import OwnSection


class Pauses(OwnSection):
    """Settings of the measurement; `seconds`, which every section of a package has, is the length of its trial."""

    rate: Annotated[float, Field(gt=0)] = Field(default=1_000.0, description="events/s that are offered")
