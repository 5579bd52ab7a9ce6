"""The section `latency` of a benchmark file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from streamgauge.base.field_types import PositiveFloat
from streamgauge.bench.measurements import LONGEST, Pace, Section

if TYPE_CHECKING:
    from streamgauge.config import Benchmark


class Latency(Section):
    """Latency runs at fractions of the found rate."""

    fractions: tuple[Annotated[float, Field(gt=0, le=2)], ...] = Field(
        default=(0.5, 0.8, 0.9), description="fractions of the sustainable rate, a run at each"
    )
    rates: tuple[PositiveFloat, ...] = Field(
        default=(), description="events/s at which every cell is measured, too: latencies at one rate for all"
    )
    seconds: PositiveFloat = Field(default=20.0, description="length of a run, in seconds")
    blocks: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="blocks in which cells that share a process take turns at one rate, for the ratios of their p50 "
        "and p99; 5 at least for a ratio; 0: none",
    )

    @property
    def turn_seconds(self) -> float:
        """Length of a turn in a block."""
        return self.seconds / 4

    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST, *, warm: bool = False) -> float:
        """Estimates the seconds of the latency runs of one cell. warm: the process of its search goes on."""
        runs = len(self.fractions) + len(self.rates)
        return (0.0 if warm else pace.warm_s(benchmark)) + runs * (pace.run * self.seconds + pace.start_s)
