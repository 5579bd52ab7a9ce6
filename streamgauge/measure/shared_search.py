"""Searches cells that differ only in their stream in processes that they share, and compares their rates.

Each cell keeps its own records and its own search.json. That of each cell but the first also has `compared`: its rate
over that of the first cell, from windows that the same process measured in turns (`search.shared`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgauge.config import Benchmark, Cell
from streamgauge.measure.cell import ReadyCell
from streamgauge.measure.searcher import Going, Searcher, measurements
from streamgauge.search.comparison import Comparison
from streamgauge.search.records import Measurement
from streamgauge.search.shared import AllDone, Compared, Measured, Turn, run_shared

log = logging.getLogger("streamgauge")


def groups(benchmark: Benchmark, cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells in their order, those together that share their processes: of one workload on one system.

    Drivers that were started by hand serve one stream each, so their cells share none.
    """
    made: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        key = (cell.workload, cell.system, cell.experiment if benchmark.replay.remote else "")
        made.setdefault(key, []).append(cell)
    return list(made.values())


def search(
    bench: ReadyCell, benchmark: Benchmark, token: int, directories: Sequence[Path], keys: Sequence[str]
) -> list[dict[str, Any]]:
    """Searches all cells of a ready group; returns the content of search.json of each.

    A search that was killed goes on after its last measurement, in a fresh process; whole blocks stay.
    """
    going, settings = Going(), benchmark.search
    searchers = []
    for cell, directory, key in zip(bench.cells, directories, keys, strict=True):
        bench.turn_to(cell)
        searchers.append(Searcher(bench, settings, token, directory, key, going))
    bench.turn_to(bench.cells[0])
    limits = searchers[0].prepare()
    for searcher in searchers[1:]:
        searcher.prepare(searchers[0])

    def measure(turn: Turn) -> Measurement:
        bench.turn_to(bench.cells[turn.cell])
        return searchers[turn.cell].measure(turn.step)

    known = [
        (record["number"], Measured(cell, one))
        for cell, searcher in enumerate(searchers)
        for record, one in zip(searcher.records, measurements(searcher.records), strict=True)
    ]
    ordered = [one for _, one in sorted(known, key=lambda pair: pair[0])]
    done = run_shared(settings, limits, len(searchers), measure, ordered)
    bench.end_loop()
    return [
        searcher.answer(own) | compared(bench.cells, number, done)
        for number, (searcher, own) in enumerate(zip(searchers, done.cells, strict=True))
    ]


def compared(cells: Sequence[Cell], number: int, done: AllDone) -> dict[str, Any]:
    """The comparison of a cell with the first one, under its key; empty for the first one itself."""
    found: Compared | None = next((one for one in done.ratios if one.cell == number), None)
    if found is None:
        return {}
    told = Comparison.of(cells[number], cells[0], found.ratio)
    log.info("%s: %s", cells[number].name, told.sentence)
    return {"compared": told.model_dump(mode="json")}
