"""The record of a cell's soak, `soak.json`: a long run at one rate, and the judgement of each of its series."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator

from streamgauge.records.answered import RatedRun
from streamgauge.records.loss import Loss
from streamgauge.records.measurement import Outcome
from streamgauge.records.record import Part
from streamgauge.stats.trend import Full, Kind


class Followed(Part):
    """A series of a long run with its judgement. Rates are in its unit an hour; None where nothing can be said."""

    name: str
    unit: str
    kind: Kind
    reason: str = ""
    samples: int
    apart: float  # so many independent samples tell as much
    level: float | None = None  # at the end
    per_hour: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None  # at which it is full
    full: Full | None = None  # hours after the run
    points: tuple[tuple[float, float], ...] = ()  # seconds since the start, and value

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval of its rate; None without both."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def metric(self) -> str:
        """Name of its rate among the results."""
        return f"soak_{self.name}_per_hour"

    @property
    def growth(self) -> str:
        """Says of a series that grows at what rate, and when something is full."""
        full_text = "" if self.full is None else f", full after {self.full.hours:.3g} h"
        return f"{self.name} grows by {self.per_hour:.4g} {self.unit} an hour{full_text}"

    def unjudged(self, reason: str) -> Followed:
        """The series without its judgement."""
        figures = dict.fromkeys(("level", "per_hour", "low", "high", "full"))
        return self.model_copy(update={"kind": "not clear", "reason": reason, **figures})


class SoakRun(RatedRun):
    """Content of soak.json."""

    seconds: float
    outcome: Outcome
    valid: bool
    reason: str = ""
    correct: bool | None = None  # None: the output was not compared
    lost_at_own_speed: Loss | None = None
    offered: int = 0
    series: tuple[Followed, ...] = ()
    unknown: tuple[str, ...] = ()  # series that this system does not tell

    @field_validator("series")
    @classmethod
    def _judged(cls, series: tuple[Followed, ...], info: ValidationInfo) -> tuple[Followed, ...]:
        """Series of a void run bear no judgement."""
        if info.data.get("valid", True):
            return series
        return tuple(one.unjudged(f"void: {info.data.get('reason')}") for one in series)

    @property
    def outputs(self) -> dict[str, bool | None]:
        return {"": self.correct}

    @property
    def growing(self) -> list[Followed]:
        return [one for one in self.series if one.kind == "growing"]
