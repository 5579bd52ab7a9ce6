"""The section `recovery` of a benchmark file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from streamgauge.base.field_types import Delay, PositiveFloat
from streamgauge.bench.measurements import LONGEST, Pace, RatedSection

if TYPE_CHECKING:
    from streamgauge.config import Benchmark
    from streamgauge.config.systems import System

Kind = Literal["kill", "restart", "cut", "rescale"]
#: parts of a trial between which its fault comes
EARLIEST, LATEST = 1 / 6, 1 / 3
#: the shortest interval of checkpoints
LEAST_S = 0.1
#: a system is back for good only if it was seen to stay so for so many seconds
STAYS_S = 3.0


def watched_s(bound_s: float) -> float:
    """Seconds for which a trial goes on after its system is back."""
    return bound_s + STAYS_S


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

    def hints(self, benchmark: Benchmark) -> Iterator[str]:
        """Yields the faults after which a trial may end before its system is seen back."""
        used = self.fraction if self.rate is None else 0.0  # which part of a system a declared rate takes is not known
        bound_s = benchmark.search.max_age.seconds
        for system, fault in itertools.product(benchmark.systems, self.faults):
            away_s = self._away_s(system, fault, 0.0)
            back_s = away_s + max(0.0, away_s - bound_s) * used / (1 - used)
            least_s = (back_s + STAYS_S) / (1 - LATEST)
            if away_s and self.seconds < least_s:
                yield (
                    f"recovery.seconds: found {self.seconds:g}, but systems.{system.name} is usually back {back_s:.3g} "
                    f"s after a {fault}; from {math.ceil(least_s)} on, a trial sees it"
                )

    def _away_s(self, system: System, fault: Kind, start_s: float) -> float:
        return {"cut": self.cut_seconds, **system.away_s}.get(fault, start_s)

    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
        """Estimates the seconds of a cell's trials; at the longest, each leaves the system to be replaced.

        A trial ends once the system was back for a while. It is away for as long as its link is, or as its settings
        tell, else as it takes to start.
        """
        warm_s, systems = pace.warm_s(benchmark), len(self.checkpoint_intervals) or 1
        if pace == LONGEST:
            declared = [one.striking_s for one in benchmark.systems]
            striking_s = sum(max((one.get(fault, 0.0) for one in declared), default=0.0) for fault in self.faults)
            each_s = len(self.faults) * (warm_s + self.seconds) + striking_s
            return systems * (pace.start_s + self.repeats * each_s)
        whole_s = sum(self.strikes_s) / 2 + watched_s(benchmark.search.max_age.seconds)
        away = [self._away_s(system, fault, pace.start_s) for system in benchmark.systems for fault in self.faults]
        trials_s = sum(min(self.seconds, whole_s + away_s) for away_s in away) / max(1, len(benchmark.systems))
        return systems * (pace.start_s + warm_s + self.repeats * trials_s)
