"""Tests that the folder and the page of a DAG run follow from the names that Airflow has."""

from __future__ import annotations

import pytest

from streamgauge.app.airflow import run_names


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        (run_names.RUN, "runs/my_flights-manual__2026-03-01T00-00-00-00-00/index.html"),
        (run_names.NIGHT, "runs/my_flights-nightly-manual__2026-03-01T00-00-00-00-00/index.html"),
        (run_names.RELEASE, "runs/my_flights-release-manual__2026-03-01T00-00-00-00-00/release.html"),
    ],
)
def test_each_kind_of_dag_has_folders_of_its_own(kind: run_names.Kind, page: str) -> None:
    dag = run_names.dag_id(kind, "my_flights")
    assert run_names.page(dag, "manual__2026-03-01T00:00:00+00:00") == page


def test_a_dag_of_others_has_no_page() -> None:
    with pytest.raises(KeyError):
        run_names.page("etl_daily", "1")
