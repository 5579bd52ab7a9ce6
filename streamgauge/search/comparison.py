"""The record of a comparison: what disorder costs, from windows that one process measured in turns."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from streamgauge.config import Cell
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

    @classmethod
    def of(cls, cell: Cell, base: Cell, found: Ratio | None) -> Comparison:
        about = cls(experiment=cell.experiment, against=base.experiment, workload=cell.workload, system=cell.system)
        if found is None:
            return about
        told = {"ratio": found.ratio, "interval": (found.low, found.high)}
        return about.model_copy(update=told | {"blocks": found.blocks, "processes": found.processes})

    @property
    def sentence(self) -> str:
        """Sentence that says what disorder costs, as far as the interval allows."""
        if self.ratio is None or self.interval is None:
            return f"what it costs against {self.against} is not known: too few windows in turns were measured"
        costs = [1 - end for end in reversed(self.interval)]
        if costs[0] <= 0 <= costs[1]:
            return f"against {self.against} it costs nothing that shows: between {-costs[1]:+.1%} and {-costs[0]:+.1%}"
        word = "costs" if costs[0] > 0 else "gains"
        low, high = sorted(abs(cost) for cost in costs)
        return f"against {self.against} it {word} {abs(1 - self.ratio):.1%} ({low:.1%} to {high:.1%})"
