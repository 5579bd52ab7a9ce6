"""The section `search` of a benchmark file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from streamgauge.base.field_types import Delay, PositiveFloat
from streamgauge.base.units import Duration
from streamgauge.bench.measurements import LONGEST, Pace, Section

if TYPE_CHECKING:
    from streamgauge.config import Benchmark


class Search(Section):
    """Settings of the search for the sustainable rate.

    Each process has a ladder of closed-loop windows; proof trials then test the estimate.
    """

    max_age: Delay = Field(
        default=Duration.parse("10s"),
        description="the allowed age: at a sustainable rate, a system that is this far behind catches up",
    )
    processes: Annotated[int, Field(ge=1, le=20)] = Field(
        default=1,
        description="fresh systems, each with a ladder of its own; from 2 on the interval covers their spread",
    )
    in_turns: bool | None = Field(
        default=None,
        description="search the cells in rounds, with one process of each cell in a round; cells that differ only in "
        "their stream share it; false: one cell after another; by default true where cells share one, and there are "
        "no nights",
    )
    min_rate: PositiveFloat = Field(
        default=1.0,
        description="events/s; the highest rate searched is at least this, even if the driver's ceiling is lower",
    )
    max_rate: PositiveFloat = Field(
        default=5_000_000.0, description="events/s; a higher rate is neither proven nor published"
    )
    warmup_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=75.0,
        description="longest warm-up of a fresh system; it ends earlier once a batch's cost is steady; 0: no warm-up",
    )
    window_seconds: PositiveFloat = Field(default=4.0, description="shortest length of a window of the ladder")
    window_error: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.02,
        description="relative standard error at which a window ends; it ends at the latest after twice its length",
    )
    blocks: Annotated[int, Field(ge=5, le=100)] = Field(
        default=6,
        description="blocks of windows in turns, for the ratio of cells that share a process; twice as many at most",
    )
    ratio_error: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.03, description="half width of the ratio's interval at which no further block is measured"
    )
    margin: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=0.1, description="relative distance of the first proof trials below and above the estimate"
    )
    proof_steps: Annotated[int, Field(ge=0, le=4)] = Field(
        default=2,
        description="most rates tried on each side as proof, each twice as far away as the one before; 0: no proof",
    )
    recovery_seconds: PositiveFloat = Field(
        default=40.0,
        description="longest proof trial, or max_age if longer; it ends once the sign of its drift is clear",
    )
    max_drift: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05,
        description="largest drift of a batch's cost at the end of the ladder; above it the result notes a doubt",
    )
    yardstick: bool = Field(
        default=True,
        description="time a fixed piece of work on the system's CPUs between windows, to see if the machine's speed "
        "changes; false where the system is on other hosts, or shares its CPUs with other work",
    )
    verdict: str = Field(default="recovery", description="recovery, a registered name, or package.module:function")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_rate > self.max_rate:
            raise ValueError(f"min_rate: found {self.min_rate:g}, which is above max_rate {self.max_rate:g}")
        if self.max_age.ps <= 0:
            raise ValueError(f"max_age: found {self.max_age}, allowed: a time above 0")
        return self

    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST, cells: int = 1) -> float:
        """Estimates the seconds of the search for one cell, or for so many that share their processes."""
        in_blocks = 2 * pace.blocks * self.blocks if cells > 1 else 0.0
        changes = pace.windows / 6 + 0.75 * in_blocks if cells > 1 else 0.0  # every second window has another stream
        ladders_s = cells * ((pace.windows + 2.5 * in_blocks) * self.window_seconds + changes * pace.change_s)
        trial = pace.trials * (self.recovery_seconds + self.max_age.seconds)
        proofs_s = cells * 2 * pace.loads * self.proof_steps * trial
        return pace.start_s + self.processes * (pace.warm_s(benchmark) + ladders_s + proofs_s)
