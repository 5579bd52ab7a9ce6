"""Imports run downwards: the test walks them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from streamgauge.bench import measurements
from streamgauge.config.systems import ENGINES, settings_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "streamgauge"
#: wings and their rooms from the ground up; a room may import itself and what stands before it
WINGS: dict[str, tuple[str, ...]] = {
    "base": (),
    "stats": (),
    "descriptions": (),
    "config": (),
    "records": (),
    "catalog": (),
    "metrics": (),
    "streams": ("lateness", "kafka", "disorder", "advice", "nexmark", "sources", "text", "stages"),
    "bench": (
        "workloads", "search", "oracle", "driver", "publish", "compare", "faults", "measure", "engines", "answers",
        "measurements",
    ),
    "results": ("index", "exchange", "report"),
    "app": ("nights", "gate", "airflow", "services", "cli", "python"),
}  # fmt: skip
#: files of a measurement (bench/measurements/NAME/), by their role: each stands where its role stands
ROLES = {"": "config", "section": "config", "record": "records", "stage": "bench.measure", "page": "results.report"}
MEASUREMENTS = "bench.measurements"
FLOORS = [f"{wing}.{room}" if room else wing for wing, rooms in WINGS.items() for room in (rooms or ("",))]
HEAVY = {"pyspark", "great_expectations", "airflow", "plotly", "jinja2", "selenium", "duckdb", "polars", "sqlalchemy"}
ALLOWED_HEAVY = {
    "metrics": {"pyspark"},
    "bench.oracle": {"duckdb"},
    "results.index": {"sqlalchemy"},
    "streams.stages": {"pyspark", "great_expectations"},
    "bench.engines": {"pyspark"},
    "bench.answers": {"pyspark"},
    "results.report": {"plotly", "jinja2"},
    "app.airflow": {"airflow"},
}
#: rooms of pure functions and of files: they know no network
QUIET = {"base", "lateness", "descriptions", "config", "records", "disorder", "search", "catalog"}
NETWORK = {"socket", "socketserver", "http", "urllib", "requests"}
#: they name the machine in a record; they do not talk over the network
SOCKET_ALLOWED = {"run_log.py"}
MOST_LINES = 350


def room(module: str) -> str:
    """The room of a module, such as "bench.driver"; the wing itself for a file that lies in no room, "" for none.

    The file of a measurement has the room of its role.
    """
    if f"{module}.".startswith(f"streamgauge.{MEASUREMENTS}."):
        return ROLES.get(".".join(module.split(".")[4:5]), ROLES[""])
    parts = module.split(".")[1:3]
    if not parts:
        return ""
    return ".".join(parts) if parts[-1] in WINGS.get(parts[0], ()) else parts[0]


def floor(place: str) -> int:
    """Returns how far up a room stands; a file in no room stands on the topmost floor of its wing."""
    wing = place.split(".")[0]
    return max(n for n, one in enumerate(FLOORS) if one == place or (place == wing and one.split(".")[0] == wing))


@cache
def nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text())))


@cache
def imports(file: Path) -> list[str]:
    """Dotted names that a module imports at run time; a name from a module stands behind the module's own."""
    typing_only = {
        id(inner)
        for node in nodes(file)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    names = []
    for node in nodes(file):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    """The dotted name of a module; a package has that of its folder."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def wrong_imports(file: Path) -> Iterator[str]:
    here = room(name_of(file)) or FLOORS[-1]  # the package itself offers the uppermost room
    for module in imports(file):
        top = module.split(".")[0]
        if top == "streamgauge" and (there := room(module)).split(".")[0] in WINGS and floor(there) > floor(here):
            yield f"{file}: {here} imports {module}, which stands above it"
        if top in HEAVY - ALLOWED_HEAVY.get(here, set()):
            yield f"{file}: {here} imports {top}"
        if top in {"jobs", "dags", "tests"}:
            yield f"{file}: {module} is not for the library"
        if here in QUIET and file.name not in SOCKET_ALLOWED:
            talks = top in NETWORK and not module.startswith("urllib.parse")  # which only takes texts apart
            if talks:
                yield f"{file}: {here} imports {top}"


def test_imports_run_downwards() -> None:
    assert [wrong for file in FILES for wrong in wrong_imports(file)] == []


def test_streams_needs_no_benchmark_file() -> None:
    used = {name for file in FILES if room(name_of(file)).startswith("streams") for name in imports(file)}
    assert not [name for name in used if name.startswith(("streamgauge.config", "streamgauge.catalog.stages"))]


def test_a_measurement_s_files_have_roles_and_it_names_each_part_where_its_role_stands() -> None:
    folders = [file.parent for file in (PACKAGE / "bench" / "measurements").glob("*/__init__.py")]
    assert {folder.name for folder in folders} == set(measurements.MEASUREMENTS.built_in)
    for folder in folders:
        assert {file.stem.replace("__init__", "") for file in folder.glob("*.py")} <= set(ROLES), folder
        declared = measurements.package_of(folder.name)
        places = {"section": declared.section, "stage": declared.measure, "page": declared.blocks}
        assert {role: room(place.replace(":", ".")) for role, place in places.items()} == {r: ROLES[r] for r in places}
        assert {room(place.replace(":", ".")) for place in declared.records.values()} == {"records"}


#: who may import an engine besides its own folder, and why
ALLOWED_ENGINES = {
    ("bench.answers", "spark"): "asks finite suites within one Spark session, not over the wire",
}
#: who may name an engine as text, and why
ALLOWED_NAMES = {
    "config/systems.py": "the one table",
    "bench/measure/calibrate.py": "calibrates the instrument, which is the engine known",
    "bench/answers/systems.py": "names the suite's systems, which `--system` takes",
    "app/cli/nexmark.py": "one of those is the default",
    # the Spark on which our own stages run, which is no engine under test
    "app/airflow/home.py": "a connection's type",
    "base/environment.py": "a version of our own software",
    "results/report/machine.py": "the log of a stage",
    "app/stage_job.py": "the log of a stage",
    "streams/stages/validate.py": "an engine of Great Expectations",
}


def test_an_exception_goes_with_what_it_was_made_for() -> None:
    for name in ALLOWED_NAMES:
        assert set(ENGINES.built_in) & set(constants(PACKAGE / name)), f"{name} names no engine"
    for there, engine in ALLOWED_ENGINES:
        mine = f"streamgauge.bench.engines.{engine}"
        assert any(
            module.startswith(mine) for file in FILES if room(name_of(file)) == there for module in imports(file)
        )


@cache
def constants(file: Path) -> list[object]:
    return [node.value for node in nodes(file) if isinstance(node, ast.Constant)]


def folder_of(engine: str) -> Path:
    return PACKAGE / "bench" / "engines" / engine


def test_the_table_of_engines_names_every_folder_and_nothing_else_does() -> None:
    assert {place.parent.name for place in (PACKAGE / "bench" / "engines").glob("*/settings.py")} == set(
        ENGINES.built_in
    )
    for engine, model in ENGINES.built_in.items():
        assert str(model).startswith(f"streamgauge.bench.engines.{engine}.settings:")
        assert str(settings_of(engine).adapter).startswith(f"streamgauge.bench.engines.{engine}.")


@pytest.mark.parametrize("engine", ENGINES.built_in)
def test_an_engine_is_imported_in_its_own_folder_alone(engine: str) -> None:
    for file in FILES:
        if file.is_relative_to(folder_of(engine)) or (room(name_of(file)), engine) in ALLOWED_ENGINES:
            continue
        others = [module for module in imports(file) if module.startswith(f"streamgauge.bench.engines.{engine}")]
        assert not others, f"{file} imports {others[0]}"


@pytest.mark.parametrize("engine", ENGINES.built_in)
def test_an_engine_is_named_in_its_own_folder_and_in_one_row(engine: str) -> None:
    for file in FILES:
        if file.is_relative_to(folder_of(engine)) or str(file.relative_to(PACKAGE)) in ALLOWED_NAMES:
            continue
        assert engine not in constants(file), (
            f"{file} names the engine {engine}; its settings or its adapter should say it"
        )


def test_nobody_asks_which_engine_it_is() -> None:
    """A system's settings say what differs; see config/systems.py."""
    choices = (
        (file, part)
        for file in FILES
        for node in nodes(file)
        if isinstance(node, ast.Compare | ast.match_case | ast.Match)
        for part in ast.walk(node)
    )
    asked = {f"{file}:{p.lineno}" for file, p in choices if isinstance(p, ast.Attribute) and p.attr == "engine"}
    assert asked == set()


LOAD = """
import sys
from streamgauge.bench import measurements
from streamgauge.config.systems import ENGINES, settings_of
for engine in ENGINES.built_in:
    settings_of(engine)
print(*[name for name in sys.modules if name.startswith("streamgauge.bench.engines.") or name in ("pyspark", "duckdb")])
"""


def test_checking_a_file_loads_of_an_engine_its_settings_alone() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True, cwd=ROOT)
    wanted = {f"streamgauge.bench.engines.{engine}" for engine in ENGINES.built_in}
    texts = "streamgauge.bench.engines.job.templates"  # of its settings
    assert set(done.stdout.split()) == wanted | {f"{name}.settings" for name in wanted} | {texts}


ALONE = """
import sys
from streamgauge.streams.stages import advise, analyze, generate, ingest, reach
print(*[name for name in sys.modules if name.startswith(("streamgauge.config", "streamgauge.bench"))])
"""


def test_a_stream_is_made_without_a_benchmark_file() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []


STARTERS = {"base/processes.py"}


def test_processes_are_started_in_one_place() -> None:
    """The others use Leader or Child of base/processes.py."""
    calls = ((file, node.func) for file in FILES for node in nodes(file) if isinstance(node, ast.Call))
    starts = {file for file, call in calls if isinstance(call, ast.Attribute) and call.attr == "Popen"}
    assert {str(file.relative_to(PACKAGE)) for file in starts} == STARTERS


def test_every_room_has_its_place_and_no_module_is_loose() -> None:
    assert {file.parent.name for file in PACKAGE.glob("*/__init__.py")} == set(WINGS)
    for wing, rooms in WINGS.items():
        folders = {file.parent.name for file in (PACKAGE / wing).glob("*/__init__.py")}
        assert not rooms or folders == set(rooms), wing
    assert [file.name for file in PACKAGE.glob("*.py")] == ["__init__.py"]


def test_modules_make_no_circle() -> None:
    modules = {name_of(file) for file in FILES}
    graph = {}
    for file in FILES:
        imported = {module if module in modules else module.rpartition(".")[0] for module in imports(file)}
        graph[name_of(file)] = (imported & modules) - {name_of(file)}
    list(TopologicalSorter(graph).static_order())


def test_a_file_can_be_read_in_one_sitting() -> None:
    assert [file for file in FILES if len(file.read_text().splitlines()) > MOST_LINES] == []


def test_no_job_bears_the_name_of_a_standard_module() -> None:
    for file in (ROOT / "jobs").glob("*.py"):
        assert file.stem not in sys.stdlib_module_names


def test_dags_and_jobs_are_thin() -> None:
    for file in [*(ROOT / "jobs").glob("*.py"), *(ROOT / "dags").glob("*.py")]:
        assert len(file.read_text().splitlines()) <= 40, file


def test_each_stage_has_its_job() -> None:
    from streamgauge.catalog.stages import BY_NAME

    jobs = {file.stem for file in (ROOT / "jobs").glob("*.py")}
    assert {*(stage.job for stage in BY_NAME.values()), "several"} == jobs  # several run stages in one session
