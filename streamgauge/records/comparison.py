"""The record of a comparison: what disorder costs, from windows that one process measured in turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from streamgauge.config import Cell
from streamgauge.records.claim import Claim
from streamgauge.records.record import Part
from streamgauge.stats.paired import Ratio

RATE = "sustainable_rate_events_per_s"
#: what stands before the sentence of a latency, which the last process alone measures
_LATENCIES = {name: f"in {name} latency of one process, " for name in ("p50", "p99")}


class Comparison(Part):
    """A figure of an experiment over that of another one, of one workload on one system; nulls if it is not known.

    metric: the rate, or p50 or p99 of the event-time latency at one rate for both.
    """

    experiment: str
    against: str
    workload: str
    system: str
    metric: str = RATE
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    blocks: int = 0
    processes: int = 0
    reason: str = ""  # why it is not known, where it is not

    @classmethod
    def of(
        cls, cell: Cell, base: Cell, ratio: Ratio | None, metric: str = RATE,
        reason: str = "too few windows in turns were measured",
    ) -> Comparison:  # fmt: skip
        """The comparison of two cells. reason: why it is not known, if there is no ratio."""
        names = {"experiment": cell.experiment, "workload": cell.workload, "system": cell.system}
        about = cls(**names, against=base.experiment, metric=metric)
        if ratio is None:
            return about.model_copy(update={"reason": reason})
        values = {"ratio": ratio.ratio, "interval": (ratio.low, ratio.high)}
        return about.model_copy(update=values | {"blocks": ratio.blocks, "processes": ratio.processes})

    def among(self, claims: Mapping[str, Claim]) -> Self:
        """Itself; without its ratio if a rate of the two does not count. claims: those of all cells, by their names."""
        for experiment in (self.experiment, self.against):
            claim = claims.get(self._cell(experiment).name)
            is_bound = claim is not None and claim.is_bound and self.metric == RATE
            if claim is None or claim.rate_events_per_s is None or is_bound:
                reason = f"{experiment} {'may carry more than was offered' if is_bound else 'has no rate that counts'}"
                return self.model_copy(update={"ratio": None, "interval": None, "reason": reason})
        return self

    @property
    def name(self) -> str:
        """The name of the cell that is compared."""
        return self._cell(self.experiment).name

    def _cell(self, experiment: str) -> Cell:
        return Cell(experiment=experiment, workload=self.workload, system=self.system)

    @property
    def sentence(self) -> str:
        """Sentence that says what disorder costs, as far as the interval allows."""
        what, sign = _LATENCIES.get(self.metric, ""), 1 if self.metric in _LATENCIES else -1
        if self.ratio is None or self.interval is None:
            return f"{what}what it costs against {self.against} is not known: {self.reason}"
        low, high = (end - 1 for end in self.interval)
        if low <= 0 <= high:
            of, between = "it" if what else "the rate", f"{abs(low):.1%} lower and {high:.1%} higher"
            return f"{what}against {self.against} no cost shows: {of} is between {between}"
        word = "costs" if sign * low > 0 else "gains"
        least, most = sorted((abs(low), abs(high)))
        return f"{what}against {self.against} it {word} {abs(1 - self.ratio):.1%} ({least:.1%} to {most:.1%})"
