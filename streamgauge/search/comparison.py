"""The record of a comparison: what disorder costs, from windows that one process measured in turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict

from streamgauge.config import Cell
from streamgauge.search.claims import Claim
from streamgauge.stats.paired import Ratio


class Comparison(BaseModel):
    """The rate of an experiment over that of another one, of one workload on one system; nulls if it is not known."""

    model_config = ConfigDict(frozen=True)

    experiment: str
    against: str
    workload: str
    system: str
    metric: str = "sustainable_rate_events_per_s"
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    blocks: int = 0
    processes: int = 0
    reason: str = ""  # why it is not known, where it is not

    @classmethod
    def of(cls, cell: Cell, base: Cell, found: Ratio | None) -> Comparison:
        about = cls(experiment=cell.experiment, against=base.experiment, workload=cell.workload, system=cell.system)
        if found is None:
            return about.model_copy(update={"reason": "too few windows in turns were measured"})
        told = {"ratio": found.ratio, "interval": (found.low, found.high)}
        return about.model_copy(update=told | {"blocks": found.blocks, "processes": found.processes})

    def among(self, claims: Mapping[str, Claim]) -> Self:
        """Itself; without its ratio if a rate of the two does not count. claims: those of all cells, by their names."""
        for experiment in (self.experiment, self.against):
            claim = claims.get(Cell(experiment=experiment, workload=self.workload, system=self.system).name)
            if claim is None or claim.rate_events_per_s is None or claim.is_bound:
                is_bound = claim is not None and claim.is_bound
                reason = f"{experiment} {'may carry more than was offered' if is_bound else 'has no rate that counts'}"
                return self.model_copy(update={"ratio": None, "interval": None, "reason": reason})
        return self

    @property
    def sentence(self) -> str:
        """Sentence that says what disorder costs, as far as the interval allows."""
        if self.ratio is None or self.interval is None:
            return f"what it costs against {self.against} is not known: {self.reason}"
        costs = [1 - end for end in reversed(self.interval)]
        if costs[0] <= 0 <= costs[1]:
            return f"against {self.against} it costs nothing that shows: between {-costs[1]:+.1%} and {-costs[0]:+.1%}"
        word = "costs" if costs[0] > 0 else "gains"
        low, high = sorted(abs(cost) for cost in costs)
        return f"against {self.against} it {word} {abs(1 - self.ratio):.1%} ({low:.1%} to {high:.1%})"
