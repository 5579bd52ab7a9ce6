"""Imports run downwards: the test walks them."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from streamgauge.config.systems import ENGINES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "streamgauge"
#: rooms from the ground up; a room may import itself and what stands before it
FLOORS = [
    "base",
    "config",
    "workloads",
    "disorder",
    "metrics",
    "search",
    "oracle",
    "catalog",
    "nexmark",
    "driver",
    "text",
    "index",
    "measure",
    "spark",
    "engines",
    "answers",
    "judge",
    "report",
    "airflow",
    "cli",
]
HEAVY = {"pyspark", "great_expectations", "airflow", "plotly", "jinja2", "selenium", "duckdb", "polars", "sqlalchemy"}
ALLOWED_HEAVY = {
    "workloads": {"pyspark"},
    "metrics": {"pyspark"},
    "oracle": {"duckdb"},
    "index": {"sqlalchemy"},
    "spark": {"pyspark", "great_expectations"},
    "engines": {"pyspark"},
    "answers": {"pyspark"},
    "report": {"plotly", "jinja2"},
    "airflow": {"airflow"},
}
#: rooms of pure functions and of files: they know no network
QUIET = {"base", "config", "disorder", "search", "catalog"}
NETWORK = {"socket", "socketserver", "http", "urllib", "requests"}
#: they name the machine in a record; they do not talk over the network
SOCKET_ALLOWED = {"run_log.py"}
MOST_LINES = 350


def room(module: str) -> str:
    """The folder of a module below the package; "" for the package itself."""
    return next(iter(module.split(".")[1:]), "")


def imports(file: Path) -> list[str]:
    """Dotted names that a module imports at run time; a name from a module stands behind the module's own."""
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
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    """The dotted name of a module; a package has that of its folder."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_run_downwards(file: Path) -> None:
    here = room(name_of(file))
    for module in imports(file):
        top = module.split(".")[0]
        if top == "streamgauge" and (there := room(module)) in FLOORS:
            assert FLOORS.index(there) <= FLOORS.index(here), f"{here} imports {module}, which stands above it"
        assert top not in HEAVY - ALLOWED_HEAVY.get(here, set()), f"{here} imports {top}"
        assert top not in {"jobs", "dags", "tests"}, f"{module} is not for the library"
        if here in QUIET and file.name not in SOCKET_ALLOWED:
            talks = top in NETWORK and not module.startswith("urllib.parse")  # which only takes texts apart
            assert not talks, f"{here} imports {top}"


def test_an_engine_is_known_in_its_own_folder_and_in_one_row() -> None:
    engines = {folder.name for folder in (PACKAGE / "engines").iterdir() if (folder / "__init__.py").exists()}
    assert engines == set(ENGINES)
    for file in FILES:
        text = file.read_text()
        assert "engine ==" not in text, f"{file} asks which engine it is; see `Engine` in driver/system.py"
        inside = file.is_relative_to(PACKAGE / "engines" / "flink")
        assert inside or not any(module.startswith("streamgauge.engines.flink") for module in imports(file)), file


def test_every_room_has_its_place_and_no_module_is_loose() -> None:
    folders = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    assert folders == set(FLOORS)
    assert [file.name for file in PACKAGE.glob("*.py")] == ["__init__.py"]


def test_modules_make_no_circle() -> None:
    modules = {name_of(file) for file in FILES}
    graph = {}
    for file in FILES:
        found = {module if module in modules else module.rpartition(".")[0] for module in imports(file)}
        graph[name_of(file)] = (found & modules) - {name_of(file)}
    list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_a_file_can_be_read_in_one_sitting(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= MOST_LINES


def test_no_job_bears_the_name_of_a_standard_module() -> None:
    import sys

    for file in (ROOT / "jobs").glob("*.py"):
        assert file.stem not in sys.stdlib_module_names


def test_dags_and_jobs_are_thin() -> None:
    for file in [*(ROOT / "jobs").glob("*.py"), *(ROOT / "dags").glob("*.py")]:
        assert len(file.read_text().splitlines()) <= 40, file


def test_each_stage_has_its_job() -> None:
    from streamgauge.catalog.stages import BY_NAME

    jobs = {file.stem for file in (ROOT / "jobs").glob("*.py")}
    assert set(BY_NAME) == jobs
