"""Throughput and latency against disorder: one line per workload and system, one point per experiment."""

from __future__ import annotations

from streamgauge.results.report.blocks import Block, Cell, Hole, Note, Section
from streamgauge.results.report.costs import Costs, chart, ends_of
from streamgauge.results.report.degrees import at_own_rate, latency_ms, line_of
from streamgauge.results.report.formatting import between, share
from streamgauge.results.report.run_records import CellRecord, Records

#: the page of what disorder costs, beside this one
PAGE = "disorder.html"


def is_known(records: Records) -> bool:
    """True if a run has several streams, and a cell that was measured."""
    return len(records.streams) > 1 and any(cell.search for cell in records.cells)


def section(records: Records) -> Section:
    lead = (
        "Throughput and latency against disorder: "
        "the same workload and system on streams of different out-of-order factors."
    )
    costs = Costs(records)
    groups: dict[tuple[str, str], list[CellRecord]] = {}
    for record in sorted(records.cells, key=costs.factor):
        groups.setdefault(line_of(record), []).append(record)

    def more(record: CellRecord) -> list[Cell]:
        return [between(record.interval), record.claim.kind]

    note, columns = "The bars are 90\u202f% intervals.", ("90\u202f% interval", "claim")
    title = "Sustainable rate against disorder"
    rates = chart(
        costs, title, "events/s", lambda r: r.rate, ends=ends_of, columns=columns, more=more, groups=groups, note=note
    )
    why = "no fraction of the rate has a valid run in every measured cell"
    p99: Block = Hole("No latency against disorder", why)
    if (fraction := common_fraction(records.cells)) is not None:
        title = f"p99 event-time latency against disorder, at {share(fraction)} of each cell's rate"
        p99 = chart(costs, title, "p99 (ms)", lambda r: latency_ms(at_own_rate(r, fraction), "p99"), groups=groups)
    further = "What disorder costs each engine and state store, and what it does with late events: a page of its own."
    return Section("disorder", "What disorder costs", lead, [rates, p99, Note(further, href=PAGE)])


def common_fraction(cells: list[CellRecord]) -> float | None:
    """Largest fraction of the rate at which every measured cell has a sound latency run; None if there is none."""
    sound = [{run.fraction for run in cell.latency if run.is_sound and not run.common} for cell in cells if cell.rate]
    shared = set.intersection(*sound) if sound else set()
    return max(shared, default=None)
