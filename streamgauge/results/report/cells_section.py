"""The page's section on cells: what each of their measurements shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from streamgauge.base.errors import UserError
from streamgauge.bench.measurements import MEASUREMENTS, function_of, package_of
from streamgauge.results.report import trials
from streamgauge.results.report.blocks import Block, Hole, Section, attempt
from streamgauge.results.report.run_records import CellRecord, Records


def section(records: Records) -> Section:
    lead = (
        "The highest rate that each cell (experiment × workload × system) carries without falling ever further behind."
    )
    return Section(
        "cells", "Sustainable rate and latency", lead, parts=[_cell(records, record) for record in records.cells]
    )


def _cell(records: Records, record: CellRecord) -> Section:
    blocks = [block for name in records.benchmark.sections for block in _blocks(records, record, name)]
    if all_trials := [*record.trials, *record.latency_trials]:
        blocks += [
            attempt(what, make, all_trials) for what, make in (("Counted", trials.counted), ("Cost", trials.spent))
        ]
    return Section(
        f"cell-{record.cell.name}",
        f"{record.cell.experiment} × {record.cell.workload} × {record.cell.system}",
        blocks=blocks,
        folded="How this was measured",
    )


def _blocks(records: Records, record: CellRecord, name: str) -> list[Block]:
    """Builds the blocks of a measurement; a Hole if its package cannot: the others are shown all the same."""
    status = records.status(name, **record.cell.model_dump())
    if name not in MEASUREMENTS.built_in and status.outcome != "done":
        return [Hole(f"No {name}", records.why(status))]
    try:
        make = cast(Callable[[Records, CellRecord], list[Block]], function_of(package_of(name).blocks, name))
        return make(records, record)
    except UserError as problem:
        return [Hole(f"No {name}", str(problem))]
    except Exception as problem:
        return [Hole(f"No {name}", f"its package fails: {type(problem).__name__}: {problem}")]
