"""The plan of a measurement: cells, and how they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.config import Cell, Replay, Search, System, Workload


@dataclass(frozen=True)
class CellPlan:
    """Cells that differ in their stream alone, with their query, their system, and how they are measured."""

    cells: Sequence[Cell]
    workload: Workload
    system: System
    replay: Replay
    search: Search
