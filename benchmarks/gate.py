"""Measures how often a gate is wrong: pairs of fresh processes of known systems, on a virtual clock.

    .venv/bin/python -m benchmarks.gate [--gates 400] [--pairs 12] [--kinds TEXT] [--markdown]

The head is as fast as the base (A/A), or slower by 5, 10 or 30 %; a slowdown of 5 % must not be merged. Fresh processes
differ by 3, 5 or 10 %. Systems are compared by their speed, and each window of a process has noise of its own. Rows of
CPU time compare that, and each process takes 1 % more of it than the one before. The budget is so many pairs. Columns
tell the verdicts, how many pairs they took on average, and the slowdown that a gate said it would find with 90 % power.
No answer is wrong here, and each process runs and holds the rate.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.search import as_markdown
from streamgauge.bench.compare import gate_rules
from streamgauge.bench.compare.release_rules import sides
from streamgauge.bench.measure.speed import measured_step, speed_of
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.ladder import warm_up
from streamgauge.bench.search.simulate import VirtualProcess, measured_in
from streamgauge.bench.search.steps import Hold
from streamgauge.config import Search
from streamgauge.config.gate import GATE_CPU, GATE_SPEED, Gate
from streamgauge.records.gate import GateRepetition
from streamgauge.records.measurement import Limits, Window
from streamgauge.records.release import Side

#: slowdowns of the head
SLOWER = (0.0, 0.05, 0.1, 0.3)
CELL = "e.all"
#: part by which a process takes more CPU time than the one before, as on a machine that warms up
DRIFT = 0.01
SETTINGS = Gate(rate=1000, compare=("speed",))
SEARCH = Search(warmup_seconds=SETTINGS.warmup_seconds)


def kinds() -> dict[str, Behaviour | float]:
    """Maps names to known systems with the faults of real ones; of CPU time, to how much processes differ."""
    made: dict[str, Behaviour | float] = {}
    for between in (0.03, 0.05, 0.1):
        noise = f"{between:.0%} between"
        made[f"CPU time, {noise}"] = between
        made[f"batches, 5 % noise, {noise}"] = Behaviour(1e6, 0.05, 200_000, noise=0.05, between=between)
        made[f"batches, 10 % hiccups, {noise}"] = Behaviour(1e6, 0.05, noise=0.05, hiccups=0.1, between=between)
        made[f"continuous, compiles 20 s, {noise}"] = Behaviour(
            1e6, noise=0.1, compile_s=20, between=between, continuous=True
        )
    return made


@dataclass(frozen=True)
class Gates:
    """Verdicts of gates on one kind of system. seen: the median of what they said they would find."""

    verdicts: Counter[str]
    pairs: float
    seen: float


def speed_in(behaviour: Behaviour, seed: int, number: int, held: int) -> tuple[float, int]:
    """Speed of a fresh process, and the rows that it held."""
    process = VirtualProcess(behaviour, seed, number)
    limits = Limits(continuous=behaviour.continuous)

    def measured(step: Hold) -> Window:
        window = measured_in(process, step, SEARCH)
        assert isinstance(window, Window)
        return window

    windows = warm_up(SEARCH, limits, measured)
    one = speed_of(measured(measured_step(SEARCH, limits, windows, held, SETTINGS.seconds)))
    return one.events_per_s or 0.0, one.held_rows


def speeds(behaviour: Behaviour, slower: float, seed: int) -> Iterator[tuple[int, Side, float]]:
    """Yields the speeds of fresh processes in turns, with their pairs and sides. slower: of the head."""
    head = replace(
        behaviour,
        capacity=(behaviour.capacity or 0.0) / (1 + slower),
        batch_cost_s=behaviour.batch_cost_s * (1 + slower),
    )
    held = 0
    for number in count(1):
        for side in sides(number):
            system, own = (behaviour, 1) if side == "baseline" else (head, 2)
            speed, held = speed_in(system, 1000 * seed + own, number, held)
            yield number, side, speed


def cpu_times(between: float, slower: float, seed: int) -> Iterator[tuple[int, Side, float]]:
    """Yields the CPU times per event of fresh processes, likewise."""
    random, drift = np.random.default_rng(seed), 0.0
    for number in count(1):
        for side in sides(number):
            drift += DRIFT
            cost = 1 + slower if side == "candidate" else 1.0
            yield number, side, cost * math.exp(drift + random.normal(0, between))


def gates(number_of_gates: int, most_pairs: int, item: tuple[Behaviour | float, float]) -> Gates:
    """Runs gates of a head that is slower by so much."""
    system, slower = item
    metric, settings = (GATE_SPEED, SETTINGS) if isinstance(system, Behaviour) else (GATE_CPU, Gate(rate=1000))
    verdicts, pairs, seen = Counter[str](), list[int](), list[float]()
    for seed in range(number_of_gates):
        measured: list[GateRepetition] = []
        processes = speeds(system, slower, seed) if isinstance(system, Behaviour) else cpu_times(system, slower, seed)
        for number, side, value in processes:
            about = {"gate": "", "cell": CELL, "side": side, "round": number, "values": {metric: value}, "seconds": 0.0}
            measured.append(GateRepetition.model_validate(about))
            if len(measured) % 2:
                continue
            (one,) = gate_rules.judged(measured, [CELL], settings, last=number == most_pairs)
            if one.state != "open" or number == most_pairs:
                break
        verdicts[{"passed": "go", "failed": "no-go"}.get(one.state, "inconclusive")] += 1
        pairs.append(one.n_baseline)
        seen.append(one.seen or 0.0)
    return Gates(verdicts, statistics.mean(pairs), statistics.median(seen))


def main() -> int:
    parser = argparse.ArgumentParser(description="How often a gate is wrong, against known slowdowns")
    parser.add_argument("--gates", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=12, help="the budget, in pairs")
    parser.add_argument("--kinds", default="", help="only those whose name holds this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="for docs/gate.md")
    args = parser.parse_args()
    wanted = [(name, of, slower) for name, of in kinds().items() if args.kinds in name for slower in SLOWER]
    table = Table("system", "slower by", "go", "no-go", "inconclusive", "pairs", "finds")
    with ProcessPoolExecutor(args.jobs) as pool:
        made = pool.map(partial(gates, args.gates, args.pairs), [(of, slower) for _, of, slower in wanted])
        for (name, _, slower), one in zip(wanted, made, strict=True):
            shares = [f"{one.verdicts[verdict] / args.gates:.1%}" for verdict in ("go", "no-go", "inconclusive")]
            table.add_row(name, f"{slower:.0%}", *shares, f"{one.pairs:.1f}", f"{one.seen:.1%}")
    if args.markdown:
        print("\n".join(as_markdown(table)))
    else:
        Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
