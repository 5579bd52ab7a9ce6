"""The record of a search, `search.json`: the rate of a cell, what it follows from, and what is in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from streamgauge.config import Cell
from streamgauge.config.systems import Semantics
from streamgauge.records.answered import Answered
from streamgauge.records.claim import Claim
from streamgauge.records.comparison import Comparison
from streamgauge.records.loss import Loss
from streamgauge.records.record import Part
from streamgauge.stats.batch_cost import BatchCost

Constraint = Literal["age", "batch cap", "queue memory", "system", "driver's ceiling"]
SearchOutcome = Literal["found", "all_sustained", "contradicted", "unproven", "inconclusive"]
DoubtKind = Literal["one process", "no proof", "no room above", "held back", "drift", "misfit", "machine's speed"]


@dataclass(frozen=True)
class Doubt:
    """Sentence that a reader should know before trusting a figure, and its kind."""

    kind: DoubtKind
    sentence: str

    @property
    def is_plain(self) -> bool:
        """True if it is no fault of the cell: one process is measured unless more are asked for."""
        return self.kind == "one process"


@dataclass(frozen=True)
class Estimate:
    """The sustainable rate of one process, with what it follows from."""

    rate_events_per_s: float
    low: float  # of the fit's own interval; the spread between processes is not in it
    high: float
    constraint: Constraint
    backlog_rows: float  # at which the limit lies
    batch_cost_s: float | None  # a; None for an engine without micro-batches
    row_cost_s: float  # b; the whole cost of a row where there are no batches
    cap_rows: int | None  # N, where the engine has shown one
    noise: float  # relative deviation of a batch
    drift: float  # how much slower than warm the last window still was, relative
    hiccups: float  # what hiccups added to the time of all batches, relative
    misfit: float  # largest deviation of a window from the fit, in standard errors
    row_growth_s: float = 0.0  # q: seconds that a row costs more for each other row of its batch

    @property
    def rate_now(self) -> float:
        """The rate in events/s that the process carried when its last window ended, warm or not."""
        return self.rate_events_per_s / (1 + max(-0.5, self.drift))

    @property
    def cost(self) -> BatchCost:
        """The time of a batch; of an engine without micro-batches, that of its rows."""
        return BatchCost(self.batch_cost_s or 0.0, self.row_cost_s, self.row_growth_s)

    def age_at(self, rate: float) -> float | None:
        """The age in seconds at which a rate settles, as a batch begins; None where it grows once it is behind."""
        return None if rate >= self.rate_events_per_s else self.cost.settles_at(rate)

    def rows_for(self, allowed_age_s: float, part: float) -> float:
        """Rows of a batch that takes that part of what the allowed age leaves beyond the batch cost."""
        return self.cost.rows(self.cost.batch_s + part * (allowed_age_s - self.cost.batch_s))


@dataclass(frozen=True)
class ProcessEstimate(Estimate):
    """The estimate of a process, and the number of that process from 1 on."""

    process: int = 0


class LongRun(Part):
    """A long open-loop run at a fraction of the found rate, which tests that rate."""

    fraction: float
    rate_events_per_s: float
    seconds: float
    predicted_age_s: float | None  # None where the search predicts that the age grows
    age_s: float | None  # the median over the second half of the run
    last_age_s: float | None
    overflow: bool
    outcome: str
    reason: str
    correct: bool | None
    samples: tuple[tuple[float, float, int, int, bool], ...]  # fields of a `Sample`


class Declared(Semantics):
    """Declaration of an engine's adapter about event time, in words, and its kind of state store."""

    state: str | None = None


class SearchAnswer(Answered):
    """Content of search.json. A figure is None where the claim allows none, or where it was not measured."""

    cell: Cell | None = None
    plan: str | None = None  # identifies the settings and the stream
    sustainable_rate_events_per_s: float | None = None
    interval: tuple[float, float] | None = None
    interval_of: Literal["processes", "fit"] = "fit"
    proven: tuple[float | None, float | None] = (None, None)  # highest rate that recovered, lowest that did not
    outcome: SearchOutcome
    reason: str = ""
    constraint: Constraint | None = None
    allowed_age_s: float | None = None
    processes: tuple[ProcessEstimate, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    correct: bool | None = None  # None: no output was compared
    windows: int = 0
    trials: int = 0
    max_rate_events_per_s: float | None = None
    driver_ceiling_events_per_s: float | None = None
    driver_cpu_us_per_event: float | None = None
    yardstick_units_per_s: float | None = None
    events_per_yardstick_unit: float | None = None  # comparable between days on which the machine was slower
    yardstick_spread: float | None = None
    steal: float | None = None  # largest share of stolen time
    semantics: Declared | None = None
    lost_at_own_speed: Loss | None = None
    software: dict[str, str] = Field(default_factory=dict)
    application: dict[str, str] = Field(default_factory=dict)
    long_runs: tuple[LongRun, ...] = ()
    compared: tuple[Comparison, ...] = ()  # with the first cell of its process
    claim: Claim | None = None

    @property
    def outputs(self) -> dict[str, bool | None]:
        return {"": self.correct} if self.trials else {}
