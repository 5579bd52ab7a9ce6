"""Imports run downwards: the test walks them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "streamgauge"
#: rooms from the ground up; a room may import itself and what stands before it
FLOORS = [
    "ground",
    "search",
    "compare",
    "store",
    "text",
    "nexmark",
    "datasets",
    "metrics",
    "driver",
    "workloads",
    "spark",
    "link",
    "suite",
    "measure",
    "report",
    "airflow",
    "cli",
]
HEAVY = {"pyspark", "great_expectations", "airflow", "plotly", "jinja2", "selenium", "duckdb", "polars", "sqlalchemy"}
ALLOWED_HEAVY = {
    "store": {"sqlalchemy"},
    "metrics": {"pyspark"},
    "link": {"pyspark", "duckdb"},
    "suite": {"pyspark"},
    "workloads": {"pyspark"},
    "spark": {"pyspark", "great_expectations"},
    "report": {"plotly", "jinja2"},
    "airflow": {"airflow"},
}
#: models that the whole ground floor is made with
GROUND = {"config"}
NOT_ON_GROUND = {"socket", "socketserver", "http", "urllib", "requests"}
#: they name the machine in a record; they do not talk over the network
SOCKET_ALLOWED = {"runs.py"}


def room(module: str) -> str:
    parts = module.split(".")
    inside = len(parts) > 1 and parts[1] not in GROUND and (PACKAGE / parts[1]).is_dir()
    return parts[1] if inside else "ground"


def imports(file: Path) -> list[tuple[str, bool]]:
    """(module, whether at run time and at the top level) of every import."""
    tree = ast.parse(file.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node in tree.body) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(name if node.module == "streamgauge" else node.module, node in tree.body) for name in names]
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_run_downwards(file: Path) -> None:
    here = room(".".join(("streamgauge", *file.relative_to(PACKAGE).with_suffix("").parts)))
    for module, _ in imports(file):
        top = module.split(".")[0]
        if top == "streamgauge":
            there = room(module)
            assert FLOORS.index(there) <= FLOORS.index(here), f"{here} imports {module}, which stands above it"
        assert top not in HEAVY - ALLOWED_HEAVY.get(here, set()), f"{here} imports {top}"
        assert top not in {"jobs", "dags", "tests"}, f"{module} is not for the library"
        if here == "ground" and file.name not in SOCKET_ALLOWED:
            talks = top in NOT_ON_GROUND and module != "urllib.parse"  # which only takes texts apart
            assert not talks, f"the ground floor imports {top}"


def test_no_job_bears_the_name_of_a_standard_module() -> None:
    import sys

    for file in (ROOT / "jobs").glob("*.py"):
        assert file.stem not in sys.stdlib_module_names


def test_dags_and_jobs_are_thin() -> None:
    for file in [*(ROOT / "jobs").glob("*.py"), *(ROOT / "dags").glob("*.py")]:
        assert len(file.read_text().splitlines()) <= 40, file


def test_each_stage_has_its_job() -> None:
    from streamgauge.stages import BY_NAME

    jobs = {file.stem for file in (ROOT / "jobs").glob("*.py")}
    assert set(BY_NAME) == jobs
