"""The record of how a cell scales, `scaling.json`: its rate on parts of the machine, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from streamgauge.base.words import fewer
from streamgauge.config import Cell
from streamgauge.config.changing import WORKERS
from streamgauge.records.answered import Answered
from streamgauge.records.measurement import Outcome
from streamgauge.records.record import Part
from streamgauge.stats.parts import Curve, more_cpus
from streamgauge.stats.scalability import Coefficient, Law, Refused, cost_per_billion, fit

Interval = tuple[float, float]


class Carried(Part):
    """The rate on a part of the machine, over its blocks, with 90 % intervals; None where nothing was measured."""

    cpus: float  # or the value of the setting
    rate_events_per_s: float | None = None
    interval: Interval | None = None
    #: the rate of a CPU, or of a worker, over that of one, both from the same block; where none are counted, the rate
    #: over that with the least value
    efficiency: float | None = None
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
    """Least CPUs for a rate, with a 90 % interval for a fresh process; None: more than are known of, or none at all.

    by: the law gives whole cores; the points alone tell the least measured part.
    """

    rate_events_per_s: float
    by: Literal["law", "points"]
    cpus: float | None
    low: float | None
    high: float | None
    is_beyond: bool = False  # the law is continued beyond the largest part
    cost_per_billion: float | None = None


class DisorderInCpus(Part):
    """CPUs that a stream needs beyond those of a less disordered one, of one workload on one system, at one rate.

    Each stream had a process of its own, and the interval, one of 90 %, holds how much these differ. It is null where
    it is not known, with the reason.
    """

    against: str
    rate_events_per_s: float | None = None
    cpus: float | None = None
    of_against: float | None = None
    more: Interval | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        """Sentence that says what disorder costs in CPUs, as far as the interval allows."""
        if self.more is None or self.cpus is None or self.of_against is None:
            return f"what it costs in CPUs against {self.against} is not known: {self.reason}"
        low, high = self.more
        at, more = f"of two processes, at {self.rate_events_per_s:,.0f} events/s", self.cpus - self.of_against
        if low <= 0 <= high:
            return f"{at} it needs no more CPUs than {self.against} that show: between {low:+.2g} and {high:+.2g}"
        least, most = sorted((abs(low), abs(high)))
        word = "more" if more > 0 else "fewer"
        return f"{at} it needs {abs(more):.2g} CPUs {word} than {self.against} ({least:.2g} to {most:.2g})"


class Checked(Part):
    """An open-loop trial at a fraction of a part's rate, whose answers are compared."""

    at: str = "on the smallest part"
    rate_events_per_s: float
    outcome: Outcome
    correct: bool | None = None  # None: the output was not compared
    reason: str = ""


class ScalingRun(Answered):
    """Content of scaling.json."""

    plan: str
    cell: Cell | None = None
    target_percent: float = 0.0  # of its events that come out of order; 0 of a stream as it came
    kind: Literal["quotas", "cores", "setting"]
    setting: str = ""  # whose values stand for CPUs in all that follows
    blocks: int
    points: tuple[Carried, ...]
    law: Scalability | None = None
    refused: str = ""  # why there is no law
    need: Need | None = None
    differ: float = 0.0  # part by which the speed of a process differs from the middle of all, with 90 %
    core_hour: float | None = None
    checked: Checked | None = None
    seconds: float = 0.0  # of the measurement, its warm-up included
    software: dict[str, str] = Field(default_factory=dict)

    @property
    def outputs(self) -> dict[str, bool | None]:
        return {"": self.checked.correct} if self.checked else {}

    @property
    def void(self) -> str:
        """Reason why no figure counts; empty if they do."""
        return f"answers were wrong {self.checked.at}" if self.checked and self.checked.correct is False else ""

    @property
    def counts_workers(self) -> bool:
        """True if a number twice as large should carry twice the rate."""
        return counts_workers(self.setting)

    @property
    def unit(self) -> str:
        """Returns the name of what the numbers of the points count."""
        return self.setting or "CPUs"

    def shown(self, number: float) -> str:
        """A number of CPUs, or all digits of a value."""
        return str(int(number)) if self.setting else f"{number:g}"

    def at(self, number: float) -> str:
        """Words such as "on 2 CPUs" or "with parallelism 2"."""
        if self.setting:
            return f"with {self.setting} {self.shown(number)}"
        return f"on {number:g} {'CPU' if number == 1 else 'CPUs'}"

    @property
    def known(self) -> list[Carried]:
        """Points with a rate."""
        return [one for one in self.points if one.rate_events_per_s is not None]

    @property
    def curve(self) -> Curve | None:
        """The rates of all blocks; None if one is missing, or if answers were wrong."""
        if self.void or any(len(point.blocks) < self.blocks for point in self.points):
            return None
        blocks = [*zip(*(point.blocks for point in self.points), strict=True)]
        return Curve([point.cpus for point in self.points], blocks, self.differ)

    def fewer(self, point: Carried) -> str:
        """Says that a part lacks blocks; empty if it has all, or no rate."""
        return fewer(len(point.blocks), self.blocks, "block") if point.blocks else ""

    def cost(self, cpus: float, rate: float | None) -> float | None:
        """Money for a billion events on CPUs that carry this rate in events/s; None without a price or a rate."""
        return None if self.core_hour is None or rate is None else cost_per_billion(cpus, rate, self.core_hour)

    def cost_of(self, point: Carried) -> float | None:
        """Money for a billion events on that part."""
        return self.cost(point.cpus, point.rate_events_per_s)


def counts_workers(setting: str | None) -> bool:
    """True for parts of a machine, which are CPUs, and for settings that are known to be numbers of workers."""
    return not setting or setting in WORKERS


def law_of(points: tuple[Carried, ...], setting: str = "") -> Law | Refused:
    """The scalability law of the rates of all blocks, or why they do not carry it."""
    if not counts_workers(setting):
        return Refused(f"it is one of workers, and {setting} is not known to be a number of these")
    return fit([(point.cpus, rate) for point in points for rate in point.blocks])


def need_of(
    rate: float, points: tuple[Carried, ...], law: Law | Refused, core_hour: float | None, differ: float
) -> Need:
    """The least CPUs for a rate: by the law, or without one the least of the measured parts.

    differ: part by which the speed of a fresh process differs from that of the measured one, with 90 %.
    """
    if isinstance(law, Law):
        demand = law.demand(rate, differ)
        need = Need(
            rate_events_per_s=rate, by="law", cpus=demand.cores, low=demand.low, high=demand.high,
            is_beyond=demand.is_beyond,
        )  # fmt: skip
    else:
        known = sorted((one for one in points if one.interval), key=lambda one: one.cpus)
        ends = [(one.cpus, *_of_fresh(one, differ)) for one in known]
        cpus, high, low = (next((end[0] for end in ends if end[place] >= rate), None) for place in (1, 2, 3))
        need = Need(rate_events_per_s=rate, by="points", cpus=cpus, low=low, high=high)
    if core_hour is None or need.cpus is None:
        return need
    return need.model_copy(update={"cost_per_billion": cost_per_billion(need.cpus, rate, core_hour)})


def disorder_in_cpus(runs: Iterable[ScalingRun]) -> dict[str, DisorderInCpus]:
    """Costs of disorder by the cell, against the least disordered stream of its workload and system."""
    lines: dict[tuple[str, str], list[tuple[Cell, ScalingRun]]] = {}
    for run in sorted(runs, key=lambda one: one.target_percent):
        if run.cell is not None and not run.setting:
            lines.setdefault((run.cell.workload, run.cell.system), []).append((run.cell, run))
    return {
        cell.name: _in_cpus(run, other, base.experiment)
        for (base, other), *more in lines.values()
        for cell, run in more
    }


def _in_cpus(run: ScalingRun, other: ScalingRun, against: str) -> DisorderInCpus:
    curve, others = run.curve, other.curve
    if curve is None or others is None:
        return DisorderInCpus(against=against, reason="answers were wrong, or a part has no rate in some block")
    found = more_cpus(curve, others, run.need.rate_events_per_s if run.need else None)
    if isinstance(found, Refused):
        return DisorderInCpus(against=against, reason=found.reason)
    return DisorderInCpus(
        against=against, rate_events_per_s=found.rate_events_per_s, cpus=found.cpus, of_against=found.other,
        more=found.interval,
    )  # fmt: skip


def _of_fresh(point: Carried, differ: float) -> tuple[float, float, float]:
    """The rate, and both ends of its interval for a fresh process."""
    assert point.rate_events_per_s is not None
    rate = point.rate_events_per_s
    low, high = (math.hypot(math.log(end / rate), differ) for end in point.interval or (rate, rate))
    return rate, rate * math.exp(-low), rate * math.exp(high)
