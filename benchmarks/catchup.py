"""Lets simulated systems of known speed catch up: how often do the intervals hold the truth?

    .venv/bin/python -m benchmarks.catchup [--seeds 100] [--markdown]

Each line has so many simulated measurements on a virtual clock, each of `repeats` fresh processes that begin with a
backlog of two minutes. Events come at `load`, a part of what a warm, median process takes. patience: that of a repeat,
in multiples of the seconds that such a process needs. bias: median error. covered: share of 90 % intervals that hold
the truth, of those that are claimed: of the seconds until live, of the events/s taken meanwhile, and of the seconds
after an hour of standstill. never: measurements that say that it never catches up. instead: share that holds the truth
where patience leaves the seconds until live unknown, and they follow from the events/s taken.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

from streamgauge.bench.faults.course import looks
from streamgauge.bench.measurements.catchup.section import STAYS_S, Catchup
from streamgauge.bench.measurements.catchup.stage import is_over, live_of
from streamgauge.bench.search.behaviour import HICCUP, Behaviour
from streamgauge.bench.search.estimate import spread_of
from streamgauge.bench.search.simulate import VirtualProcess
from streamgauge.stats.catch_up import HOUR_S, CaughtUp, caught_up, needed

MAX_AGE_S = 10.0
WARM_UP_S = 30.0
_HELD = 100_000
#: name, behaviour, part of its speed at which events come, repeats
Line = tuple[str, Behaviour, float, int]
BATCHES = Behaviour(100_000, batch_cost_s=0.2, batch_rows=100_000, noise=0.1)
ROWS = Behaviour(100_000, noise=0.1, continuous=True, pipeline_s=0.05, between=0.03)
LINES: list[Line] = [
    ("micro-batches", BATCHES, 0.5, 3),
    ("micro-batches, processes differ by 3 %", replace(BATCHES, between=0.03), 0.5, 3),
    ("micro-batches, processes differ by 3 %", replace(BATCHES, between=0.03), 0.8, 3),
    ("micro-batches, processes differ by 3 %", replace(BATCHES, between=0.03), 0.95, 3),
    ("micro-batches, processes differ by 8 %", replace(BATCHES, between=0.08), 0.5, 3),
    ("micro-batches, processes differ by 8 %", replace(BATCHES, between=0.08), 0.8, 5),
    ("micro-batches with hiccups", replace(BATCHES, between=0.03, hiccups=0.05), 0.5, 3),
    ("micro-batches, the machine wanders by 3 %", replace(BATCHES, between=0.03, wander=0.03), 0.5, 3),
    ("micro-batches, slow start of 10 s", replace(BATCHES, between=0.03, compile_s=10.0), 0.5, 3),
    ("all that waits in one batch", replace(BATCHES, batch_rows=10**9, between=0.03), 0.5, 3),
    ("row by row, processes differ by 3 %", ROWS, 0.5, 3),
    ("row by row, processes differ by 3 %", ROWS, 0.8, 3),
    ("more comes than it takes", replace(BATCHES, between=0.03), 1.1, 3),
]
#: lines with a patience of their own, in multiples of the seconds that a median process needs
HASTY: list[tuple[Line, float]] = [(LINES[place], patience) for place in (2, 5) for patience in (1.0, 1.2, 1.5, 2.0)]


def speed(of: Behaviour) -> float:
    """Events/s that a warm, median process takes of a backlog; of one batch for all of it, by its rows alone."""
    assert of.capacity is not None
    worse = 1 + of.hiccups * (HICCUP - 1)
    fixed_s = 0.0 if of.continuous or of.batch_rows > 10**8 else of.batch_cost_s / of.batch_rows
    return 1 / (worse * (fixed_s + 1 / of.capacity))


def repeat(of: Behaviour, rate: float, section: Catchup, seed: int, number: int) -> CaughtUp:
    """Lets a fresh process catch up, after its warm-up."""
    process = VirtualProcess(of, seed, number)
    process.hold(min(_HELD, of.batch_rows), lambda batches: sum(one.seconds for one in batches) >= WARM_UP_S)
    seen = process.offer(
        rate, section.behind_s, section.most_s, None,
        lambda so_far: is_over(so_far, MAX_AGE_S), queue_s=math.inf,
    )  # fmt: skip
    return caught_up(looks(seen.samples), looks(seen.clock), MAX_AGE_S, STAYS_S)


def row(line: Line, seeds: int, patience: float = 3.0) -> list[str]:
    name, of, part, repeats = line
    taken = speed(of)
    needs = part / abs(1 - part)
    section = Catchup(minutes=2, repeats=repeats, patience=min(100.0, max(1.0, patience * needs)))
    rate = part * taken
    truths = [(section.behind_s - MAX_AGE_S) * rate / (taken - rate), taken, HOUR_S * rate / (taken - rate)]
    values: list[list[tuple[float, float, float]]] = [[], [], []]
    never, extrapolated = 0, list[tuple[float, float, float]]()
    for seed in range(seeds):
        each = [repeat(of, rate, section, seed, number) for number in range(repeats)]
        live = [one.live_s for one in each]
        own = spread_of([one.taken_per_s for one in each if one.taken_per_s is not None])
        drained = (own.value, own.interval) if own else (None, None)
        hour, by_taking = (needed(length_s, rate, *drained) for length_s in (HOUR_S, section.behind_s - MAX_AGE_S))
        never += hour.kind == "never"
        if (spread := live_of(live, section)) and spread.interval:
            values[0].append((spread.value, *spread.interval))
        elif by_taking.seconds is not None and by_taking.low is not None and by_taking.high is not None:
            extrapolated.append((by_taking.seconds, by_taking.low, by_taking.high))
        if own and own.interval:
            values[1].append((own.value, *own.interval))
        if hour.seconds is not None and hour.low is not None and hour.high is not None:
            values[2].append((hour.seconds, hour.low, hour.high))
    cells = [cell for truth, seen in zip(truths, values, strict=True) for cell in _errors(truth, seen)]
    _, instead = _errors(truths[0], extrapolated)
    return [name, f"{part:g}", str(repeats), f"{section.patience / needs:.2g}", *cells, str(never), instead]


def _errors(truth: float, seen: list[tuple[float, float, float]]) -> tuple[str, str]:
    """Bias, and covered of all that claim a figure."""
    if not seen or truth <= 0:
        return "", f"0 of {len(seen)}" if seen else ""
    bias = float(np.median([value / truth - 1 for value, _, _ in seen]))
    return f"{100 * bias:+.1f} %", f"{sum(low <= truth <= high for _, low, high in seen)} of {len(seen)}"


NAMES = [
    "system", "load", "repeats", "patience", "live: bias", "covered", "events/s: bias", "covered", "hour: bias",
    "covered", "never", "instead",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Bias and coverage of the figures of a catch-up")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/catchup.md")
    args = parser.parse_args()
    rows = [row(line, args.seeds) for line in LINES] + [row(line, args.seeds, patience) for line, patience in HASTY]
    if args.markdown:
        print("\n".join(f"| {' | '.join(one)} |" for one in [NAMES, ["---"] * len(NAMES), *rows]))
        return
    table = Table(*NAMES)
    for one in rows:
        table.add_row(*one)
    Console().print(table)


if __name__ == "__main__":
    main()
