"""The record of how a cell scales, `scaling.json`: its rate on parts of the machine, and what follows from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streamgauge.records.measurement import Outcome
from streamgauge.records.record import Part, Record
from streamgauge.stats.scalability import Coefficient, Law, Refused, cost_per_billion, fit

Interval = tuple[float, float]


class Carried(Part):
    """The rate on a part of the machine, over its blocks, with 90 % intervals; None where nothing was measured."""

    cpus: float
    rate_events_per_s: float | None = None
    interval: Interval | None = None
    efficiency: float | None = None  # the rate of a CPU over that of one CPU, both from the same block
    efficiency_interval: Interval | None = None
    blocks: tuple[float, ...] = ()  # the rate in each of them
    limited_by: str = ""
    reason: str = ""  # why there is none


class Scalability(Part):
    """The scalability law of the points, with 90 % intervals."""

    one_core_events_per_s: float
    contention: Coefficient
    coherency: Coefficient
    peak_cores: float | None  # on which it carries the most; None without one
    curve: tuple[tuple[float, float, float, float], ...]  # CPUs, rate, and both ends of its interval

    @classmethod
    def of(cls, law: Law, parts: tuple[float, ...]) -> Scalability:
        """Returns the law with its curve up to twice the largest part."""
        steps = [parts[0] + (2 * parts[-1] - parts[0]) * n / 40 for n in range(41)]
        rates = [(cpus, law.rate(cpus)) for cpus in steps]
        return cls(
            one_core_events_per_s=law.one_core,
            contention=law.contention,
            coherency=law.coherency,
            peak_cores=law.peak if law.peak < float("inf") else None,
            curve=tuple((cpus, one.value, one.low, one.high) for cpus, one in rates),
        )


class Need(Part):
    """Least CPUs for a rate, with a 90 % interval; None: more than are known of, or none at all.

    by: the law gives whole cores; the points alone tell the least measured part.
    """

    rate_events_per_s: float
    by: Literal["law", "points"]
    cpus: float | None
    low: float | None
    high: float | None
    is_beyond: bool = False  # the law is continued beyond the largest part
    cost_per_billion: float | None = None


class Checked(Part):
    """An open-loop trial on the smallest part at a fraction of its rate, whose answers are compared."""

    rate_events_per_s: float
    outcome: Outcome
    correct: bool | None = None  # None: the output was not compared
    reason: str = ""


class ScalingRun(Record):
    """Content of scaling.json."""

    plan: str
    kind: Literal["quotas", "cores"]
    blocks: int
    points: tuple[Carried, ...]
    law: Scalability | None = None
    refused: str = ""  # why there is no law
    need: Need | None = None
    core_hour: float | None = None
    checked: Checked | None = None
    seconds: float = 0.0  # of the measurement, its warm-up included
    software: dict[str, str] = Field(default_factory=dict)

    @property
    def known(self) -> list[Carried]:
        """Points with a rate."""
        return [one for one in self.points if one.rate_events_per_s is not None]

    def cost_of(self, point: Carried) -> float | None:
        """Money for a billion events on that part; None without a price or a rate."""
        if self.core_hour is None or point.rate_events_per_s is None:
            return None
        return cost_per_billion(point.cpus, point.rate_events_per_s, self.core_hour)


def law_of(points: tuple[Carried, ...]) -> Law | Refused:
    """The scalability law of the rates of all blocks, or why they do not carry it."""
    return fit([(point.cpus, rate) for point in points for rate in point.blocks])


def need_of(rate: float, points: tuple[Carried, ...], law: Law | Refused, core_hour: float | None) -> Need:
    """The least CPUs for a rate: by the law, or without one the least of the measured parts."""
    if isinstance(law, Law):
        demand = law.demand(rate)
        need = Need(
            rate_events_per_s=rate, by="law", cpus=demand.cores, low=demand.low, high=demand.high,
            is_beyond=demand.is_beyond,
        )  # fmt: skip
    else:
        known = sorted((one for one in points if one.interval), key=lambda one: one.cpus)
        ends = [(one.cpus, one.rate_events_per_s or 0.0, *(one.interval or (0.0, 0.0))) for one in known]
        cpus, high, low = (next((end[0] for end in ends if end[place] >= rate), None) for place in (1, 2, 3))
        need = Need(rate_events_per_s=rate, by="points", cpus=cpus, low=low, high=high)
    if core_hour is None or need.cpus is None:
        return need
    return need.model_copy(update={"cost_per_billion": cost_per_billion(need.cpus, rate, core_hour)})
