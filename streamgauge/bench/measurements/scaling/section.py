"""The section `scaling` of a benchmark file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from streamgauge.base.field_types import Model, PositiveFloat, Seed
from streamgauge.bench.measurements import LONGEST, Pace, Section

if TYPE_CHECKING:
    from streamgauge.config import Benchmark

#: kernels grant no less than a hundredth of a period
Quota = Annotated[float, Field(ge=0.01, allow_inf_nan=False)]

QUOTAS: tuple[Quota, ...] = (0.25, 0.5, 0.75, 1.0)
#: seconds of the trial that compares answers on a part of the machine
CHECK_S = 10.0


class Cost(Model):
    """Prices of a machine."""

    core_hour: PositiveFloat = Field(description="money for a core for an hour, in any currency")


class Scaling(Section):
    """Rates on parts of the machine, in turns in one warm process; or over a setting, each in a fresh one."""

    quotas: Annotated[tuple[Quota, ...], Field(min_length=2)] = Field(
        default=QUOTAS, description="parts of the machine, as the time of so many CPUs"
    )
    cores: Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=2)] | None = Field(
        default=None, description="parts of the machine, as numbers of whole CPUs; instead of `quotas`"
    )
    setting: str | None = Field(
        default=None,
        description="number among the settings: parallelism, master (that of local[2]), checkpoint_ms, a job's "
        "environment.…, or replay.partitions; each of `values` has fresh processes; instead of `quotas`",
    )
    values: Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=2)] | None = Field(
        default=None, description="numbers that the setting has"
    )
    blocks: Annotated[int, Field(ge=2, le=50)] = Field(
        default=3, description="blocks, each of which measures every part once, in an order of its own"
    )
    seed: Seed = Field(default=1, description="seed of these orders")
    demand: PositiveFloat | None = Field(
        default=None, description="events/s for which the least cores, or the least value of the setting, are told"
    )
    cost: Cost | None = Field(default=None, description="prices, for the money that a billion events cost")

    @property
    def parts(self) -> tuple[float, ...]:
        """Numbers of CPUs, or the values of the setting, ascending."""
        return tuple(sorted(self.values or self.cores or self.quotas))

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        # a run's copy of the file also holds what was not given
        kinds = ["quotas"] * (self.quotas != QUOTAS) + [name for name in ("cores", "values") if getattr(self, name)]
        if len(kinds) > 1:
            raise ValueError(f"found both {' and '.join(kinds)}, allowed: one of them")
        if len(set(self.parts)) < len(self.parts):
            raise ValueError(f"{''.join(kinds)}: found a number twice, allowed: each once")
        if (self.setting is None) != (self.values is None):
            raise ValueError("give setting and values, both of them or none")
        if self.setting is not None and self.cost is not None:
            raise ValueError("cost: found with setting, allowed: with quotas or cores, as its price is that of a core")
        return self

    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
        """Estimates the seconds in which a cell's rates on parts of the machine are measured."""
        search, visits = benchmark.search, len(self.parts) * self.blocks
        windows_s = 0.5 * search.window_seconds + max(2 * search.window_seconds, 0.75 * search.max_age.seconds)
        warm_s = pace.warm_s(benchmark)
        if self.setting is not None:  # each visit starts a driver and a system, and so does the look at the answers
            longer = 4 if pace == LONGEST else 2  # it has windows of more rows, most of them where a value is faster
            return (visits + 1) * (pace.start_s + warm_s) + longer * visits * windows_s + CHECK_S + pace.start_s
        return pace.start_s + warm_s + visits * (windows_s + pace.change_s) + CHECK_S + pace.start_s
