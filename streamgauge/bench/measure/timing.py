"""Estimates how long stages take, from the benchmark file alone: for timeouts, and for whoever waits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

from streamgauge.base.live import about
from streamgauge.bench.measurements import LONGEST, USUAL, Pace, RatedSection
from streamgauge.catalog.run_log import StageRecord
from streamgauge.catalog.stages import BY_NAME, RELEASE, Stage, needed_before, scopes_of, stages_of
from streamgauge.config import RELEASE_CATCHUP, RELEASE_RATE, Benchmark, Release

#: size that is taken for a source on an object store, which is not asked whenever a DAG file is read
FAR_BYTES = 20e9
BYTES_PER_NEXMARK_EVENT = 250
_NEXMARK_QUERIES = 24
#: tries of a task, the one after a failure included
_TRIES = 2
#: states of a stage of which nothing is left
ENDED = ("done", "failed", "skipped")


def stage_seconds(stage: Stage, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
    """Estimates the seconds that one task of the stage takes."""
    if stage.is_measurement:
        return benchmark.sections[stage.name].cell_seconds(benchmark, pace)
    match stage.name:
        case "turns":
            sizes = [len(group) for group in benchmark.sharing(benchmark.all_cells())]
            latency_s = len(benchmark.all_cells()) * benchmark.latency.cell_seconds(benchmark, pace, warm=True)
            turns = 2 * benchmark.latency.blocks * sum(size for size in sizes if size > 1)
            turns_s = turns * (benchmark.latency.turn_seconds + 0.75 * pace.change_s)
            return latency_s + turns_s + sum(benchmark.search.cell_seconds(benchmark, pace, size) for size in sizes)
        case "nexmark":
            queries = len(benchmark.suite.queries or range(_NEXMARK_QUERIES))
            systems = max(1, len(benchmark.systems))
            each = pace.nexmark_query_s + _events(benchmark) / pace.nexmark_events_per_s
            return pace.start_s + systems * queries * 2 * each
        case "regressions":
            return regressions_seconds(benchmark)
        case "release":
            return release_seconds(benchmark)
        case _:
            return pace.start_s + _source_bytes(benchmark) * benchmark.scale / pace.bytes_per_s


def regressions_seconds(benchmark: Benchmark) -> float:
    """Estimates the seconds of judging a night, if as many suspects as allowed are rerun to the end."""
    settings, start = benchmark.nightly, LONGEST.start_s
    if settings is None:
        return start
    plan = benchmark.latency
    once = start + benchmark.search.warmup_seconds + (len(plan.fractions) + len(plan.rates)) * plan.seconds
    return start + (settings.max_reruns + settings.self_tests) * 2 * sum(settings.repetitions) * once


def release_seconds(benchmark: Benchmark, pace: Pace = LONGEST, *, again: bool = True) -> float:
    """Estimates the seconds of a release check. again: every cell is a suspect, and is run again."""
    settings = benchmark.release
    if settings is None:
        return pace.start_s
    queries = _NEXMARK_QUERIES if "all" in settings.queries else len(settings.queries)
    answers = 2 * queries * 2 * (pace.nexmark_query_s + settings.events / pace.nexmark_events_per_s)
    pairs = len({(cell.experiment, cell.workload) for cell in benchmark.all_cells()})  # each is measured of both sides
    rounds = pairs * (settings.repetitions + settings.reruns * again)
    round_s = _fixed_round_seconds(benchmark, settings, pace) + _ladder_round_seconds(benchmark, settings, pace)
    beside = [benchmark.sections[name] for name in settings.beside]
    searches = sum(not isinstance(section, RatedSection) for section in beside)
    beside_s = sum(section.cell_seconds(benchmark, pace) for section in beside)
    once = 2 * pairs * (beside_s + searches * benchmark.search.cell_seconds(benchmark, pace))
    return pace.start_s + answers + rounds * round_s + once


def _fixed_round_seconds(benchmark: Benchmark, settings: Release, pace: Pace) -> float:
    """Estimates the seconds of baseline, candidate, baseline at a fixed rate; 0 if only rates are compared.

    A process takes as long as its start once more, to catch up after its warm-up, to be checked and to end.
    """
    if not set(settings.tolerance) - {RELEASE_RATE}:
        return 0.0
    catchup = benchmark.catchup if RELEASE_CATCHUP in settings.tolerance else None
    caught_s = catchup.until_live_s(benchmark, pace) if catchup else 0.0
    return 3 * (2 * pace.start_s + settings.warmup_seconds + settings.seconds + caught_s)


def _ladder_round_seconds(benchmark: Benchmark, settings: Release, pace: Pace) -> float:
    """Estimates the seconds of a ladder and a trial of baseline and candidate; 0 if no rates are compared."""
    if RELEASE_RATE not in settings.tolerance:
        return 0.0
    alone = benchmark.search.model_copy(update={"processes": 1, "proof_steps": 0})
    return 2 * (alone.cell_seconds(benchmark, pace) + settings.seconds)


def release_summary(benchmark: Benchmark) -> str:
    """Says how long a release check takes, such as "about 23 min; about 12 min if no cell is run again"."""
    whole_s, once_s = (release_seconds(benchmark, USUAL, again=again) for again in (True, False))
    return f"{about(whole_s)}; {about(once_s)} if no cell is run again"


def timeout_seconds(stage: Stage, benchmark: Benchmark) -> float:
    """The seconds after which a task of the stage counts as hung."""
    settings = benchmark.timeouts
    return max(settings.least.seconds, settings.factor * stage_seconds(stage, benchmark))


def run_seconds(benchmark: Benchmark, *, nightly: bool = False, pace: Pace = LONGEST) -> float:
    """Estimates the seconds of a whole run whose tasks follow one another."""
    stages = stages_of(benchmark, nightly=nightly)
    return sum(stage_seconds(stage, benchmark, pace) * len(scopes_of(benchmark, stage.scope)) for stage in stages)


def summary(benchmark: Benchmark) -> str:
    """Says how long a run takes, such as "about 8 min (at most 24 min): 2 × search of 2 min, …"."""
    stages = [(s, len(scopes_of(benchmark, s.scope)), stage_seconds(s, benchmark, USUAL)) for s in stages_of(benchmark)]
    longest = sorted(stages, key=lambda one: -one[1] * one[2])[:2]
    parts = [f"{count} × {stage.name} of {about(seconds).removeprefix('about ')}" for stage, count, seconds in longest]
    usual, most = (about(run_seconds(benchmark, pace=pace)) for pace in (USUAL, LONGEST))
    most = most.removeprefix("about ")
    return f"{usual} (at most {most}): {', '.join(parts)}, …"


def left(benchmark: Benchmark, records: Iterable[StageRecord] = (), *, running_s: float = 0) -> str:
    """Says how long the rest of a run takes, such as "about 6 min left"; see left_seconds."""
    return f"{about(left_seconds(benchmark, records, running_s=running_s))} left"


def left_seconds(benchmark: Benchmark, records: Iterable[StageRecord] = (), *, running_s: float = 0) -> float:
    """Estimates the seconds that the rest of a run takes.

    records: attempts at its stages, of which the last one counts. Nothing is left of a stage that cannot begin, since
    one that it needs has failed. running_s: seconds since the last stage began.
    """
    states = {(one.stage, *one.scope.values()): one.state for one in records}
    failed = {task for task, state in states.items() if state in ("failed", "skipped")}

    def skipped(stage: Stage, scope: dict[str, str]) -> bool:
        before = needed_before(stage, scope)
        return any((one.name, *where.values()) in failed or skipped(one, where) for one, where in before)

    seconds = 0.0
    for stage in stages_of(benchmark):
        for scope in scopes_of(benchmark, stage.scope):
            state = states.get((stage.name, *scope.values()))
            if state in ENDED or skipped(stage, scope):
                continue
            expected_s = stage_seconds(stage, benchmark, USUAL)
            if stage.in_turns:  # it leaves out the cells of a failed experiment, and those that it has searched
                cells = [cell.model_dump() for cell in benchmark.all_cells()]
                of_cell = BY_NAME["search"]
                ended = [cell for cell in cells if states.get((of_cell.name, *cell.values())) in ENDED]
                to_measure = [cell for cell in cells if cell not in ended and not skipped(of_cell, cell)]
                expected_s *= len(to_measure) / max(1, len(cells))
            seconds += max(0.0, expected_s - running_s) if state == "started" else expected_s
    return seconds


def run_timeout_seconds(benchmark: Benchmark, *, nightly: bool = False) -> float:
    """The seconds after which a run counts as hung: every task took its whole time, in each of its tries."""
    stages = stages_of(benchmark, nightly=nightly)
    tasks = sum(timeout_seconds(stage, benchmark) * len(scopes_of(benchmark, stage.scope)) for stage in stages)
    return _TRIES * tasks + benchmark.timeouts.least.seconds


def release_timeout_seconds(benchmark: Benchmark) -> float:
    """The seconds after which the DAG of a release check counts as hung."""
    few = BY_NAME["ingest"], BY_NAME["generate"]
    tasks = sum(timeout_seconds(stage, benchmark) * len(scopes_of(benchmark, stage.scope)) for stage in few)
    return _TRIES * (tasks + timeout_seconds(RELEASE, benchmark)) + benchmark.timeouts.least.seconds


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
