"""The form of a measurement's record that says whether answers were right."""

from __future__ import annotations

from abc import abstractmethod

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
