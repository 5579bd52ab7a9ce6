"""Checks the parts of a benchmark file that concern measuring, before anything starts."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.ids import KINDS
from streamgauge.bench.driver.system import make_system
from streamgauge.bench.measurements import MEASUREMENTS, OwnSection, function_of, package_of
from streamgauge.bench.workloads import Spec
from streamgauge.config import Benchmark, Replay, System
from streamgauge.config.changing import settings_of, why_not
from streamgauge.config.measuring import VERDICTS
from streamgauge.config.metrics import SINKS
from streamgauge.config.sections import checked_section
from streamgauge.descriptions.streams import DELAYS
from streamgauge.metrics.sinks import make_sink

log = logging.getLogger("streamgauge")


def check_names(benchmark: Benchmark, *, load: bool = False) -> None:
    """Checks queries, their columns and all other names. Raises UserError.

    load: also imports what packages register, whose columns and keys are not known without.
    """
    for experiment in benchmark.experiments:
        DELAYS.check(experiment.delay.distribution, f"experiment {experiment.name}: delay.distribution")
    VERDICTS.check(benchmark.search.verdict, "search.verdict")
    for number, sink in enumerate(benchmark.metrics.sinks if benchmark.metrics else ()):
        SINKS.check(sink.type, f"metrics.sinks.{number}.type")
    for workload in benchmark.workloads:
        if workload.own_code is None or load:
            Spec.of(workload, benchmark.source.kinds)
    for name in benchmark.sections:
        MEASUREMENTS.check(name, name)
    if load:
        check_sections(benchmark)
    columns = benchmark.source.kinds
    for system in benchmark.systems:
        system.check_columns(columns)
    if benchmark.scaling is not None and benchmark.scaling.setting is not None:
        _check_setting(benchmark, benchmark.scaling.setting, benchmark.scaling.values or ())
    for name in benchmark.replay.ids or ():
        if columns.get(name) not in KINDS:
            allowed = ", ".join(column for column, kind in columns.items() if kind in KINDS) or "none"
            raise UserError(f"replay.ids: found {name!r}, allowed: columns of type {' or '.join(KINDS)}: {allowed}")


def _check_setting(benchmark: Benchmark, setting: str, values: Sequence[int]) -> None:
    """Checks that some system has the setting, and that one may have each value. Raises UserError."""
    names = {system.name: settings_of(benchmark, system.name) for system in benchmark.systems}
    if names and not any(setting in each for each in names.values()):
        allowed = ", ".join(dict.fromkeys(chain(*names.values()))) or "none"
        raise UserError(f"scaling.setting: found {setting!r}, allowed: {allowed}")
    for value in values:
        problems = [why_not(benchmark, name, setting, value) for name, each in names.items() if setting in each]
        if problems and all(problems):
            raise UserError(problems[0])


def check_sections(benchmark: Benchmark) -> None:
    """Checks the keys of packages' sections, which imports their code. Raises UserError."""
    for name, section in benchmark.sections.items():
        if isinstance(section, OwnSection):
            checked_section(name, section)
            function_of(package_of(name).measure, name)


def check_here(benchmark: Benchmark) -> None:
    """Checks names, and that engines are installed; imports nothing and asks nobody. Raises UserError."""
    check_names(benchmark)
    for system in benchmark.systems:
        system.check_installed()


def check(benchmark: Benchmark, systems: Collection[str] | None = None) -> None:
    """Checks names, that engines are installed, all code that the file names, and that services answer.

    This runs that code. systems: names of those that are measured; all if None. Raises UserError.
    """
    from streamgauge.bench.search import verdict

    check_names(benchmark, load=True)
    for number, sink in enumerate(benchmark.metrics.sinks if benchmark.metrics else ()):
        make_sink(sink, f"metrics.sinks.{number}").close()
    for system in [one for one in benchmark.systems if systems is None or one.name in systems]:
        system.check_installed()
        make_system(system, Path()).check()
    verdict.load(benchmark.search.verdict)


def named_ids(replay: Replay, system: System, columns: Mapping[str, str]) -> tuple[str, ...]:
    """The ids that the file names, or else those of the system, among the columns that are sent. Raises UserError."""
    if replay.ids and system.lines:
        raise UserError(
            f"replay.ids: found {', '.join(replay.ids)}, allowed: [], as {system.name} reads the source's lines"
        )
    named = system.ids(columns) if replay.ids is None else replay.ids
    return tuple(name for name in named if name in columns)


def allowed_cpus(cpus: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The CPUs of these that this process may use; None for none. The log tells which ones are missing."""
    if not cpus:
        return None
    usable = tuple(cpu for cpu in cpus if cpu in os.sched_getaffinity(0))
    if usable != cpus:
        log.info("CPUs %s are not all available: %s", cpus, f"pinned to {usable}" if usable else "not pinned")
    return usable or None
