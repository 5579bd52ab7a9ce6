"""Costs of disorder: ratios of windows in turns, and latency against disorder at each cell's own rate."""

from __future__ import annotations

from streamgauge.results.report.blocks import Block, Hole, Note, Section, attempt
from streamgauge.results.report.costs import Costs, chart
from streamgauge.results.report.degrees import at_own_rate, latency_ms, line_of
from streamgauge.results.report.disorder import kept, latencies_kept, not_compared
from streamgauge.results.report.formatting import share
from streamgauge.results.report.run_records import CellRecord, Records

#: the page of what disorder costs, beside this one
PAGE = "disorder.html"


def is_known(records: Records) -> bool:
    """True if a run has several streams, and a cell that was measured."""
    return len(records.streams) > 1 and any(cell.search for cell in records.cells)


def section(records: Records) -> Section:
    lead = (
        "The part of the rate that a workload and system keep on a stream with more disorder, from windows that one "
        "process measured in turns. The bars are 90\u202f% intervals."
    )
    costs = Costs(records)
    groups: dict[tuple[str, str], list[CellRecord]] = {}
    for record in sorted(costs.cells, key=costs.factor):
        groups.setdefault(line_of(record), []).append(record)
    why = "no fraction of the rate has a valid run in every measured cell"
    p99: Block = Hole("No latency against disorder", why)
    if (fraction := common_fraction(records.cells)) is not None:
        title = f"p99 event-time latency against disorder, at {share(fraction)} of each cell's rate"
        note = "The rates differ, so these latencies are not compared."
        p99 = chart(
            costs, title, "p99 (ms)", lambda r: latency_ms(at_own_rate(r, fraction), "p99"), groups=groups, note=note
        )
    ratios = [attempt("Rate kept", kept, costs, groups=groups), *not_compared(costs), *latencies_kept(costs, groups)]
    further = "What disorder costs each engine and state store, and what it does with late events: a page of its own."
    return Section("disorder", "What disorder costs", lead, [*ratios, p99, Note(further, href=PAGE)])


def common_fraction(cells: list[CellRecord]) -> float | None:
    """Largest fraction of the rate at which every measured cell has a sound latency run; None if there is none."""
    sound = [{run.fraction for run in cell.latency if run.is_sound and not run.common} for cell in cells if cell.rate]
    shared = set.intersection(*sound) if sound else set()
    return max(shared, default=None)
