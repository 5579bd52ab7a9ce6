"""Builds all DAGs of a folder of benchmark files, for a DAG file of two lines (docs/airflow.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from airflow.sdk import DAG

from streamgauge.app.airflow import benchmarks, factory, release_dag
from streamgauge.config import Benchmark


def dags(configs: Path | str = factory.CONFIGS) -> dict[str, DAG]:
    """Maps the id of each DAG to it; what does not load, or cannot be built, is left out, see `check`."""
    return {dag.dag_id: dag for dag in _built(Path(configs))[0]}


def check(configs: Path | str = factory.CONFIGS) -> None:
    """Ends with one line about all that `dags` leaves out, which Airflow shows as an import error."""
    _, problems = _built(Path(configs))
    if problems:
        raise SystemExit("; ".join(problems))


def _built(configs: Path) -> tuple[list[DAG], list[str]]:
    """Builds the DAGs of all files; also returns one line for each file or DAG with which that fails."""
    loaded, problems = benchmarks.load_all(benchmarks.files_in(configs))
    built: list[DAG] = []
    for file, benchmark in loaded.items():
        builders: dict[str, Callable[[Benchmark, Path], DAG]] = {"benchmark": factory.build}
        if benchmark.nightly:
            builders["nights"] = partial(factory.build, nightly=True)
        if benchmark.release and benchmark.systems:
            builders["release check"] = release_dag.build
        for name, build in builders.items():
            try:
                built.append(build(benchmark, file))
            except Exception as problem:  # Airflow raises many kinds, such as for a time that is out of its range
                why = " ".join(f"{type(problem).__name__}: {problem}".split())
                problems.append(f"{file}: the DAG of its {name} cannot be built: {why}")
    return built, problems
