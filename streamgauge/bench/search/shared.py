"""Plans the search of cells that differ only in their stream: they share a process, and their windows go in turns.

Each cell has its own ladder, limits and proof, as `loop.next_step` asks for them. What is shared is the process: one
warm-up over all streams, and each rung visited by all of them before the next. Once all ladders of a process stand,
blocks of windows follow at a part of the batch at which each cell's limit lies: A B B A, or B A A B, in a seeded order.
The ratio of two rates is formed within a block, so what slows the whole process cancels in it (`stats.paired`).

The plan is a pure function of what was measured, as that of one cell is. A block counts only whole, and only in the
process in which it began.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.ladder import estimate_of
from streamgauge.bench.search.loop import next_step
from streamgauge.bench.search.point import Point
from streamgauge.bench.search.steps import LEAST_BATCHES, Done, Hold, Recover, Step
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Measurement, Purpose, Window
from streamgauge.stats.batch_cost import BatchCost, mean_cost
from streamgauge.stats.paired import Ratio, ratio_of

#: windows of a cell in a block
_EACH = 2
#: where the allowed age is the limit, a batch of a block is this part of the one at which it lies: rows cost more than
#: the batch does, the fit knows how their cost grows, and a larger batch would take the time of more blocks
_PART = 0.25
#: length of a block's window, in windows of a rung: each change of stream takes as long as a short window
_LONG = 2
#: the phases of a process in their order; blocks follow the ladder
_PHASES: dict[Purpose, int] = {"compile": 0, "warm-up": 1, "ladder": 2, "pair": 3, "below": 4, "above": 4}
_LAST = 5


@dataclass(frozen=True)
class Measured:
    """A measurement and the number of the cell to which it belongs."""

    cell: int
    of: Measurement


@dataclass(frozen=True)
class Turn:
    """The next step of all cells, with the number of the cell to which it belongs."""

    cell: int
    step: Hold | Recover


@dataclass(frozen=True)
class AllDone:
    """The end of a shared search: the answer of each cell, and of each but the first its ratio to the first."""

    cells: tuple[Done, ...]
    ratios: tuple[Ratio | None, ...]  # None where too few blocks stand


def next_turn(settings: Search, limits: Limits, cells: int, measured: Sequence[Measured]) -> Turn | AllDone:
    """Returns the step that follows these measurements of so many cells, in the order in which they were made."""
    own = [of_cell(measured, cell) for cell in range(cells)]
    alone = settings.model_copy(update={"warmup_seconds": settings.warmup_seconds / cells})
    steps = [
        next_step(alone, limits, mine, with_lost=[one.of for one in measured if one.cell == cell])
        for cell, mine in enumerate(own)
    ]
    process = max((one.of.process for one in measured), default=1)
    going = [cell for cell, step in enumerate(steps) if not isinstance(step, Done)]
    first = min((_place(steps[cell]) for cell in going), default=(settings.processes, _LAST))
    gave_up = any(isinstance(step, Done) and step.outcome == "inconclusive" for step in steps)
    ladders_stand = first > (process, _PHASES["ladder"]) and not gave_up
    if ladders_stand and (turn := _next_of_block(settings, limits, own, measured, process)):
        return turn
    if not going:
        done = tuple(step for step in steps if isinstance(step, Done))
        return AllDone(done, tuple(ratio(settings, limits, measured, cell) for cell in range(1, cells)))
    due = [cell for cell in going if _place(steps[cell]) == first]
    last = measured[-1].cell if measured else 0
    cell = min(due, key=lambda cell: (_count(own[cell], first), cell != last))
    step = steps[cell]
    assert not isinstance(step, Done)
    return Turn(cell, step)


def run_shared(
    settings: Search,
    limits: Limits,
    cells: int,
    measure: Callable[[Turn], Measurement],
    measured: Sequence[Measured],
    process: int,
) -> AllDone | None:
    """Measures turn by turn until that process is complete, and returns None; returns the answers once all stand."""
    known = list(measured)
    while isinstance(turn := next_turn(settings, limits, cells, known), Turn):
        if turn.step.process > process:
            return None
        known.append(Measured(turn.cell, measure(turn)))
    return turn


def of_cell(measured: Sequence[Measured], cell: int) -> list[Measurement]:
    """Measurements of a cell, without the windows of a process that was lost since, whichever cell lost it."""
    lives = _lives(measured)
    return [
        one.of
        for one in measured
        if one.cell == cell and not (isinstance(one.of, Window) and one.of.life < lives[one.of.process])
    ]


def _lives(measured: Sequence[Measured]) -> dict[int, int]:
    """The latest start of each process."""
    lives: dict[int, int] = {}
    for one in measured:
        if isinstance(one.of, Window):
            lives[one.of.process] = max(lives.get(one.of.process, 0), one.of.life)
    return lives


def ratio(settings: Search, limits: Limits, measured: Sequence[Measured], cell: int) -> Ratio | None:
    """Returns the rate of a cell over that of the first one, from all whole blocks; None for too few of them."""
    own = [of_cell(measured, number) for number in (0, cell)]
    processes = []
    for process in range(1, settings.processes + 1):
        base, other = (estimate_of(settings, limits, mine, process) for mine in own)
        if base is None or other is None:
            continue
        shared = mean_cost([(0.5, base.cost), (0.5, other.cost)])
        processes.append(
            [
                _log_rate(settings, block[cell], other, shared) - _log_rate(settings, block[0], base, shared)
                for block in whole_blocks(measured, process, max(one.cell for one in measured) + 1)
            ]
        )
    return ratio_of(processes)


def _log_rate(settings: Search, windows: Sequence[Window], estimate: Estimate, shared: BatchCost) -> float:
    """Mean logarithm of the sustainable rate that each of these windows alone gives.

    The batch cost of both sides, and how the cost grows with the rows, are taken as one: their errors then cancel in
    the ratio. Hiccups are left out, as in the fit of the ladder; a window holds too few batches to tell how often they
    come.
    """
    logs = []
    for window in windows:
        expected_s = estimate.cost.seconds(window.rows / len(window.batches))
        point = Point.of(window, None if estimate.batch_cost_s is None else expected_s)
        if estimate.constraint == "age":
            logs.append(math.log(shared.through(point.seconds, point.rows).rows(settings.max_age.seconds)))
        elif estimate.constraint == "batch cap" and estimate.cap_rows:
            # a block that began before the cap was seen has other batches
            slower = point.seconds / max(1e-12, shared.seconds(point.rows))
            logs.append(math.log(estimate.cap_rows / (slower * max(1e-12, shared.seconds(estimate.cap_rows)))))
        else:
            logs.append(math.log(point.rows / point.seconds))
    return sum(logs) / len(logs)


def _next_of_block(
    settings: Search,
    limits: Limits,
    own: Sequence[Sequence[Measurement]],
    measured: Sequence[Measured],
    process: int,
) -> Turn | None:
    """The next window of a block of that process; None once its blocks are enough."""
    whole = len(whole_blocks(measured, process, len(own)))
    if whole >= settings.blocks and not _wants_more(settings, limits, measured, len(own), whole):
        return None
    block, taken = _begun_block(measured, process, len(own))
    order = block_order(process, block, len(own))
    cell = order[taken]
    estimate = estimate_of(settings, limits, own[cell], process)
    if estimate is None:
        return None
    rows, why = _rows(limits, estimate), f"block {block + 1}, window {taken + 1} of {len(order)}"
    seconds = _LONG * settings.window_seconds
    least = LEAST_BATCHES // 2
    # further blocks narrow the interval, longer windows do not: all are of one length
    return Turn(cell, Hold(process, "pair", rows, why, seconds, seconds, 1.0, least, block=block))


def _begun_block(measured: Sequence[Measured], process: int, cells: int) -> tuple[int, int]:
    """(Number of the block that goes on or begins, windows that it has). One that another process began is given up."""
    pairs = [(one.cell, one.of) for one in measured if isinstance(one.of, Window) and one.of.purpose == "pair"]
    valid = [(cell, w) for cell, w in pairs if w.process == process and w.invalid is None]
    last = max((window.block for _, window in valid), default=-1)
    life = _lives(measured).get(process, 0)
    begun = [cell for cell, window in valid if (window.block, window.life) == (last, life)]
    order = block_order(process, last, cells)
    if 0 < len(begun) < len(order) and begun == order[: len(begun)]:
        return last, len(begun)
    return last + 1, 0


def block_order(process: int, block: int, cells: int) -> list[int]:
    """Cells in the order of a block's windows: a seeded order, then the same backwards."""
    order = list(range(cells))
    random.Random(f"{process}/{block}").shuffle(order)
    return [*order, *reversed(order)]


def _wants_more(settings: Search, limits: Limits, measured: Sequence[Measured], cells: int, whole: int) -> bool:
    """True if a ratio is not yet as narrow as asked, and twice the blocks are not yet spent."""
    if whole >= 2 * settings.blocks:
        return False
    ratios = [ratio(settings, limits, measured, cell) for cell in range(1, cells)]
    return any(one is not None and one.half_width > settings.ratio_error for one in ratios)


def whole_blocks(measured: Sequence[Measured], process: int, cells: int) -> list[dict[int, list[Window]]]:
    """Windows of each cell in each whole block of that process, in the order of the blocks.

    A block whose process was lost in the middle is measured again, and never counted twice.
    """
    blocks: dict[tuple[int, int], dict[int, list[Window]]] = {}
    for one in measured:
        window = one.of
        if isinstance(window, Window) and (window.purpose, window.process, window.invalid) == ("pair", process, None):
            key = (window.block, window.life)
            blocks.setdefault(key, {cell: [] for cell in range(cells)})[one.cell].append(window)
    return [blocks[key] for key in sorted(blocks) if all(len(own) == _EACH for own in blocks[key].values())]


def _rows(limits: Limits, estimate: Estimate) -> int:
    """Rows to hold in a block: those of a batch at the cap, or a part of the one that lasts the allowed age."""
    if estimate.constraint == "batch cap" and estimate.cap_rows is not None:
        rows = 2.0 * estimate.cap_rows
    elif estimate.constraint == "queue memory":
        rows = limits.most_rows
    else:
        rows = estimate.backlog_rows * _PART
    return int(max(1.0, min(rows, limits.most_rows)))


def _place(step: Step) -> tuple[int, int]:
    return (0, _LAST) if isinstance(step, Done) else (step.process, _PHASES[step.purpose])


def _count(own: Sequence[Measurement], place: tuple[int, int]) -> int:
    return sum((one.process, _PHASES[one.purpose]) == place for one in own)
