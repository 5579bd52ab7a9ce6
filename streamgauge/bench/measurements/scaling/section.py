"""The section `scaling` of a benchmark file."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from streamgauge.base.field_types import Model, PositiveFloat
from streamgauge.bench.measurements import Section

#: kernels grant no less than a hundredth of a period
Quota = Annotated[float, Field(ge=0.01, allow_inf_nan=False)]


class Cost(Model):
    """Prices of a machine."""

    core_hour: PositiveFloat = Field(description="money for a core for an hour, in any currency")


class Scaling(Section):
    """Rates on parts of the machine, in turns in one warm process."""

    quotas: Annotated[tuple[Quota, ...], Field(min_length=2)] = Field(
        default=(0.25, 0.5, 0.75, 1.0), description="parts of the machine, as the time of so many CPUs"
    )
    cores: Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=2)] | None = Field(
        default=None, description="parts of the machine, as numbers of whole CPUs; instead of `quotas`"
    )
    blocks: Annotated[int, Field(ge=2, le=50)] = Field(
        default=3, description="blocks, each of which measures every part once, in an order of its own"
    )
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(default=1, description="seed of these orders")
    demand: PositiveFloat | None = Field(default=None, description="events/s for which the least cores are told")
    cost: Cost | None = Field(default=None, description="prices, for the money that a billion events cost")

    @property
    def parts(self) -> tuple[float, ...]:
        """Numbers of CPUs, ascending."""
        return tuple(sorted(self.cores or self.quotas))

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.cores is not None and "quotas" in self.model_fields_set:
            raise ValueError("found both quotas and cores, allowed: one of them")
        if len(set(self.parts)) < len(self.parts):
            raise ValueError(f"{'cores' if self.cores else 'quotas'}: found a number twice, allowed: each once")
        return self
