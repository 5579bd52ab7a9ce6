"""Checks the parts of a benchmark file that concern measuring, before anything starts."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.config import Benchmark
from streamgauge.driver.ids import KINDS
from streamgauge.driver.system import make_system
from streamgauge.workloads import Spec

log = logging.getLogger("streamgauge")


def check_names(benchmark: Benchmark) -> None:
    """Checks queries and their columns, without importing a user's module. Raises UserError."""
    for workload in benchmark.workloads:
        Spec.of(workload, benchmark.source.columns)
    columns = benchmark.source.columns
    for name in benchmark.replay.ids or ():
        if columns.get(name) not in KINDS:
            allowed = ", ".join(column for column, kind in columns.items() if kind in KINDS) or "none"
            raise UserError(f"replay.ids: found {name!r}, allowed: columns of type {' or '.join(KINDS)}: {allowed}")


def check(benchmark: Benchmark) -> None:
    """Checks names, that engines are installed and imported, as is the verdict, and that services answer.

    Raises UserError.
    """
    from streamgauge.search.verdict import load

    check_names(benchmark)
    for system in benchmark.systems:
        system.check_installed()
        adapter = make_system(system, Path())
        getattr(adapter, "check", lambda: None)()
    load(benchmark.search.verdict)


def allowed_cpus(cpus: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The CPUs of these that this process may use; None for none. The log tells which ones are missing."""
    if not cpus:
        return None
    found = tuple(cpu for cpu in cpus if cpu in os.sched_getaffinity(0))
    if found != cpus:
        log.info("CPUs %s are not all available: %s", cpus, f"pinned to {found}" if found else "not pinned")
    return found or None
