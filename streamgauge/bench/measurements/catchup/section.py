"""The section `catchup` of a benchmark file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from streamgauge.bench.measurements import LONGEST, Pace, RatedSection

if TYPE_CHECKING:
    from streamgauge.config import Benchmark

#: a system is live for good if it was seen so for so many seconds; a repeat ends after these and the allowed age
STAYS_S = 5.0


class Catchup(RatedSection):
    """A backlog that a standstill leaves, and the events that go on meanwhile."""

    minutes: Annotated[float, Field(gt=0, le=24 * 60)] = Field(
        default=5.0, description="length of the standstill, whose events wait when a repeat begins"
    )
    fraction: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.5, description="fraction of the sustainable rate at which events come"
    )
    repeats: Annotated[int, Field(ge=1, le=20)] = Field(
        default=3, description="fresh systems that are measured; from 2 on there is an interval"
    )
    patience: Annotated[float, Field(ge=1, le=100)] = Field(
        default=4.0, description="a repeat ends at the latest after so many lengths of the standstill"
    )

    @property
    def behind_s(self) -> float:
        """Age of the oldest event when a repeat begins."""
        return 60 * self.minutes

    @property
    def most_s(self) -> float:
        """Seconds that a repeat lasts at most."""
        return self.patience * self.behind_s

    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
        return pace.start_s + self.repeats * (pace.warm_s(benchmark) + self.until_live_s(benchmark, pace))

    def until_live_s(self, benchmark: Benchmark, pace: Pace) -> float:
        """Estimates the seconds of one repeat. A system is taken to carry twice the rate that the file names."""
        fraction = self.fraction if self.rate is None else 0.5
        most_s = self.most_s if pace == LONGEST else min(self.most_s, self.behind_s * fraction / (1 - fraction))
        return most_s + benchmark.search.max_age.seconds + STAYS_S
