"""The record that the measurement writes for a cell."""

from __future__ import annotations

from streamgauge.records.record import Record


class Pause(Record):
    """Longest time between two hand-overs of events; None with fewer than two."""

    rate_events_per_s: float
    longest_pause_s: float | None
    void: str = ""  # why it does not count
