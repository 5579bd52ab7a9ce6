"""Draws, runs and judges: `python -m tests.hostile`."""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

import tests.hostile
from tests.hostile.benchmarks import benchmark
from tests.hostile.draw import Draw
from tests.hostile.events import one_shot
from tests.hostile.headers import headers
from tests.hostile.judging import shortcomings
from tests.hostile.records import flipped_bit, records
from tests.hostile.running import ended
from tests.hostile.secrets import secrets
from tests.hostile.strangers import imports, interpolations, security_keys, stranger
from tests.hostile.wire import slow_clients, wire

KINDS: dict[str, Callable[[random.Random], Draw]] = {
    "files and options": one_shot, "benchmark files": benchmark, "records": records, "wire messages": wire,
    "strangers": stranger, "security keys": security_keys, "interpolations": interpolations,
    "names that import": imports, "headers": headers, "slow clients": slow_clients, "flipped bits": flipped_bit,
    "secrets": secrets,
}  # fmt: skip

#: what commands import, before the first draw is forked: an import by hundreds would take most of the time
WARM = [
    "confluent_kafka", "croniter", "duckdb", "pandas", "streamgauge.app.airflow.page_server", "streamgauge.app.cli",
    "streamgauge.bench.measure.checks", "streamgauge.results.report", "streamgauge.streams.stages.analyze",
    "streamgauge.streams.stages.generate",
    "streamgauge.streams.stages.ingest", "streamgauge.streams.stages.reach", "tests.driver.conftest",
]  # fmt: skip


def hostile(seed: int, draws: int, progress: bool = False) -> tuple[Counter[str], list[str]]:
    """Returns how many draws of each kind ended with which code, and a line for each shortcoming."""
    counts: Counter[str] = Counter()
    short: list[str] = []
    kinds = list(KINDS)
    for number in range(draws):
        kind = kinds[number % len(kinds)]
        draw = KINDS[kind](random.Random(f"{seed} {number}"))
        end = ended(draw)
        counts[f"{kind}: exit code {end.code}"] += 1
        for why in shortcomings(draw, end):
            told = end.err.strip().splitlines()[-1:] or [""]
            short.append(f"{number} ({kind}): {why}: {' '.join(draw.arguments)[:200]!r}: {told[0][:300]}")
        if progress and sys.stderr.isatty():
            print(f"\r{number + 1} of {draws}, {len(short)} fell short", end="", file=sys.stderr)
    return counts, short


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=tests.hostile.__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", type=int, help="run this draw alone and print what it said")
    given = parser.parse_args()
    for name in WARM:
        importlib.import_module(name)
    if given.only is not None:
        draw = list(KINDS.values())[given.only % len(KINDS)](random.Random(f"{given.seed} {given.only}"))
        end = ended(draw)
        print(draw.arguments, draw.files, end, sep="\n")
        return 0
    began = time.monotonic()
    counts, short = hostile(given.seed, given.draws, progress=True)
    for what, count in sorted(counts.items()):
        print(f"{count:6,}  {what}")
    print(f"{time.monotonic() - began:6.0f}  seconds")
    print("\n".join(["fell short:", *short]) if short else "fell short: nothing")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
