"""The known system, which is struck: its benchmark, and what its recovery says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measurements.recovery.record import RecoveryRun
from tests.measure.benches import CELL, Bench, write_bench


def bench_of(place: Path, section: dict[str, Any], **system: Any) -> Bench:
    """A system that carries 8,000 events/s, of which 4,000 come, so each second works one off."""
    known = {
        "name": "known", "engine": "known", "capacity": 8000, "trigger": "50ms", "batch_rows": 1000,
        "commits": "answered", "restart": "2s", "reconnect": "30s", **system,
    }  # fmt: skip
    return write_bench(
        place, systems=[known], recovery={"rate": 4000, **section}, search={"max_age": "500ms"},
    )  # fmt: skip


def recovered(bench: Bench) -> RecoveryRun:
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    measure("recovery", cell_run)
    return RecoveryRun.read(cell_run.directory / "recovery.json")
