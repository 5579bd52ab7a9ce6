"""Changes how many workers a system has, or what else of its numbers a measurement scales."""

from __future__ import annotations

import re
from typing import TypeVar

from pydantic import BaseModel

from streamgauge.base.errors import UserError
from streamgauge.config.benchmark import Benchmark
from streamgauge.config.mistakes import check

M = TypeVar("M", bound=BaseModel)
#: settings that are numbers of workers, as the scalability law takes them
WORKERS = ("parallelism", "master")
#: the one setting that may be changed and is none of a system
PARTITIONS = "replay.partitions"
#: the threads of local[2], or the executors of local-cluster[2,1,1024]
_LOCAL = re.compile(r"(local(?:-cluster)?\[)\d+")


def settings_of(benchmark: Benchmark, system: str) -> list[str]:
    """Names of the settings of that system, and of the replay, in which another number may stand."""
    model = benchmark.system(system)
    workers, environment = (getattr(model, name, None) for name in ("parallelism", "environment"))
    names = ["parallelism"] if isinstance(workers, int) else []
    names += ["master"] if _LOCAL.match(str(getattr(model, "master", ""))) else []
    if isinstance(environment, dict):
        names += [f"environment.{name}" for name, value in environment.items() if str(value).isdecimal()]
    return names if benchmark.replay.remote else [*names, PARTITIONS]


def with_setting(benchmark: Benchmark, system: str, setting: str, value: int) -> Benchmark:
    """Returns the benchmark with that number in one of the `settings_of` the system.

    Raises UserError if the number is not allowed there, or would change nothing.
    """
    replay, model = benchmark.replay, benchmark.system(system)
    group, _, name = setting.partition(".")
    if setting == PARTITIONS:
        replay = _changed(replay, "partitions", value)
    elif name:
        model = _changed(model, group, {**getattr(model, group), name: str(value)})
    else:
        old = getattr(model, setting)
        model = _changed(model, setting, _LOCAL.sub(rf"\g<1>{value}", old) if isinstance(old, str) else value)
    queues, workers, cpus = replay.partitions, model.workers or 0, len(model.cpus or ())
    wrong = ""
    if queues < replay.shares:
        wrong = f"at least replay.processes: {replay.shares}"
    elif setting == PARTITIONS and workers > queues:
        wrong = f"at least the workers of systems.{system}: {workers}"
    elif setting in WORKERS and workers > queues:
        wrong = f"no more workers of systems.{system} than replay.partitions: {queues}"
    elif setting in WORKERS and 0 < cpus < workers:
        wrong = f"no more workers of systems.{system} than its cpus: {cpus}"
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


def _changed(model: M, key: str, value: object) -> M:
    return check(type(model), {**model.model_dump(), key: value}, lambda _: "scaling.values")
