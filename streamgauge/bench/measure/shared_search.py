"""Searches cells that differ only in their stream in processes that they share, and compares their rates.

Each cell keeps its own records and its own search.json. That of each cell but the first also has `compared`: its rate
over that of the first cell, from windows that the same process measured in turns (`search.shared`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.searcher import Going, Line, Searcher
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.bench.search.shared import Measured, Turn, run_shared
from streamgauge.records.comparison import Comparison
from streamgauge.records.measurement import Measurement

log = logging.getLogger("streamgauge")


def turn(bench: ReadyCell, group: Sequence[CellRun], token: int, process: int) -> list[SearchAnswer] | None:
    """Searches all cells of a ready group until that process is complete.

    group: in the order of the ready cells. Returns the record of each cell once all answers stand, else None. A search
    that was killed goes on after its last measurement, in a fresh process; whole blocks stay.
    """
    settings, going = group[0].benchmark.search, Going()
    searchers = [Searcher(bench, settings, token, one.directory, one.plan_key, going) for one in group]
    if len(searchers) == 1:
        done = searchers[0].turn(process)
        return None if done is None else [searchers[0].answer(done)]

    def measure(due: Turn) -> Measurement:
        bench.turn_to(bench.cells[due.cell])
        return searchers[due.cell].measure(due.step)

    limits, known = searchers[0].prepare(), in_order([searcher.lines for searcher in searchers])
    all_done = run_shared(settings, limits, len(searchers), measure, known, process)
    bench.end_loop()
    if all_done is None:
        return None
    answers = []
    for cell, searcher, own in zip(bench.cells, searchers, all_done.cells, strict=True):
        bench.turn_to(cell)
        answers.append(searcher.answer(own))
    for number, ratio in enumerate(all_done.ratios, 1):
        comparison = Comparison.of(bench.cells[number], bench.cells[0], ratio)
        log.info("%s: %s", bench.cells[number].name, comparison.sentence)
        answers[number] = answers[number].model_copy(update={"compared": (comparison,)})
    return answers


def in_order(logs: Sequence[Sequence[Line]]) -> list[Measured]:
    """Returns the measurements of cells, from the lines of each, in the order in which they were made."""
    lines = sorted(((cell, line) for cell, own in enumerate(logs) for line in own), key=lambda one: one[1].number)
    return [Measured(cell, line.measurement) for cell, line in lines]
