"""The example's records, for the tests of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.results.report.run_records import Records
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


@pytest.fixture
def records(store: Store, tmp_path: Path) -> Records:
    made = benchmark(tmp_path / "source.csv", **CELLS)
    record_cells(record_example(store, made))
    return Records(made, store, RUN)
