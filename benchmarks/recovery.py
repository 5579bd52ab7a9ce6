"""Kills simulated systems of known pauses: are the pauses found, and how often do the intervals hold the truth?

    .venv/bin/python -m benchmarks.recovery [--seeds 100] [--markdown]

Each line has so many simulated recoveries on a virtual clock, each of `repeats` trials of 60 s at 0.6 of capacity. A
kill ends the batch that runs, a fresh process takes it again after a pause, and the pauses have this median and spread
(the deviation of their logarithm). The truth is no simulation: it follows from the pause, from the cost of batches, and
from when within a batch the kill comes. bias: median error of the geometric mean, over those where each trial saw the
system back. worst: largest error. covered: 90 % intervals that hold the truth. not back: recoveries with a trial that
ended before the system was back.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from rich.console import Console
from rich.table import Table

from streamgauge.bench.faults.course import Course, course
from streamgauge.bench.measurements.recovery.section import Recovery
from streamgauge.bench.measurements.recovery.stage import instants
from streamgauge.bench.search.behaviour import Behaviour, Process
from streamgauge.bench.search.estimate import spread_of
from streamgauge.records.measurement import Sample

MAX_AGE_S = 1.0
PART = 0.6
CLOCK_S = 0.1
#: draws of pauses and instants from which the truth is taken
_DRAWS = 20_000
#: name, behaviour, median pause in s, its spread, repeats
Line = tuple[str, Behaviour, float, float, int]
ROWS = Behaviour(500, noise=0.1, continuous=True)
BATCHES = Behaviour(100_000, batch_cost_s=0.1, noise=0.1)
LINES: list[Line] = [
    ("row by row", ROWS, 2.0, 0.0, 3),
    ("row by row", ROWS, 2.0, 0.1, 3),
    ("row by row", ROWS, 2.0, 0.3, 3),
    ("row by row", ROWS, 8.0, 0.1, 3),
    ("row by row", ROWS, 8.0, 0.1, 5),
    ("micro-batches", BATCHES, 2.0, 0.1, 3),
    ("micro-batches", BATCHES, 2.0, 0.3, 3),
    ("micro-batches", BATCHES, 8.0, 0.1, 3),
    ("micro-batches", BATCHES, 8.0, 0.1, 5),
    ("micro-batches", BATCHES, 8.0, 0.3, 5),
]


def killed(of: Behaviour, rate: float, at_s: float, pause_s: float, seconds: float, seed: tuple[int, int]) -> Course:
    """Lets a system of that behaviour be killed at that instant; returns its course."""
    process, now, done = Process(of, *seed), 0.0, 0
    handed = [Sample(0.0, 0.0, 0, 0)]
    planned, is_struck = 0, False
    while now < seconds:
        if not is_struck and now > at_s:  # it waited for events
            now, is_struck, process = at_s + pause_s, True, Process(of, seed[0], seed[1] + 1)
        due = math.floor(now * rate) + 1
        if due <= done:
            now = (done + 1e-3) / rate
            continue
        rows = min(due - done, process.most_rows)
        if done + rows > planned:
            handed.append(Sample(now, max(0.0, now - planned / rate), due - planned, planned))
            planned = done + rows
        cost_s = process.batch_s(rows, now, due - done)
        if not is_struck and now + cost_s > at_s:
            now, is_struck, process = at_s + pause_s, True, Process(of, seed[0], seed[1] + 1)
        else:
            now, done = now + cost_s, done + rows
    steps = [(one.at_s, after.taken) for one, after in pairwise([*handed, Sample(seconds, 0, 0, planned)])]
    looks = np.arange(0, seconds, CLOCK_S)
    last = np.searchsorted([at for at, _ in steps], looks, side="right") - 1
    clock = [
        Sample(float(at), max(0.0, float(at) - steps[step][1] / rate), 0, 0)
        for at, step in zip(looks, last, strict=True)
    ]
    return course(handed[1:], clock, at_s, MAX_AGE_S)


def truth(of: Behaviour, rate: float, pauses_s: Sequence[float]) -> float:
    """Geometric mean of the seconds until such systems are back."""
    assert of.capacity is not None
    load = rate / of.capacity
    if of.continuous:  # of each second, 1/load − 1 are caught up
        return _mean([p + max(0.0, p - MAX_AGE_S) / (1 / load - 1) for p in pauses_s])
    batch_s = of.batch_cost_s / (1 - load)
    within = np.random.default_rng(7).uniform(0, batch_s, len(pauses_s))
    return _mean([_batches_back_s(of.batch_cost_s, load, p, u, batch_s) for p, u in zip(pauses_s, within, strict=True)])


def _batches_back_s(cost_s: float, load: float, pause_s: float, within_s: float, batch_s: float) -> float:
    """Seconds until micro-batches are back that were killed so far within a batch, which is taken again.

    The batch that takes the last events that waited for too long must have ended, too.
    """
    at, age = pause_s, pause_s + within_s
    lasts = cost_s + load * (age + batch_s)  # the first takes its rows and those of the batch that was killed
    while lasts > MAX_AGE_S:
        at, age = at + lasts, lasts
        lasts = cost_s + load * age
    return at + lasts


def _mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def row(line: Line, seeds: int) -> list[str]:
    name, of, pause_s, spread, repeats = line
    assert of.capacity is not None
    rate = PART * of.capacity
    drawn = np.random.default_rng(11)
    truths = [pause_s, truth(of, rate, list(pause_s * np.exp(spread * drawn.standard_normal(_DRAWS))))]
    errors: list[list[float]] = [[], []]
    held, seen, not_back = [0, 0], [0, 0], 0
    for seed in range(seeds):
        section = Recovery(repeats=repeats, seed=seed)
        random = np.random.default_rng((1, seed))
        pauses = pause_s * np.exp(spread * random.standard_normal(repeats))
        courses = [
            killed(of, rate, at_s, float(pause), section.seconds, (seed, 2 * number))
            for number, (at_s, pause) in enumerate(zip(instants(section, "kill"), pauses, strict=True))
        ]
        for nth, values in enumerate(([one.taken_again_s for one in courses], [one.back_s for one in courses])):
            own = spread_of(values)
            if own is None:
                not_back += nth
                continue
            seen[nth] += 1
            errors[nth].append(own.value / truths[nth] - 1)
            held[nth] += own.interval is not None and own.interval[0] <= truths[nth] <= own.interval[1]
    cells = [name, f"{pause_s:g} s", f"{spread:.0%}", str(repeats)]
    for nth in (0, 1):
        each = errors[nth] or [math.nan]
        worst = max(each, key=abs)
        cells += [f"{truths[nth]:.2f} s", f"{np.median(each):+.1%}", f"{worst:+.1%}", f"{held[nth]} of {seen[nth]}"]
    return [*cells, str(not_back)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    columns = ["system", "pause", "spread", "repeats", "taken again", "bias", "worst", "covered"]
    columns += ["back", "bias", "worst", "covered", "not back"]
    rows = [row(line, given.seeds) for line in LINES]
    if given.markdown:
        for cells in (columns, ["---"] * len(columns), *rows):
            print(f"| {' | '.join(cells)} |")
        return
    table = Table(*columns)
    for cells in rows:
        table.add_row(*cells)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
