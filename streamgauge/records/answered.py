"""The forms of a measurement's record: one that says whether answers were right, and one that also has one rate."""

from __future__ import annotations

from abc import abstractmethod

from pydantic import Field

from streamgauge.records.record import Record


class Answered(Record):
    """Record of a measurement whose answers were compared with independent ones."""

    @property
    @abstractmethod
    def outputs(self) -> dict[str, bool | None]:
        """Maps each part, "" for the whole, to whether its answers were right; None: they were not compared."""

    @property
    def partly(self) -> dict[str, tuple[int, int]]:
        """Maps each part of which some trials were compared, and none was wrong, to how many, of how many."""
        return {}


class RatedRun(Answered):
    """Record of a measurement at one rate."""

    plan: str
    fraction: float | None  # of the sustainable rate; None: the file names the rate
    rate_events_per_s: float
    software: dict[str, str] = Field(default_factory=dict)
