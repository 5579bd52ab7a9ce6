"""Changes how many workers a system has, or what else of its numbers a measurement scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from streamgauge.base.errors import UserError
from streamgauge.config.benchmark import Benchmark
from streamgauge.config.mistakes import check
from streamgauge.config.systems import CHECKPOINT

M = TypeVar("M", bound=BaseModel)
#: settings that are numbers of workers, as the scalability law takes them
WORKERS = ("parallelism", "master")
#: shortest interval of checkpoints that Flink takes (CheckpointConfig)
LEAST_MS = 10
#: the one setting that may be changed and is none of a system
PARTITIONS = "replay.partitions"


def settings_of(benchmark: Benchmark, system: str) -> list[str]:
    """Names of the settings of that system, and of the replay, in which another number may stand."""
    names = [*benchmark.system(system).numbers(1)]
    return names if benchmark.replay.remote else [*names, PARTITIONS]


def with_setting(benchmark: Benchmark, system: str, setting: str, value: int) -> Benchmark:
    """Returns the benchmark with that number in one of the `settings_of` the system.

    Raises UserError if the number is not allowed there, or would change nothing.
    """
    replay, model = benchmark.replay, benchmark.system(system)
    if setting == PARTITIONS:
        replay = _changed(replay, {"partitions": value})
    else:
        model = _changed(model, model.numbers(value)[setting])
    queues, workers, cpus = replay.partitions, model.workers or 0, len(model.cpus or ())
    longest_ms = int(1000 * benchmark.search.window_seconds)  # two are then due in a window of twice that length
    wrong = ""
    if queues < replay.shares:
        wrong = f"at least replay.processes: {replay.shares}"
    elif setting == PARTITIONS and workers > queues:
        wrong = f"at least the workers of systems.{system}: {workers}"
    elif setting in WORKERS and workers > queues:
        wrong = f"no more workers of systems.{system} than replay.partitions: {queues}"
    elif setting in WORKERS and 0 < cpus < workers:
        wrong = f"no more workers of systems.{system} than its cpus: {cpus}"
    elif setting == CHECKPOINT and not LEAST_MS <= value <= longest_ms:
        wrong = f"from {LEAST_MS} to search.window_seconds: {longest_ms}"
    if wrong:
        raise UserError(f"scaling.values: found {value}, allowed: {wrong}")
    systems = tuple(model if one.name == system else one for one in benchmark.systems)
    return benchmark.model_copy(update={"replay": replay, "systems": systems})


def why_not(benchmark: Benchmark, system: str, setting: str, value: int) -> str:
    """Says why that system cannot have the value; empty if it can."""
    if setting not in settings_of(benchmark, system):
        return f"systems.{system} has no number in {setting}"
    try:
        with_setting(benchmark, system, setting, value)
    except UserError as problem:
        return str(problem)
    return ""


def _changed(model: M, keys: Mapping[str, object]) -> M:
    return check(type(model), {**model.model_dump(), **keys}, lambda _: "scaling.values")
