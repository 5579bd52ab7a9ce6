"""Estimates how long stages take, from the benchmark file alone: for timeouts, and for whoever waits."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache

from streamgauge.catalog.stages import RELEASE, STAGES, Stage, scopes_of, stages_of
from streamgauge.config import Benchmark

#: a cautious guess for hosts slower than any that was tried: start of a Spark or Flink system with its driver, seconds
START_S = 60.0
#: bytes a second at which a source is read, sorted and written again
BYTES_PER_S = 2e6
#: size that is taken for a source on an object store, which is not asked whenever a DAG file is read
FAR_BYTES = 20e9
BYTES_PER_NEXMARK_EVENT = 250
#: windows of a ladder at most, and trials of a proof at each load
_WINDOWS, _TRIALS = 16, 3
_NEXMARK_QUERIES = 24
_NEXMARK_EVENTS_PER_S = 2_000.0


def stage_seconds(stage: Stage, benchmark: Benchmark) -> float:
    """Estimates the seconds that one task of the stage takes, on the long side."""
    match stage.name:
        case "search":
            return search_seconds(benchmark)
        case "latency":
            return latency_seconds(benchmark)
        case "turns":
            return len(benchmark.all_cells()) * (search_seconds(benchmark) + latency_seconds(benchmark))
        case "nexmark":
            queries = len(benchmark.suite.queries or range(_NEXMARK_QUERIES))
            systems = max(1, len(benchmark.systems))
            return START_S + systems * queries * 2 * (10 + _events(benchmark) / _NEXMARK_EVENTS_PER_S)
        case "regressions":
            return regressions_seconds(benchmark)
        case "release":
            return release_seconds(benchmark)
        case _:
            return START_S + _source_bytes(benchmark) * benchmark.scale / BYTES_PER_S


def search_seconds(benchmark: Benchmark) -> float:
    """Estimates the seconds of the search for one cell."""
    settings = benchmark.search
    ladder = START_S + settings.warmup_seconds + _WINDOWS * 2 * settings.window_seconds
    proof = 2 * settings.proof_steps * _TRIALS * (settings.recovery_seconds + settings.max_age.seconds)
    return START_S + settings.processes * (ladder + proof)


def latency_seconds(benchmark: Benchmark) -> float:
    """Estimates the seconds of the latency runs of one cell."""
    settings = benchmark.latency
    runs = len(settings.fractions) + len(settings.rates)
    return START_S + benchmark.search.warmup_seconds + runs * (settings.seconds + START_S)


def regressions_seconds(benchmark: Benchmark) -> float:
    """Estimates the seconds of judging a night, if as many suspects as allowed are rerun to the end."""
    settings = benchmark.nightly
    if settings is None:
        return START_S
    once = START_S + benchmark.search.warmup_seconds + benchmark.latency.seconds
    return START_S + (settings.max_reruns + settings.self_tests) * 2 * sum(settings.repetitions) * once


def release_seconds(benchmark: Benchmark) -> float:
    """Estimates the seconds of a release check with a rerun of every cell."""
    settings = benchmark.release
    if settings is None:
        return START_S
    queries = _NEXMARK_QUERIES if "all" in settings.queries else len(settings.queries)
    answers = 2 * queries * 2 * (10 + settings.events / _NEXMARK_EVENTS_PER_S)
    pairs = {(cell.experiment, cell.workload) for cell in benchmark.all_cells()}
    rounds = len(pairs) * (settings.repetitions + settings.reruns) * 3
    return START_S + answers + rounds * (START_S + settings.warmup_seconds + settings.seconds)


def timeout_seconds(stage: Stage, benchmark: Benchmark) -> float:
    """The seconds after which a task of the stage counts as hung."""
    settings = benchmark.timeouts
    return max(settings.least.seconds, settings.factor * stage_seconds(stage, benchmark))


def run_seconds(benchmark: Benchmark, *, nightly: bool = False) -> float:
    """Estimates the seconds of a whole run whose tasks follow one another."""
    stages = stages_of(benchmark, nightly=nightly)
    return sum(stage_seconds(stage, benchmark) * len(scopes_of(benchmark, stage.scope)) for stage in stages)


def told(benchmark: Benchmark) -> str:
    """Says how long a run takes at most, such as "up to about 21 min: 2 × search of 7 min, 2 × latency of 2 min"."""
    stages = [(s, len(scopes_of(benchmark, s.scope)), stage_seconds(s, benchmark)) for s in stages_of(benchmark)]
    longest = sorted(stages, key=lambda one: -one[1] * one[2])[:2]
    parts = [f"{count} × {stage.name} of {_minutes(seconds)}" for stage, count, seconds in longest]
    return f"up to about {_minutes(run_seconds(benchmark))}: {', '.join(parts)}, …"


def _minutes(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 2 * 3600 else f"{max(1, round(seconds / 60))} min"


def run_timeout_seconds(benchmark: Benchmark, *, nightly: bool = False, tries: int = 2) -> float:
    """The seconds after which a run counts as hung: every task took its whole time, in each of its tries."""
    stages = stages_of(benchmark, nightly=nightly)
    tasks = sum(timeout_seconds(stage, benchmark) * len(scopes_of(benchmark, stage.scope)) for stage in stages)
    return tries * tasks + benchmark.timeouts.least.seconds


def release_timeout_seconds(benchmark: Benchmark, *, tries: int = 2) -> float:
    """The same for the DAG of a release check."""
    few = [stage for stage in STAGES if stage.name in ("ingest", "generate")]
    tasks = sum(timeout_seconds(stage, benchmark) * len(scopes_of(benchmark, stage.scope)) for stage in few)
    return tries * (tasks + timeout_seconds(RELEASE, benchmark)) + benchmark.timeouts.least.seconds


def _events(benchmark: Benchmark) -> float:
    return benchmark.source.nexmark.events * benchmark.scale if benchmark.source.nexmark else 0.0


@cache
def _size(file: str) -> float:
    if "://" in file:
        return FAR_BYTES
    with suppress(OSError):
        return float(os.stat(file).st_size)
    return 0.0


def _source_bytes(benchmark: Benchmark) -> float:
    if benchmark.source.nexmark:
        return benchmark.source.nexmark.events * BYTES_PER_NEXMARK_EVENT
    return sum(map(_size, benchmark.source.files))
