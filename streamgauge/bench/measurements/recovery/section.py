"""The section `recovery` of a benchmark file."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from streamgauge.base.field_types import Delay, PositiveFloat
from streamgauge.bench.measurements import RatedSection

Kind = Literal["kill", "restart", "cut", "rescale"]
#: within these parts of a trial its fault comes
EARLIEST, LATEST = 1 / 6, 1 / 3
#: the shortest interval of checkpoints
LEAST_S = 0.1


class Recovery(RatedSection):
    """Faults in the middle of trials at one rate."""

    fraction: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.6, description="fraction of the sustainable rate that is offered"
    )
    seconds: Annotated[float, Field(ge=5, le=24 * 3600)] = Field(
        default=60.0, description="length of a trial at most; its fault comes in its second sixth"
    )
    faults: Annotated[tuple[Kind, ...], Field(min_length=1)] = Field(
        default=("kill", "restart", "cut"),
        description="kill: the whole system, which goes on from its checkpoint; restart: of a worker; cut: of the "
        "link; rescale: a restart with twice the parallelism",
    )
    checkpoint_intervals: tuple[Delay, ...] = Field(
        default=(),
        description="intervals of the system's checkpoints, such as [1s, 5s]: each has all faults, in a fresh system; "
        "without them its own settings hold",
    )
    cut_seconds: PositiveFloat = Field(default=2.0, description="time for which the link is cut")
    repeats: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="trials with each fault; from 2 on there is an interval"
    )
    seed: Annotated[int, Field(ge=0)] = Field(default=1, description="seed of the instants at which faults come")

    @property
    def strikes_s(self) -> tuple[float, float]:
        """Both ends of the seconds of a trial in which its fault comes."""
        return EARLIEST * self.seconds, LATEST * self.seconds

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.faults)) < len(self.faults):
            raise ValueError(f"faults: found {', '.join(self.faults)}, allowed: each of them once")
        if len(set(self.checkpoint_intervals)) < len(self.checkpoint_intervals):
            raise ValueError("checkpoint_intervals: found one of them twice, allowed: each of them once")
        longest_s, latest_s = self.strikes_s
        for interval in self.checkpoint_intervals:
            if not LEAST_S <= interval.seconds <= longest_s:
                raise ValueError(
                    f"checkpoint_intervals: found {interval}, allowed: from {LEAST_S:g} s to {longest_s:.3g} s, which "
                    "is a sixth of `seconds`, so that a checkpoint comes before a fault"
                )
        most_s = self.seconds - latest_s  # exact where it is a whole number
        if self.cut_seconds >= most_s:
            raise ValueError(
                f"cut_seconds: found {self.cut_seconds:g}, allowed: less than {most_s:g}, two thirds of `seconds`, as "
                "the rest of a trial shows the way back"
            )
        return self
