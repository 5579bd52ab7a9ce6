"""Tests that an extra is enough for its purpose: jobs run without Airflow, the ground floor without any extra."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.extras import blocker, distributions, modules
from tests.test_floors import FILES, PACKAGE, imports

#: the DAGs' own parsing is in tests/airflow/test_dags.py
JOBS = """
from importlib import import_module
from pathlib import Path
from runpy import run_path

for file in sorted(Path("streamgauge").rglob("*.py")):
    if not {"airflow", "otel.py", "__main__.py"} & set(file.parts):
        import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))
for file in sorted(Path("jobs").glob("*.py")):
    sys.argv = [str(file), "--help"]
    try:
        run_path(str(file), run_name="__main__")
    except SystemExit as end:
        assert end.code == 0
"""
CHECK = """
import streamgauge.bench.driver.process
from streamgauge.app.cli import main
sys.argv = ["streamgauge", "check", "configs/flights.yaml"]
main()
"""


def test_an_extra_brings_its_own_and_not_the_other_s() -> None:
    assert {"pyspark", "great-expectations", "py4j"} <= distributions("jobs") - distributions("airflow")
    assert {"apache-airflow-core"} <= distributions("airflow") - distributions("jobs")
    assert not {"pyspark", "apache-airflow", "scipy"} & distributions()


@pytest.mark.parametrize(("extras", "program"), [(["jobs"], JOBS), ([], CHECK)], ids=["jobs", "ground floor"])
def test_what_it_is_for_runs_where_nothing_else_is(extras: list[str], program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", blocker(*extras) + program], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env=os.environ | {"STREAMGAUGE_ARTIFACTS": str(tmp_path)},  # `make bench` may have built streams here
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def not_brought(file: Path) -> Iterator[str]:
    here = file.relative_to(PACKAGE)
    special = {"otel.py": ("otel",), "bundle.py": ("jobs", "paper")}
    rooms = {"airflow": ("airflow",), **dict.fromkeys(("kafka", "publish", "services"), ("jobs", "kafka"))}
    extras = rooms.get(here.parts[min(1, len(here.parts) - 1)]) or special.get(here.name, ("jobs",))
    for module in imports(file):
        brought = modules().get(module.partition(".")[0])  # None: Python's own
        if brought is not None and not brought & distributions(*extras):
            yield f"{file}: {module} does not come with {extras}"


def test_what_a_file_imports_late_comes_with_its_extra() -> None:
    assert [missing for file in FILES for missing in not_brought(file)] == []
