"""The form of a measurement's record that says whether answers were right."""

from __future__ import annotations

from streamgauge.records.record import Record


class Answered(Record):
    """Record of a measurement whose answers were compared with independent ones."""

    @property
    def outputs(self) -> dict[str, bool | None]:
        """Maps each part, "" for the whole, to whether its answers were right; None: they were not compared."""
        raise NotImplementedError
