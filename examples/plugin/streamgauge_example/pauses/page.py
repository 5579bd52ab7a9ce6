"""Blocks that the page of a run shows of a cell."""

from __future__ import annotations

from streamgauge.results.report.blocks import Block, Hole, Tiles
from streamgauge.results.report.formatting import number
from streamgauge.results.report.run_records import CellRecord, Records
from streamgauge_example.pauses import NAME
from streamgauge_example.pauses.record import Pause


def blocks(records: Records, record: CellRecord) -> list[Block]:
    pause = records.of_cell(record.cell, NAME, Pause)
    if pause is None:
        return [Hole("No pauses", "their record is missing or damaged")]
    remark = pause.void or f"between two hand-overs, at {number(pause.rate_events_per_s)} events/s"
    return [Tiles([("longest pause", number(pause.longest_pause_s, "s"), remark)])]
