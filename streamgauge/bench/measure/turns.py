"""The stage turns: measures the cells in rounds, so that a slow hour of the machine affects all cells alike.

A turn is one ladder of a fresh process, and each cell has one in each round. In the last round the proof and the
latency runs follow it in the same process. Measurements are kept, so a stage that was killed goes on with the turn in
which it was. If a cell fails, the others are measured all the same. Cells that differ only in their stream share their
processes (`shared_search`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path

from streamgauge.base.errors import Damaged, Outage, UserError
from streamgauge.bench.measure import shared_latency, shared_search, timing
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.searcher import earlier
from streamgauge.bench.measurements.latency import stage as latency
from streamgauge.bench.measurements.search import stage as search
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.run_summary import search_of
from streamgauge.catalog.stages import BY_NAME
from streamgauge.config import Benchmark, Cell

log = logging.getLogger("streamgauge")


def run(benchmark: Benchmark, store: Store, run_log: RunLog, cells: Sequence[Cell]) -> int:
    """Measures these cells of a run; returns how many. Raises UserError or Outage at the end if some have failed.

    Cells that differ only in their stream share their processes, and are measured when it is the first one's turn.
    """
    rounds = benchmark.search.processes
    failed: dict[Cell, Exception] = {}
    groups = [[CellRun(benchmark, store, cell, run_log.path) for cell in group] for group in benchmark.sharing(cells)]
    expected_s = timing.stage_seconds(BY_NAME["turns"], benchmark)
    with measuring(f"{run_log.path.name} turns", expected_s=expected_s) as token:
        for number, group in product(range(1, rounds + 1), groups):
            if group[0].cell in failed or not any(_is_due(run_log, one, number) for one in group):
                continue
            log.info("round %d of %d: %s", number, rounds, ", ".join(one.cell.name for one in group))
            try:
                _turn(run_log, group, number, token)
            except Exception as problem:
                log.info("  failed: %s", problem)
                failed |= {one.cell: problem for one in group}
    if failed:
        first = next(iter(failed))
        kind = UserError if all(isinstance(one, UserError) for one in failed.values()) else Outage
        raise kind(f"{len(failed)} of {len(cells)} cells failed; the first: {first.name}: {failed[first]}")
    return len(cells)


def _turn(run_log: RunLog, group: Sequence[CellRun], number: int, token: int) -> None:
    """Measures one process of a group, and after the last one latency; records each cell's part as a stage."""
    first, benchmark = group[0], group[0].benchmark
    for one in group:
        one.directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with ExitStack() as stages:
            outcomes = [stages.enter_context(run_log.stage("search", one.cell.model_dump())) for one in group]
            bench = stack.enter_context(first.started([one.cell for one in group[1:]]))
            for outcome in outcomes:
                outcome |= {"turn": number, "of": benchmark.search.processes}
            answers = shared_search.turn(bench, group, token, number)
            if answers is None:  # later rounds have the rest
                for outcome in outcomes:
                    outcome.is_whole = False
                return
            for one, outcome, answer in zip(group, outcomes, answers, strict=True):
                outcome |= search.facts(search.publish(one, answer))
        problems: list[UserError] = []
        for one in group:
            try:
                with run_log.stage("latency", one.cell.model_dump()) as outcome:
                    if one is first and len(group) > 1 and benchmark.latency.blocks:
                        outcome |= shared_latency.measure(bench, group, token)
                    bench.turn_to(one.cell)
                    outcome |= latency.facts(latency.run_ready(one, bench, token))
            except UserError as problem:  # it may have no rate; the others have theirs
                problems.append(problem)
        if problems:
            raise problems[0]


def _is_due(run_log: RunLog, cell_run: CellRun, number: int) -> bool:
    """True if something of that round is still to be measured. The last round also has the answer and the latency."""
    directory, plan, settings = cell_run.directory, cell_run.plan_key, cell_run.benchmark.search
    if number < settings.processes:
        return search.is_due(settings, earlier(directory, plan), number)
    ended = [run_log.latest(stage, **cell_run.cell.model_dump()) for stage in ("search", "latency")]
    return _plan_of(directory) != plan or any(one is None or one.state != "done" for one in ended)


def _plan_of(directory: Path) -> str | None:
    """The plan whose answer search.json holds; None without one."""
    try:
        return search_of(directory).plan
    except (OSError, Damaged):  # it is written again
        return None
