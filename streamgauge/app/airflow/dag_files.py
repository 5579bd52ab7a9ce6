"""Builds all DAGs of a folder of benchmark files, for a DAG file of two lines (docs/airflow.md)."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG

from streamgauge.app.airflow import factory, home, release_dag


def dags(configs: Path | str = factory.CONFIGS) -> dict[str, DAG]:
    """Maps the id of each DAG to it; files that do not load are left out, see `check`."""
    made: list[DAG] = []
    for file, benchmark in factory.load_all(home.benchmark_files(Path(configs)))[0].items():
        made.append(factory.build(benchmark, file))
        if benchmark.nightly:
            made.append(factory.build(benchmark, file, nightly=True))
        if benchmark.release and benchmark.systems:
            made.append(release_dag.build(benchmark, file))
    return {dag.dag_id: dag for dag in made}


def check(configs: Path | str = factory.CONFIGS) -> None:
    """Ends with one line about all files that do not load, which Airflow shows as an import error."""
    _, problems = factory.load_all(home.benchmark_files(Path(configs)))
    if problems:
        raise SystemExit("; ".join(problems))
