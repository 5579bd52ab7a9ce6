"""The section `catchup` of a benchmark file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamgauge.bench.measurements import RatedSection

#: it is live for good after so many seconds more than the allowed age
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
