"""The page's first screen: what disorder costs, then each cell's rate, its latency, its answers, and its limit."""

from __future__ import annotations

from streamgauge.base.words import counted, first_of
from streamgauge.bench.search.claims import WIDEST
from streamgauge.records.comparison import RATE, Comparison
from streamgauge.results.report.blocks import Block, Note, Section, Tiles, attempt, attempt_all
from streamgauge.results.report.degrees import comparisons, out_of_order_percent
from streamgauge.results.report.formatting import MISSING, between, number, share
from streamgauge.results.report.model import limited_by
from streamgauge.results.report.run_records import CellRecord, Records

#: cells whose tiles are shown, and comparisons; tables below have all
MOST = 6


def section(records: Records) -> Section:
    """Sentences that compare cells, then tiles and a sentence for each of the first cells."""
    blocks = attempt_all("Comparisons", _compared, records)
    lead = "" if blocks else "Each cell's rate, its latency, and whether its answers are right."
    for record in records.cells[:MOST]:
        blocks += [attempt(record.cell.name, _tiles, record), attempt(record.cell.name, _sentence, records, record)]
    if (more := len(records.cells) - MOST) > 0:
        blocks.append(Note(f"The table below has {counted(more, 'more cell')}.", href="#summary"))
    return Section("answer", "The answer", lead, blocks)


def _compared(records: Records) -> list[Block]:
    """Comparisons, those of rates first; of many, one of each system, at the highest degree that has a ratio."""
    compared = sorted(comparisons(records), key=lambda one: one.metric != RATE)
    shown = compared
    if len(compared) > MOST:
        degrees = {stream.experiment.name: out_of_order_percent(stream) for stream in records.streams}
        lines: dict[tuple[str, str], list[Comparison]] = {}
        for one in compared:
            if one.metric == RATE:
                lines.setdefault((one.workload, one.system), []).append(one)
        # the first of equal ones, in the file's order
        shown = [max(line, key=lambda one: (one.ratio is not None, degrees[one.experiment])) for line in lines.values()]
    notes: list[Block] = [Note(f"{one.name}: {one.sentence}.") for one in shown]
    if more := len(compared) - len(shown):
        notes.append(Note(f"The table below has {counted(more, 'more comparison')}.", href="#summary"))
    return notes


def _tiles(record: CellRecord) -> Tiles:
    limit, meaning = limited_by(record.search)
    interval = between(record.interval).replace("\u2060", "")
    rate = f"90\u202f%: {interval}" if record.interval_of else "no interval"
    p99, at = MISSING, "no run of it counts" if record.latency else "not measured"
    if (top := record.top_run) and top.event_latency.p99_ms is not None:
        p99 = number(top.event_latency.p99_ms / 1000, "s")
        part = f"{share(round(top.fraction, 2))} of that rate"
        at = f"at {number(top.rate_events_per_s)} events/s, as in all cells" if top.common else f"at {part}"
    cell = record.cell
    # an ordinary space, so that a long rate breaks before its unit
    shown = f"{number(record.rate)} events/s" if record.rate else MISSING
    if record.rate and record.interval_of == "one process":
        shown += " (one process)"
    if record.claim.is_too_wide:
        rate = f"too wide, beyond a factor of {WIDEST:g}"
    if record.claim.mark:
        rate = f"{record.claim.mark}; {rate}"
    return Tiles(
        [
            (f"{cell.experiment}, {cell.workload}, {cell.system}", shown, rate),
            ("p99 latency", p99, at),
            ("answers", record.output, _answers(record)),
            ("limited by", limit or MISSING, meaning or "not known"),
        ]
    )


def _answers(record: CellRecord) -> str:
    """Says what the answers were compared with, or where they were wrong, or were not compared."""
    if record.wrong:
        return f"not equal to an independent answer in {first_of(record.wrong)}"
    left = [part for part, correct in record.outputs.items() if correct is None]
    if record.output == "partly compared":
        return f"not compared in {first_of(left)}"
    return "equal to an independent answer" if record.output == "right" else "nothing was compared"


def _sentence(records: Records, record: CellRecord) -> Note:
    """Says in plain words what the tiles mean, and what to do about what is in doubt."""
    search, cell = record.search, record.cell
    if not record.rate:
        return Note(record.claim.sentence if search else f"No rate was found: {records.why(record.search_status)}.")
    percent = next((out_of_order_percent(s) for s in records.streams if s.experiment.name == cell.experiment), None)
    disorder = "events in order" if not percent else f"{percent:g}\u202f% of the events out of order"
    takes = f"takes {'at least ' if record.claim.kind == 'at least' else ''}{number(record.rate)} events a second"
    cost = _cost(records, record)
    parts = [f"With {disorder}, {cell.system} {takes} without falling ever further behind{cost}."]
    if not record.proven:
        parts = [f"With {disorder}, {cell.system} takes an estimated {number(record.rate)} events a second{cost}."]
        if record.claim.is_too_wide:
            parts = [f"With {disorder}, the rate of {cell.system} is known only roughly{cost}."]
        is_short = search and search.outcome == "unproven" and records.benchmark.search.proof_steps
        advice = " Give the trials more time: raise search.recovery_seconds." if is_short else ""
        parts.append(f"{record.claim.sentence}{advice}")
    elif record.interval_of == "one process":
        parts.append(
            "The interval leaves out how much fresh processes differ: set search.processes to 3 to measure that."
        )
    if record.wrong:
        parts.append(f"Answers were wrong in {first_of(record.wrong)}. Find out why before you use any of its figures.")
    return Note(" ".join(parts))


def _cost(records: Records, record: CellRecord) -> str:
    """Clause that says that nothing compares a cell with the first stream, which is in order; else an empty one."""
    is_compared = record.search is not None and record.search.compared
    if is_compared or not records.streams or out_of_order_percent(records.streams[0]):
        return ""
    first = records.streams[0].experiment.name
    cell = record.cell
    if first == cell.experiment or cell.model_copy(update={"experiment": first}) not in records.benchmark.all_cells():
        return ""
    return f"; how that compares with {first} is not known, as fresh processes differ by 3 to 8\u202f%"
