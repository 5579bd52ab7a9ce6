"""Counts how often the judgement of a long run's series errs, on series whose truth is known.

    .venv/bin/python -m benchmarks.trend [--seeds 100] [--samples 90,600] [--series 1] [--markdown]

Each line has so many series of one kind, with noise of deviation 1 and a sample every 2 s. `growing` counts those in
which a growth was found: on level series an error, on leaks the power. The other methods are the t-test of a straight
line, Kendall's test (Mann, 1945), and the slope of Theil and Sen with an interval from a block bootstrap, all on the
same part of the series.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtr, stdtr

from streamgauge.stats.trend import ALPHA, SETTLING, trend

EVERY_S = 2.0
_BOOTSTRAPS = 200
Draw = np.random.Generator


def alike(draw: Draw, count: int, part: float) -> np.ndarray:
    """An AR(1) series of deviation 1 from its stationary distribution."""
    shocks = draw.standard_normal(count) * np.sqrt(1 - part**2)
    shocks[0] = draw.standard_normal()
    return np.fromiter(accumulate(shocks, lambda before, shock: part * before + shock), float, count)


def sawtooth(draw: Draw, count: int, period: float) -> np.ndarray:
    """Heap that fills and is collected, with periods that differ by a tenth."""
    ends = np.cumsum(period * (1 + 0.1 * draw.standard_normal(int(3 * count / period) + 3)).clip(0.3))
    at = np.arange(count) + draw.uniform(0, period)
    place = np.searchsorted(ends, at)
    begins = np.concatenate([[0.0], ends])
    filled: np.ndarray = (at - begins[place]) / (ends[place] - begins[place])
    return 5 * filled + 0.3 * draw.standard_normal(count)


def steps(draw: Draw, count: int) -> np.ndarray:
    """Memory that is taken in three steps, the last one at a random instant of the first half."""
    series = 0.5 * draw.standard_normal(count)
    for at in draw.uniform(0, 0.5, 3):
        series[int(at * count) :] += draw.uniform(1, 5)
    return series


def warm_up(draw: Draw, count: int, part: float) -> np.ndarray:
    """A rise by 10 that ends, with this time constant in parts of the run."""
    rise: np.ndarray = 10 * (1 - np.exp(-np.arange(count) / (part * count)))
    return rise + 0.5 * draw.standard_normal(count)


LEVEL: dict[str, Callable[[Draw, int], np.ndarray]] = {
    "white noise": lambda draw, n: draw.standard_normal(n),
    "AR(1) 0.5": lambda draw, n: alike(draw, n, 0.5),
    "AR(1) 0.9": lambda draw, n: alike(draw, n, 0.9),
    "AR(1) 0.9 and as much white noise": lambda draw, n: (alike(draw, n, 0.9) + draw.standard_normal(n)) / 2**0.5,
    "spikes in 3 %": lambda draw, n: draw.standard_normal(n) + 30 * (draw.random(n) < 0.03),
    "sawtooth of 8 samples": lambda draw, n: sawtooth(draw, n, 8),
    "sawtooth of 40 samples": lambda draw, n: sawtooth(draw, n, 40),
    "sawtooth of half the run": lambda draw, n: sawtooth(draw, n, n / 2),
    "whole numbers, mostly the same": lambda draw, n: np.round(0.3 * draw.standard_normal(n)),
    "steps of warm-up": steps,
    "warm-up of a 20th of the run": lambda draw, n: warm_up(draw, n, 0.05),
    "warm-up of a 5th of the run": lambda draw, n: warm_up(draw, n, 0.2),
}
#: noise of a leak, and its growth over the run
LEAKS = [
    (noise, growth) for noise in ("white noise", "AR(1) 0.5", "AR(1) 0.9", "sawtooth of 8 samples")
    for growth in (2.0, 5.0, 20.0)
]  # fmt: skip


def line(at: np.ndarray, seen: np.ndarray) -> bool:
    """True if the t-test of a straight line finds a growth."""
    time = at - at.mean()
    slope = float(time @ seen / (time @ time))
    rest = seen - seen.mean() - slope * time
    error = float(np.sqrt(rest @ rest / (at.size - 2) / (time @ time)))
    return slope > 0 and 2 * float(stdtr(at.size - 2, -abs(slope) / max(error, 1e-300))) < ALPHA


def kendall(at: np.ndarray, seen: np.ndarray) -> bool:
    """True if the test of Mann and Kendall finds a growth."""
    first, second = np.triu_indices(at.size, 1)
    score = float(np.sign(seen[second] - seen[first]).sum())
    variance = at.size * (at.size - 1) * (2 * at.size + 5) / 18
    return score > 0 and 2 * float(ndtr(-score / np.sqrt(variance))) < ALPHA


def blocks(at: np.ndarray, seen: np.ndarray, draw: Draw) -> bool:
    """True if the interval of a bootstrap of blocks of the residuals is above zero."""
    slope, length, count = middle(at, seen), max(2, round(at.size ** (1 / 2))), at.size
    rest, found = seen - slope * at, []
    for _ in range(_BOOTSTRAPS):
        begins = draw.integers(0, count - length + 1, -(-count // length))
        chosen = (begins[:, None] + np.arange(length)).ravel()[:count]
        found.append(middle(at, slope * at + rest[chosen]))
    return float(np.quantile(found, ALPHA / 2)) > 0


def middle(at: np.ndarray, seen: np.ndarray) -> float:
    """The slope of Theil and Sen; of long series that of every so many samples."""
    every = max(1, at.size // 60)
    at, seen = at[::every], seen[::every]
    first, second = np.triu_indices(at.size, 1)
    return float(np.median((seen[second] - seen[first]) / (at[second] - at[first])))


@dataclass
class Counted:
    """Counts of one kind of series: growing, not clear or covered by `trend`, and growing by the other methods."""

    growing: int = 0
    open: int = 0
    covered: int = 0
    line: int = 0
    kendall: int = 0
    blocks: int = 0

    def row(self, kind: str, count: int, errors: list[float], growth: float) -> list[str]:
        error = f"{100 * float(np.median(np.abs(errors))):.0f} %" if growth else ""
        shown = (self.growing, self.open, self.covered, self.line, self.kendall, self.blocks)
        names = list(map(str, shown))
        return [kind, str(count), f"{growth:g}" if growth else "level", *names[:3], error, *names[3:]]


def count(kind: str, samples: int, growth: float, seeds: int, series: int = 1) -> list[str]:
    at = np.arange(samples) * EVERY_S
    found, errors = Counted(), list[float]()
    true = growth / at[-1] * 3600
    for seed in range(seeds):
        draw = np.random.default_rng((seed, samples, sorted(LEVEL).index(kind), int(growth)))
        seen = LEVEL[kind](draw, samples) + growth * at / at[-1]
        judged = trend(at.tolist(), seen.tolist(), series=series)
        found.growing += judged.kind == "growing"
        found.open += judged.kind == "not clear"
        if judged.low is not None and judged.high is not None:
            found.covered += judged.low <= true <= judged.high
        if growth and judged.per_hour is not None:
            errors.append(judged.per_hour / true - 1)
        late = at >= SETTLING * at[-1]
        found.line += line(at[late], seen[late])
        found.kendall += kendall(at[late], seen[late])
        found.blocks += blocks(at[late], seen[late], draw)
    return found.row(kind, samples, errors, growth)


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors of the judgement of long runs")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--samples", default="90,600", help="lengths of the series")
    parser.add_argument("--series", type=int, default=1, help="series that are judged together; Spark has nine")
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/soak.md")
    args = parser.parse_args()
    names = ["series", "samples", "growth", "growing", "not clear", "covered", "error", "line", "Kendall", "bootstrap"]
    kinds = [(kind, 0.0) for kind in LEVEL] + LEAKS
    lengths = [int(length) for length in args.samples.split(",")]
    rows = [count(kind, length, growth, args.seeds, args.series) for kind, growth in kinds for length in lengths]
    if args.markdown:
        print("\n".join(f"| {' | '.join(row)} |" for row in [names, ["---"] * len(names), *rows]))
        return
    table = Table(*names)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
