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
from streamgauge.base.places import here
from streamgauge.bench.measure import latency, search_stage, shared_latency, shared_search, timing
from streamgauge.bench.measure.cell import ready
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.searcher import earlier
from streamgauge.bench.measure.settings_hash import plan_key
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
    groups = benchmark.sharing(cells)
    expected_s = timing.stage_seconds(BY_NAME["turns"], benchmark)
    with measuring(f"{run_log.path.name} turns", expected_s=expected_s) as token:
        for number, group in product(range(1, rounds + 1), groups):
            if group[0] in failed or not any(_is_due(benchmark, store, run_log, cell, number) for cell in group):
                continue
            log.info("round %d of %d: %s", number, rounds, ", ".join(cell.name for cell in group))
            try:
                _turn(benchmark, store, run_log, group, number, token)
            except Exception as problem:
                log.info("  failed: %s", problem)
                failed |= dict.fromkeys(group, problem)
    if failed:
        first = next(iter(failed))
        kind = UserError if all(isinstance(one, UserError) for one in failed.values()) else Outage
        raise kind(f"{len(failed)} of {len(cells)} cells failed; the first: {first.name}: {failed[first]}")
    return len(cells)


def _turn(benchmark: Benchmark, store: Store, run_log: RunLog, group: Sequence[Cell], number: int, token: int) -> None:
    """Measures one process of a group, and after the last one latency; records each cell's part as a stage."""
    path = run_log.path
    directories = [search_stage.cell_directory(path, cell) for cell in group]
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
    keys = [plan_key(benchmark, store, cell) for cell in group]
    with ExitStack() as stack:
        with ExitStack() as stages:
            outcomes = [stages.enter_context(run_log.stage("search", cell.model_dump())) for cell in group]
            work = here(directories[0]) / "work"
            bench = stack.enter_context(ready(benchmark, store, group[0], work, others=group[1:]))
            for outcome in outcomes:
                outcome |= {"turn": number, "of": benchmark.search.processes}
            answers = shared_search.turn(bench, benchmark.search, token, directories, keys, number)
            if answers is None:
                return
            for cell, outcome, answer in zip(group, outcomes, answers, strict=True):
                answer = search_stage.publish(benchmark, cell, path, answer)
                outcome |= {"rate_events_per_s": answer.sustainable_rate_events_per_s, "reason": answer.reason}
                outcome["system"] = answer.application
        for cell in group:
            with run_log.stage("latency", cell.model_dump()) as outcome:
                if cell == group[0] and len(group) > 1 and benchmark.latency.blocks:
                    outcome |= shared_latency.measure(bench, benchmark, path, token)
                bench.turn_to(cell)
                runs = latency.measure(bench, benchmark, path, token)
                outcome |= {"runs": len(runs), "valid": sum(one.valid for one in runs)}
                outcome["system"] = next((one.application for one in reversed(runs)), {})


def _is_due(benchmark: Benchmark, store: Store, run_log: RunLog, cell: Cell, number: int) -> bool:
    """True if something of that round is still to be measured. The last round also has the answer and the latency."""
    directory, key = search_stage.cell_directory(run_log.path, cell), plan_key(benchmark, store, cell)
    if number < benchmark.search.processes:
        return search_stage.is_due(benchmark.search, earlier(directory, key), number)
    ended = [run_log.latest(stage, **cell.model_dump()) for stage in ("search", "latency")]
    return _plan_of(directory) != key or any(one is None or one.state != "done" for one in ended)


def _plan_of(directory: Path) -> str | None:
    """The plan whose answer search.json holds; None without one."""
    try:
        return search_of(directory).plan
    except (OSError, Damaged):  # it is written again
        return None
