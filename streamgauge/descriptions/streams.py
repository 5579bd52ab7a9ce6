"""Settings of experiments, which make streams from a source, and of their delays."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from streamgauge.base.field_types import Delay, Model, Name, Percent, PositiveFloat, Seed
from streamgauge.base.plugins import Parts
from streamgauge.base.units import Duration


def _one_csv(outputs: tuple[str, ...]) -> tuple[str, ...]:
    if {"csv", "csv-parts"} <= set(outputs):
        raise ValueError("found csv and csv-parts, allowed: one of them; they hold the same rows")
    return outputs


Output = Literal["parquet", "csv", "csv-parts", "jsonl", "kafka"]
Outputs = Annotated[tuple[Output, ...], AfterValidator(_one_csv)]


#: the distributions, and the parameters that each uses besides min and max
DELAY_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "constant": ("mean",),
    "normal": ("mean", "stddev"),
    "exponential": ("mean",),
    "lognormal": ("mean", "sigma"),
    "pareto": ("mean", "alpha"),
    "empirical": ("profile",),
}
#: functions (quantile, minimum, maximum) -> ticks; the built-in ones have parameters instead
DELAYS = Parts("delays", DELAY_PARAMETERS, "name")


def _delivery(given: object) -> object:
    if given == "at_once" or (isinstance(given, int) and 1 <= given <= 1_000_000):
        return given
    raise ValueError(f"found {given!r}, allowed: at_once, or a whole number from 1 to 1,000,000")


class OutageSpec(Model):
    """Outages of parts of the stream: while a part is out, its events wait."""

    by: str = Field(
        description="parts that are out on their own: a column, such as a device; partition; or all: one part"
    )
    partitions: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None,
        description="number of partitions: those of the keys in the column, or in turns (by: partition)",
    )
    spacing: Delay | None = Field(
        default=None, description="mean time from the end of an outage to the next one of the same part"
    )
    like: str | None = Field(
        default=None,
        description="profile.json by part, to whose delays and parts the outages are fitted; in place of spacing",
    )
    delivery: Annotated[Literal["at_once"] | int, BeforeValidator(_delivery)] = Field(
        default="at_once",
        description="at_once, when the outage ends; or how many times as fast as they happened the events come then",
    )

    @model_validator(mode="after")
    def _parts(self) -> Self:
        if (self.spacing is None) == (self.like is None):
            raise ValueError("spacing: give either this or like, the profile.json to fit to")
        if self.spacing is not None and self.spacing.ps <= 0:
            raise ValueError(f"spacing: found {self.spacing}, allowed: above 0")
        if self.like is not None and self.delivery != "at_once":
            raise ValueError(f"delivery: found {self.delivery} with like, allowed: at_once")
        if self.partitions is None and self.by == "partition":
            raise ValueError("partitions: missing with by: partition, allowed: the number of partitions")
        if self.partitions is not None and self.by == "all":
            raise ValueError("partitions: found with by: all, allowed: with by: partition, or a column of keys")
        if self.partitions is not None and self.like is not None and self.by != "partition":
            raise ValueError("partitions: found with like and a column, allowed: with by: partition")
        if self.by == "all" and self.delivery == "at_once":
            raise ValueError("delivery: found at_once with by: all, which keeps the order, allowed: a number")
        return self

    @property
    def column(self) -> str | None:
        """The column whose values are the parts; None where no column has them."""
        return None if self.by in ("all", "partition") else self.by


class DelaySpec(Model):
    """A delay distribution, truncated to [min, max]; further parameters depend on the distribution.

    With outages it is the distribution of their lengths.
    """

    distribution: str = Field(
        default="uniform",
        description="uniform, constant, normal, exponential, lognormal, pareto, empirical, a registered name, "
        "or package.module:name",
    )
    min: Delay = Field(default=Duration(0), description="smallest delay")
    max: Delay = Field(default=Duration.parse("2s"), description="largest delay")
    mean: Delay | None = Field(
        default=None,
        description="normal, exponential: the mean; lognormal, pareto: the median untruncated; constant: the value",
    )
    stddev: Delay | None = Field(default=None, description="normal: standard deviation; without it (max - min)/6")
    sigma: PositiveFloat | None = Field(default=None, description="lognormal: standard deviation of the logarithm")
    alpha: PositiveFloat | None = Field(default=None, description="pareto: shape")
    profile: str | None = Field(default=None, description="empirical: a profile.json to draw from")
    outages: OutageSpec | None = Field(
        default=None,
        description="delays come in outages of parts of the stream; the distribution is then that of their lengths",
        exclude_if=lambda outages: outages is None,
    )

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min: found {self.min}, which is above max {self.max}")
        like = self.outages and self.outages.like
        if like and (self.distribution != "uniform" or "max" not in self.model_fields_set):
            raise ValueError("max: give this with outages.like, the longest outage, and no distribution")
        known = self.distribution in DELAY_PARAMETERS or self.own_code is not None
        used = DELAY_PARAMETERS.get(self.distribution, ())
        for key in self.model_dump(include={"mean", "stddev", "sigma", "alpha", "profile"}, exclude_none=True):
            if known and key not in used:
                allowed = ", ".join(("min", "max", *used))
                raise ValueError(f"{key}: found with {self.distribution}, which does not use it, allowed: {allowed}")
        return self

    @property
    def own_code(self) -> str | None:
        """The package.module:name of a function that is not of this project; None for a built-in distribution."""
        return DELAYS.outside(self.distribution)


_NO_DELAY = DelaySpec(max=Duration(0))


class Experiment(Model):
    """An experiment, which gives one stream: a target, a delay distribution and a seed."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["target_percent"]}, {"required": ["target"]}]})

    name: Name = Field(description="name of the experiment; the stream does not depend on it")
    target_percent: Percent | None = Field(
        default=None,
        description="percent of the events that come out of order, taken exactly as written",
        exclude_if=lambda percent: percent is None,
    )
    target: Literal["source"] | None = Field(
        default=None,
        description="source, in place of target_percent: the stream as it came, to which no delay is added",
        exclude_if=lambda target: target is None,
    )
    delay: DelaySpec = Field(
        default=DelaySpec(), description="distribution of the delays of the events that come out of order"
    )
    seed: Seed = Field(default=42, description="seed of the stream: the same seed gives the same stream")
    on_infeasible: Literal["error", "closest"] = Field(
        default="error",
        description="error: an unreachable target is an error; closest: the closest reachable count is taken",
    )
    duplicates: Percent | None = Field(
        default=None,
        description="percent of the events that come twice, the second time right behind the first",
        exclude_if=lambda percent: percent is None,
    )
    outputs: Outputs = Field(
        default=("parquet",),
        description="forms of the stream: parquet; csv (one ordered file) or csv-parts (ordered parts); jsonl; kafka",
    )

    @model_validator(mode="before")
    @classmethod
    def _undelayed(cls, raw: object) -> object:
        return {"delay": _NO_DELAY, **raw} if isinstance(raw, dict) and raw.get("target") == "source" else raw

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.target and self.target_percent is not None:
            raise ValueError("target: found beside target_percent, allowed: one of them")
        if self.target and self.delay != _NO_DELAY:
            raise ValueError("delay: found with target: source, which adds no delay, allowed: target_percent with it")
        if not self.target and self.target_percent is None:
            raise ValueError("target_percent: this key is missing; or write target: source for the stream as it came")
        return self

    def check_columns(self, columns: Collection[str]) -> None:
        """Raises ValueError if outages go by a column that the source does not keep."""
        outages = self.delay.outages
        if outages and outages.column and outages.column not in columns:
            raise ValueError(
                f"experiments.{self.name}.delay.outages.by: found {outages.by!r}, allowed: all, partition with "
                f"partitions, or one of source.columns: {', '.join(columns) or 'none'}"
            )

    @property
    def fraction(self) -> Fraction | None:
        """The target as a fraction of events, exactly as written; None where the stream is to be as it came."""
        return None if self.target_percent is None else Fraction(repr(self.target_percent)) / 100

    @property
    def duplicated(self) -> Fraction:
        """The part of the events that come twice, exactly as written."""
        return Fraction(repr(self.duplicates or 0)) / 100

    @property
    def wanted(self) -> str:
        """The target in words."""
        return "as it came" if self.target_percent is None else f"{self.target_percent:g} %"

    @property
    def delays(self) -> str:
        """The delays in words."""
        delay = self.delay
        if self.target:
            return "none added"
        drawn = f"{delay.distribution} {delay.min}…{delay.max}"
        if not delay.outages:
            return drawn
        return f"outages by {delay.outages.by}, " + (f"fitted, to {delay.max}" if delay.outages.like else drawn)
