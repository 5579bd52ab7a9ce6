"""A series of the index of all results: what it measures and where, and its points."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from streamgauge.base.environment import Machine


@dataclass(frozen=True)
class SeriesHead:
    """Head of a series: what it measures, and on which machine."""

    key: str
    benchmark: str
    experiment: str
    workload: str
    system: str
    mode: str
    metric: str
    unit: str
    machine: Machine

    @property
    def text(self) -> str:
        """Names of what it measures, in one line."""
        names = (self.benchmark, self.experiment, self.workload, self.system, self.mode, self.metric)
        return " ".join(filter(None, names))  # another tool's figure has not all of them

    @property
    def machine_text(self) -> str:
        """The machine's label, if it has one, its CPU and its cores; of another tool's figures the label alone."""
        cpu = f"{self.machine.get('cpu')}, {self.machine.get('cores')} cores" if self.machine.get("cpu") else ""
        return ": ".join(filter(None, (str(self.machine.get("host") or ""), cpu)))


@dataclass(frozen=True)
class Point:
    """A figure of a series."""

    run_id: str
    number: int  # of its line in the run's results
    series_key: str
    at: str
    value: float | None
    low: float | None
    high: float | None
    samples: int
    valid: bool
    reason: str
    config_hash: str
    software: Machine  # versions, and what else may explain a change
    claim: str

    @property
    def is_sound(self) -> bool:
        return self.valid and self.value is not None

    @property
    def figure(self) -> float:
        """The value of a sound point."""
        assert self.value is not None
        return self.value

    @property
    def moment(self) -> float:
        """The time in seconds since the epoch."""
        return datetime.fromisoformat(self.at).timestamp()
