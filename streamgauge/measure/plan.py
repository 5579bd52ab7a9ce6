"""Checks the parts of a benchmark file that concern measuring, before anything starts."""

from __future__ import annotations

from pathlib import Path

from streamgauge.config import Benchmark
from streamgauge.driver.system import engine_of, make_system
from streamgauge.workloads import Spec


def check_names(benchmark: Benchmark) -> None:
    """Checks queries, their columns and engines' names, without importing a user's module. Raises UserError."""
    for workload in benchmark.workloads:
        Spec.of(workload, benchmark.source.columns)
    for system in benchmark.systems:
        engine_of(system)


def check(benchmark: Benchmark) -> None:
    """Checks the names, and that engines and the verdict function can be imported. Raises UserError."""
    from streamgauge.search.verdict import load

    check_names(benchmark)
    for system in benchmark.systems:
        make_system(system, Path())
    load(benchmark.search.verdict)
