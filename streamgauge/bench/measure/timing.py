"""Estimates how long stages take, from the benchmark file alone: for timeouts, and for whoever waits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import cast

from streamgauge.base.live import about
from streamgauge.bench.faults import course
from streamgauge.bench.measurements import OwnSection, RatedSection, function_of, package_of
from streamgauge.bench.measurements.catchup.section import STAYS_S, Catchup
from streamgauge.bench.measurements.recovery.section import Recovery
from streamgauge.bench.measurements.scaling.section import Scaling
from streamgauge.bench.measurements.soak.section import Soak
from streamgauge.catalog.run_log import StageRecord
from streamgauge.catalog.stages import RELEASE, STAGES, Stage, needed_before, scopes_of, stages_of
from streamgauge.config import RELEASE_CATCHUP, RELEASE_RATE, Benchmark

#: size that is taken for a source on an object store, which is not asked whenever a DAG file is read
FAR_BYTES = 20e9
BYTES_PER_NEXMARK_EVENT = 250
_NEXMARK_QUERIES = 24
#: states of a stage of which nothing is left
ENDED = ("done", "failed", "skipped")
#: seconds of the trial that compares answers on a part of the machine
CHECK_S = 10.0


@dataclass(frozen=True)
class Pace:
    """Speeds at which a host does its work, from which estimates follow."""

    start_s: float  # start of a Spark or Flink system with its driver
    bytes_per_s: float  # rate at which a source is read, sorted and written again
    warm: float  # part of search.warmup_seconds that a system needs
    windows: float  # lengths of windows that a ladder takes
    change_s: float  # from one stream to another, in cells that share a process
    blocks: float  # part of search.blocks that are measured
    loads: float  # part of the loads of a proof that are tried
    trials: float  # trials at each load, in lengths of search.recovery_seconds
    run: float  # lengths of latency.seconds that a latency run takes
    nexmark_query_s: float  # a query in one mode, besides its events
    nexmark_events_per_s: float


#: a host slower than any that was tried, where everything takes as long as it may: for timeouts
LONGEST = Pace(60.0, 2e6, 1.0, 32.0, 20.0, 2.0, 1.0, 3.0, 1.0, 10.0, 2_000.0)
#: fitted to runs of configs/ on two cores: for people
USUAL = Pace(12.0, 20e6, 0.8, 22.0, 3.5, 1.2, 0.5, 0.8, 2.0, 4.0, 20_000.0)


def stage_seconds(stage: Stage, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
    """Estimates the seconds that one task of the stage takes."""
    if stage.is_measurement:
        return _measurement_seconds(stage.name, benchmark, pace)
    match stage.name:
        case "turns":
            sizes = [len(group) for group in benchmark.sharing(benchmark.all_cells())]
            latency_s = len(benchmark.all_cells()) * latency_seconds(benchmark, pace, warm=True)
            turns = 2 * benchmark.latency.blocks * sum(size for size in sizes if size > 1)
            turns_s = turns * (benchmark.latency.turn_seconds + 0.75 * pace.change_s)
            return latency_s + turns_s + sum(search_seconds(benchmark, pace, size) for size in sizes)
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


def _measurement_seconds(name: str, benchmark: Benchmark, pace: Pace) -> float:
    """Estimates the seconds of a measurement of a cell; for one of a package, its section tells them."""
    section = benchmark.sections[name]
    if isinstance(section, OwnSection):
        return pace.start_s + pace.warm * benchmark.search.warmup_seconds + section.seconds
    seconds = function_of(package_of(name).seconds, name)
    return cast(Callable[[Benchmark, Pace], float], seconds)(benchmark, pace)


def search_seconds(benchmark: Benchmark, pace: Pace = LONGEST, cells: int = 1) -> float:
    """Estimates the seconds of the search for one cell, or for so many that share their processes."""
    settings = benchmark.search
    in_blocks = 2 * pace.blocks * settings.blocks if cells > 1 else 0.0
    changes = pace.windows / 6 + 0.75 * in_blocks if cells > 1 else 0.0  # every second window has another stream
    ladders_s = cells * ((pace.windows + 2.5 * in_blocks) * settings.window_seconds + changes * pace.change_s)
    trial = pace.trials * (settings.recovery_seconds + settings.max_age.seconds)
    proofs_s = cells * 2 * pace.loads * settings.proof_steps * trial
    process_s = pace.start_s + pace.warm * settings.warmup_seconds + ladders_s + proofs_s
    return pace.start_s + settings.processes * process_s


def latency_seconds(benchmark: Benchmark, pace: Pace = LONGEST, *, warm: bool = False) -> float:
    """Estimates the seconds of the latency runs of one cell. warm: the process of its search goes on."""
    settings = benchmark.latency
    runs = len(settings.fractions) + len(settings.rates)
    before_s = 0.0 if warm else pace.start_s + pace.warm * benchmark.search.warmup_seconds
    return before_s + runs * (pace.run * settings.seconds + pace.start_s)


def soak_seconds(benchmark: Benchmark, pace: Pace = LONGEST) -> float:
    section = benchmark.sections["soak"]
    assert isinstance(section, Soak)
    return pace.start_s + pace.warm * benchmark.search.warmup_seconds + section.seconds + pace.start_s


def scaling_seconds(benchmark: Benchmark, pace: Pace = LONGEST) -> float:
    """Estimates the seconds in which a cell's rates on parts of the machine are measured."""
    section, search = benchmark.sections["scaling"], benchmark.search
    assert isinstance(section, Scaling)
    windows_s = 0.5 * search.window_seconds + max(2 * search.window_seconds, 0.75 * search.max_age.seconds)
    visits = len(section.parts) * section.blocks
    warm_s = pace.start_s + pace.warm * search.warmup_seconds
    if section.setting is not None:  # each visit starts a driver and a system, and so does the look at the answers
        longer = 4 if pace == LONGEST else 2  # it has windows of more rows, most of them where a value is faster
        return (visits + 1) * (pace.start_s + warm_s) + longer * visits * windows_s + CHECK_S + pace.start_s
    return pace.start_s + warm_s + visits * (windows_s + pace.change_s) + CHECK_S + pace.start_s


def catchup_seconds(benchmark: Benchmark, pace: Pace = LONGEST) -> float:
    """Estimates the seconds in which one cell catches up so many times.

    A system whose rate is named is taken for one that carries twice as much.
    """
    section = benchmark.sections["catchup"]
    assert isinstance(section, Catchup)
    before_s = pace.start_s + pace.warm * benchmark.search.warmup_seconds
    return pace.start_s + section.repeats * (before_s + _until_live_s(benchmark, section, pace))


def _until_live_s(benchmark: Benchmark, section: Catchup, pace: Pace) -> float:
    """Estimates the seconds of one repeat."""
    fraction = section.fraction if section.rate is None else 0.5
    most = section.most_s if pace == LONGEST else min(section.most_s, section.behind_s * fraction / (1 - fraction))
    return most + benchmark.search.max_age.seconds + STAYS_S


def recovery_seconds(benchmark: Benchmark, pace: Pace = LONGEST) -> float:
    """Estimates the seconds of a cell's trials with faults; at the longest, each leaves the system to be replaced.

    A trial ends once the system was back for a while. It is away for as long as its link is, or as its settings tell,
    else as it takes to start.
    """
    section = benchmark.sections["recovery"]
    assert isinstance(section, Recovery)
    before_s = pace.start_s + pace.warm * benchmark.search.warmup_seconds
    systems = len(section.checkpoint_intervals) or 1
    if pace == LONGEST:
        declared = [one.striking_s for one in benchmark.systems]
        striking_s = sum(max((one.get(fault, 0.0) for one in declared), default=0.0) for fault in section.faults)
        each_s = len(section.faults) * (before_s + section.seconds) + striking_s
        return systems * (pace.start_s + section.repeats * each_s)
    whole_s = sum(section.strikes_s) / 2 + course.watched_s(benchmark.search.max_age.seconds)
    usual = {"cut": section.cut_seconds}
    away = [
        system.away_s.get(fault, usual.get(fault, pace.start_s))
        for system in benchmark.systems
        for fault in section.faults
    ]
    trials_s = sum(min(section.seconds, whole_s + away_s) for away_s in away) / max(1, len(benchmark.systems))
    return systems * (pace.start_s + before_s + section.repeats * trials_s)


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
    rounds = len(_pairs(benchmark)) * (settings.repetitions + settings.reruns * again)
    rounds_s = rounds * (_fixed_round_seconds(benchmark, pace) + _ladder_round_seconds(benchmark, pace))
    beside = [_measurement_seconds(name, benchmark, pace) for name in settings.beside]
    searches = sum(not isinstance(benchmark.sections[name], RatedSection) for name in settings.beside)
    once = 2 * len(_pairs(benchmark)) * (sum(beside) + searches * search_seconds(benchmark, pace))
    return pace.start_s + answers + rounds_s + once


def _pairs(benchmark: Benchmark) -> set[tuple[str, str]]:
    """Experiments and workloads that a release check measures of each side."""
    return {(cell.experiment, cell.workload) for cell in benchmark.all_cells()}


def _fixed_round_seconds(benchmark: Benchmark, pace: Pace) -> float:
    """Estimates the seconds of baseline, candidate, baseline at a fixed rate; 0 if only rates are compared.

    A process takes as long as its start once more, to catch up after its warm-up, to be checked and to end.
    """
    settings = benchmark.release
    if settings is None or not set(settings.tolerance) - {RELEASE_RATE}:
        return 0.0
    catchup = benchmark.catchup if RELEASE_CATCHUP in settings.tolerance else None
    caught_s = _until_live_s(benchmark, catchup, pace) if catchup else 0.0
    return 3 * (2 * pace.start_s + settings.warmup_seconds + settings.seconds + caught_s)


def _ladder_round_seconds(benchmark: Benchmark, pace: Pace) -> float:
    """Estimates the seconds of a ladder and a trial of baseline and candidate; 0 if no rates are compared."""
    settings = benchmark.release
    if settings is None or RELEASE_RATE not in settings.tolerance:
        return 0.0
    alone = benchmark.search.model_copy(update={"processes": 1, "proof_steps": 0})
    ladder_s = search_seconds(benchmark.model_copy(update={"search": alone}), pace)
    return 2 * (ladder_s + settings.seconds)


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
                of_cell = next(one for one in STAGES if one.name == "search")
                ended = [cell for cell in cells if states.get((of_cell.name, *cell.values())) in ENDED]
                to_measure = [cell for cell in cells if cell not in ended and not skipped(of_cell, cell)]
                expected_s *= len(to_measure) / max(1, len(cells))
            seconds += max(0.0, expected_s - running_s) if state == "started" else expected_s
    return seconds


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
