"""The section `soak` of a benchmark file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from streamgauge.bench.measurements import LONGEST, Pace, RatedSection

if TYPE_CHECKING:
    from streamgauge.config import Benchmark


class Soak(RatedSection):
    """A long run at one rate, which shows what grows."""

    fraction: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.6, description="fraction of the sustainable rate that is offered"
    )
    minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60)] = Field(
        default=20.0, description="length of the run, after the warm-up"
    )
    every_seconds: Annotated[float, Field(ge=0.5, le=600)] = Field(
        default=2.0, description="time between two samples of memory, state, files and disk"
    )

    @property
    def seconds(self) -> float:
        return 60 * self.minutes

    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
        return pace.warm_s(benchmark) + self.seconds + pace.start_s
