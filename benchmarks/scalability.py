"""Fits the scalability law to simulated rates whose law is known: how often do its intervals hold the truth?

    .venv/bin/python -m benchmarks.scalability [--seeds 100] [--markdown]

Each line has so many simulated systems of one law, with a rate of each process that differs by a lognormal factor. In
lines with the noise "searched", a whole search of the known system, on a virtual clock, finds each rate: its batches
cost 50 ms and have noise of 5 %, and its processes differ by 3 %. In lines with the noise "in turns", so many blocks of
the measurement `scaling` find the rates in one such process, whose cores change between windows. A search of three
processes on all cores tells by how much fresh ones differ, and of one in lines with the noise "in turns, alone".
σ, κ: how often the 90 % interval held the coefficient. demand: how often the interval of the least cores for half of
the largest measured rate, and for 1.2 times that rate, held the truth. In turns, that is what a fresh process needs, as
the measurement claims; elsewhere it is what the law needs. error: median error of the cores for the latter.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import TurningProcess
from streamgauge.bench.search.behaviour import Behaviour, Process
from streamgauge.bench.search.estimate import differ_of
from streamgauge.bench.search.estimate import fit as fit_windows
from streamgauge.bench.search.parts import measure_parts
from streamgauge.bench.search.simulate import calibrate
from streamgauge.bench.search.steps import Hold
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Window
from streamgauge.stats.scalability import MOST_CORES, Demand, Law, carried, fit

ONE_CORE = 50_000.0
#: what is measured in turns; its batches have no cap, as `truths_of` knows none
KNOWN = Behaviour(ONE_CORE, batch_cost_s=0.05, batch_rows=10**9, noise=0.05, between=0.03)
#: numbers of cores, processes or blocks of each, and the deviation of their rates, or how they are found
Plan = tuple[tuple[int, ...], int, float | Literal["searched", "in turns", "in turns, alone"]]
LAWS = [(0.0, 0.0), (0.05, 0.0), (0.2, 0.0), (0.05, 0.001), (0.1, 0.01), (0.02, 0.02)]
PLANS: list[Plan] = [
    ((1, 2, 4, 8), 3, 0.03),
    ((1, 2, 4, 8, 16), 3, 0.05),
    ((1, 2, 3, 4), 5, 0.03),
    ((1, 2, 4, 8), 3, 0.15),
]
SEARCHED: Plan = ((1, 2, 4, 8), 3, "searched")
IN_TURNS: list[Plan] = [((1, 2, 4, 8), 3, "in turns"), ((1, 2, 4, 8, 16), 6, "in turns")]
ALONE: Plan = ((1, 2, 4, 8), 3, "in turns, alone")


def least(rate: float, contention: float, coherency: float) -> int | None:
    """Least number of cores for a rate, by trying all."""
    return next((n for n in range(1, MOST_CORES + 1) if carried(n, ONE_CORE, contention, coherency) >= rate), None)


def truths_of(law: tuple[float, float], plan: Plan, asked: Sequence[float], seed: int) -> list[int | None]:
    """Least numbers of cores for these rates: by the law or, in turns, of a process that was not measured."""
    if not str(plan[2]).startswith("in turns"):
        return [least(rate, *law) for rate in asked]
    slower = Process(KNOWN, seed, 2).factor
    of_rows = 1 - slower * KNOWN.batch_cost_s / Search().max_age.seconds  # part of the time: the rest is the batch cost
    return [least(rate * slower / of_rows, *law) for rate in asked]


def holds(found: Demand, truth: int | None) -> bool:
    if truth is None:
        return found.high is None
    return (found.low or MOST_CORES) <= truth <= (found.high or MOST_CORES)


def points(law: tuple[float, float], plan: Plan, seed: int) -> list[tuple[float, float]]:
    """Numbers of cores, and a rate of each process on them."""
    sizes, processes, deviation = plan
    rates = [carried(n, ONE_CORE, *law) for n in sizes]
    if deviation == "searched":
        known = [Behaviour(rate, batch_cost_s=0.05, noise=0.05, between=0.03) for rate in rates]
        found = [searched(one, processes, 100 * seed + n) for n, one in zip(sizes, known, strict=True)]
        return [(n, rate) for n, each in zip(sizes, found, strict=True) for rate in each]
    if isinstance(deviation, str):
        return turned(law, sizes, processes, seed)
    draw = np.random.default_rng((seed, LAWS.index(law), PLANS.index(plan)))
    noise = np.exp(draw.normal(0, deviation, (processes, len(sizes))))
    return [(n, rate * one) for each in noise for n, rate, one in zip(sizes, rates, each, strict=True)]


def searched(known: Behaviour, processes: int, seed: int) -> list[float]:
    """The rate of each process of a search."""
    settings = Search(processes=processes, proof_steps=0)
    return [one.rate_events_per_s for one in calibrate(known, settings, 1, seed).searches[0].processes]


def differs(law: tuple[float, float], plan: Plan, seed: int) -> float:
    """Part by which fresh processes differ from those whose points are fitted, as far as the fit does not know it."""
    sizes, _, deviation = plan
    if deviation == "searched" or isinstance(deviation, float):
        return 0.0
    known = Behaviour(carried(max(sizes), ONE_CORE, *law), batch_cost_s=0.05, noise=0.05, between=0.03)
    # the measured process is one draw, too, and a fresh one another
    return math.sqrt(2) * differ_of(searched(known, 3, 10_000 + seed) if deviation == "in turns" else [1.0])


def turned(law: tuple[float, float], sizes: Sequence[int], blocks: int, seed: int) -> list[tuple[float, float]]:
    """Numbers of cores, and the rate in each block of one process whose cores change."""
    contention, coherency = law
    known = replace(KNOWN, contention=contention, coherency=coherency)
    settings, process = Search(), TurningProcess(known, seed, 1)
    whole = fit_windows(
        [Window(1, "ladder", rows, process.hold(rows, lambda batches: len(batches) > 3)) for rows in (10_000, 100_000)],
        settings.max_age.seconds,
        Limits(),
    )
    assert whole is not None

    def measure(cpus: float, step: Hold) -> Window:
        process.turn_to(known.on(cpus), 1)
        return Window(1, step.purpose, step.rows, process.hold(step.rows, step.enough))

    found = measure_parts(
        sizes, blocks, seed, settings, Limits(), whole, lambda cpus: nullcontext(partial(measure, cpus))
    )
    return [(one.cpus, one.estimate.rate_events_per_s) for one in found if one.estimate]


def row(law: tuple[float, float], plan: Plan, seeds: int) -> list[str]:
    sizes, processes, deviation = plan
    contention, coherency = law
    held, demands, errors = np.zeros(2), np.zeros(2), list[float]()
    fits = 0
    rates = [carried(n, ONE_CORE, contention, coherency) for n in sizes]
    asked = [0.5 * max(rates), 1.2 * max(rates)]
    for seed in range(seeds):
        truths = truths_of(law, plan, asked, seed)
        found = fit(points(law, plan, seed))
        if not isinstance(found, Law):
            continue
        fits += 1
        both = zip((found.contention, found.coherency), law, strict=True)
        held += [one.low <= truth <= one.high for one, truth in both]
        differ = differs(law, plan, seed)
        each = [found.demand(rate, differ) for rate in asked]
        demands += [holds(one, truth) for one, truth in zip(each, truths, strict=True)]
        demanded = each[1].cores
        if truths[1] is not None and demanded is not None:
            errors.append(abs(demanded / truths[1] - 1))
    shares = [f"{100 * one / fits:.0f} %" if fits else "" for one in (*held, *demands)]
    error = f"{100 * float(np.median(errors)):.0f} %" if errors else ""
    cores = f"{', '.join(map(str, sizes))} × {processes}"
    return [
        f"{contention:g}",
        f"{coherency:g}",
        cores,
        deviation if isinstance(deviation, str) else f"{100 * deviation:g} %",
        str(fits),
        *shares,
        error,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of the scalability law's intervals")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/scaling.md")
    args = parser.parse_args()
    names = ["σ", "κ", "cores × processes", "noise", "fitted", "σ held", "κ held", "half held", "1.2 held", "error"]
    rows = [row(law, plan, args.seeds) for law in LAWS for plan in PLANS]
    rows += [row(law, SEARCHED, args.seeds) for law in LAWS[3:5]]
    rows += [row(law, plan, args.seeds) for law in LAWS for plan in (*IN_TURNS, ALONE)]
    if args.markdown:
        print("\n".join(f"| {' | '.join(one)} |" for one in [names, ["---"] * len(names), *rows]))
        return
    table = Table(*names)
    for one in rows:
        table.add_row(*one)
    Console().print(table)


if __name__ == "__main__":
    main()
