"""Blocks of the page that show a search: the rate, what it follows from, and what proves it."""

from __future__ import annotations

from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.results.report import ladder_charts, proof_charts, trials
from streamgauge.results.report.blocks import Block, Hole, Note, Tiles, attempt
from streamgauge.results.report.formatting import MISSING, between, count, number, share
from streamgauge.results.report.model import fixed_share, limited_by, typical
from streamgauge.results.report.run_records import CellRecord, Records


def blocks(records: Records, record: CellRecord) -> list[Block]:
    """Builds the blocks of a cell's search."""
    shown: list[Block] = []
    if record.search:
        shown.append(attempt("Rate", _figures, record))
        shown.append(attempt("Lost", _lost, record))
        doubts = [one.sentence for one in record.search.doubts if one.sentence not in record.claim.sentence]
        shown += [Note(f"{doubt[0].upper()}{doubt[1:]}.") for doubt in doubts]  # the claim has told the others
    else:
        shown.append(Hole("No sustainable rate", records.why(record.search_status)))
    if record.windows:
        drawn = ladder_charts.carried if ladder_charts.is_continuous(record) else ladder_charts.costs
        shown += [
            attempt("What a batch costs", drawn, record),
            attempt("Warm-up and ladder over time", ladder_charts.over_time, record),
        ]
        if record.search:
            shown.append(attempt("What each process showed", ladder_charts.processes, record))
    if record.trials:
        shown += [
            attempt("Proof trials", proof_charts.ages, record.trials),
            attempt("Proof trials", proof_charts.table, record),
        ]
        if any(trials.batches_of(trial) for trial in record.trials):
            shown.append(attempt("Batches over time", trials.batch_durations, record.trials))
    return shown


def _figures(record: CellRecord) -> Tiles:
    search, claim = record.search, record.claim
    assert search
    covers = {
        "one process": "events/s, of the fit of one process: without the spread between processes",
        "": "no interval can be given",
    }
    whole = f"events/s, of {record.interval_of}: the mean of all fresh processes of this system on this machine"
    tiles = [
        ("sustainable rate", number(record.rate), f"{'events/s. ' if record.rate else ''}{claim.sentence}"),
        ("90\u202f% interval", between(record.interval).replace("\u2060", ""), covers.get(record.interval_of, whole)),
        ("limited by", *(limited_by(search) if search.constraint else (MISSING, "not known"))),
        *_costs(search),
        *_proven(record),
        ("driver's ceiling", number(search.driver_ceiling_events_per_s), "events/s without a system"),
        ("machine's own noise", _percent(search.yardstick_spread), _noise(search)),
    ]
    return Tiles(tiles)


def _lost(record: CellRecord) -> Note:
    """Says what the query loses at the stream's own speed; the latency runs' table has what they lost at theirs."""
    loss = record.search.lost_at_own_speed if record.search else None
    sentence = loss.sentence if loss else "what the query loses at the stream's own speed was not counted"
    return Note(f"{sentence[0].upper()}{sentence[1:]}.")


def _costs(search: SearchAnswer) -> list[tuple[str, str, str]]:
    """Tiles with the cost of a batch and of a row in a typical process; without micro-batches, only of a row."""
    one = typical(search)
    if one is None:
        return []
    row = f"{1e6 * one.row_cost_s:.3g}\u00a0µs"
    if one.batch_cost_s is None:
        return [("cost of a row", row, "once the process is warm")]
    last = f", the last of them {1e6 * one.cost.last_row_s(one.backlog_rows):.3g}\u00a0µs" if one.row_growth_s else ""
    at = f"of a batch of {count(one.backlog_rows)} rows, at which the limit lies, is its batch cost"
    return [
        ("batch cost", number(1000 * one.batch_cost_s, "ms"), "before its first row: plan, commit, state"),
        ("cost of a row", row, f"more for each row of a batch{last}"),
        ("fixed share", _percent(fixed_share(one)), at),
    ]


def _proven(record: CellRecord) -> list[tuple[str, str, str]]:
    below, above = record.search.proven if record.search else (None, None)
    none = f"no proof trial was {'clear' if record.trials else 'run'}"
    tiles = []
    for label, rate in (("caught up at", below), ("fell behind at", above)):
        remark = f"events/s, {share(round(rate / record.rate, 2))} of the rate" if rate and record.rate else ""
        tiles.append((label, number(rate), remark or ("events/s" if rate else none)))
    return tiles


def _percent(part: float | None) -> str:
    if part is None:
        return MISSING
    return f"{100 * part:.{2 if part < 0.095 else 3}g}\u202f%"


def _noise(search: SearchAnswer) -> str:
    """Says how steady the machine itself was while the windows were measured."""
    if search.yardstick_spread is None:
        return "the yardstick was not run"
    steal = "stolen CPU time not known" if search.steal is None else f"stolen CPU time at most {_percent(search.steal)}"
    return f"between the slowest and the fastest run of one fixed computation beside the windows; {steal}"
