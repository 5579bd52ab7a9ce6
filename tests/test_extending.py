"""Follows "To add something" of docs/architecture.md, word by word, in a fresh copy of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from streamgauge.catalog.run_log import RunLog
from tests.measure.benches import CELL, EVENTS, write_bench

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()

#: asks both engines for the largest values, and checks them against what they must be
ASK_BOTH = """
from pyspark.sql import SparkSession
from streamgauge.bench import workloads
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.oracle.duck import ask
from tests.oracle.test_duck import events

spec = workloads.Spec("largest", "name", "amount", 10_000_000)
rows = events([(1, "a", 3), (2, "a", 7), (3, "b", 5), (12, "a", 1)])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
found, wanted = queries.run([spark.createDataFrame(rows)], spec).toArrow(), ask(spec, (rows,))
assert sorted(zip(found["key"].to_pylist(), found["largest"].to_pylist())) == [("a", 1), ("a", 7), ("b", 5)], found
assert checksum(found) == checksum(wanted), (found.to_pylist(), wanted.to_pylist())
assert queries.rules(spec).late_counted == "groups"
"""

DRAW = """
from streamgauge.config import DelaySpec
from streamgauge.streams.disorder.delays import table
ticks = table(DelaySpec.model_validate({"distribution": "mine:triangle", "min": "0s", "max": "1s"}), "ms").ticks
half = ticks[len(ticks) // 2]
assert abs(half - 293) <= 1, half  # 1 - sqrt(1/2) of a second
"""

COMMAND = "from streamgauge.app.cli import main; main()"
RATE = ("--rate", "500", "--seconds", "2")
#: prints what follows from a stage's row: its task, behind what it reads, and its row in the table of stages
FOLLOW = """
import sys
from pathlib import Path
from streamgauge.app.airflow.factory import build
from streamgauge.config import load
from tests.test_readme import stage_rows
dag = build(load(Path(sys.argv[1])), Path(sys.argv[1]))
task = dag.get_task("sizes")
assert task.application == str(Path("jobs/sizes.py").resolve()), task.application
before = {task.task_id.rpartition(".")[2] for task in task.get_flat_relatives(upstream=True)}
assert before == {"plan", "ingest", "generate", "validate"}, before
assert "sizes" in dag.get_task("finish").upstream_task_ids
print(stage_rows())
"""


def example(heading: str, number: int = 0) -> str:
    """The nth block of code below a heading of the page."""
    section = re.split(r"^##+ ", PAGE.split(f"### {heading}\n")[1], flags=re.MULTILINE)[0]
    blocks: list[str] = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)
    return blocks[number]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the package, with the file of a user beside it."""
    shutil.copytree(ROOT / "streamgauge", tmp_path / "streamgauge", ignore=shutil.ignore_patterns("__pycache__"))
    parts = [example(heading) for heading in ("A verdict", "A delay", "A sink")]
    (tmp_path / "mine.py").write_text("\n\n".join(parts))
    return tmp_path


def insert(file: Path, place: str, text: str, *, before: bool = False) -> None:
    """Puts text behind a place of a file, or before it."""
    given = file.read_text()
    assert place in given
    file.write_text(given.replace(place, text + place if before else place + text))


def run(checkout: Path, *command: str, mistake: bool = False) -> str:
    """Returns what the command prints; for a mistake, which it must refuse, its error line."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout), str(ROOT)))}
    environment |= {"AIRFLOW_HOME": str(checkout / "airflow")}
    done = subprocess.run(
        [sys.executable, *command], cwd=checkout, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == (2 if mistake else 0), (done.stdout + done.stderr)[-2000:]
    return done.stderr if mistake else done.stdout


def test_a_query_is_two_files_and_a_row(checkout: Path) -> None:
    rooms = checkout / "streamgauge" / "bench"
    for number, name in enumerate(("workloads/largest.sql", "engines/spark/queries/largest.py")):
        (rooms / name).write_text(example("A query", number))
    insert(rooms / "workloads" / "registry.py", "REGISTRY = (\n", example("A query", 2))
    listed = run(checkout, "-c", "from streamgauge.app.cli import main; main()", "workloads")
    assert "largest" in listed
    run(checkout, "-c", ASK_BOTH)


def test_an_engine_is_a_folder_and_a_row(checkout: Path) -> None:
    folder = checkout / "streamgauge" / "bench" / "engines" / "relay"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for number, name in enumerate(("settings.py", "relay_system.py")):
        (folder / name).write_text(example("An engine", number))
    insert(checkout / "streamgauge" / "config" / "systems.py", '    "engines",\n    {\n', example("An engine", 2))
    bench = write_bench(checkout, capacity=4000)
    raw = yaml.safe_load(bench.file.read_text())
    where = ("--experiment", "e", "--workload", "all", "--system", "mine", "--artifacts", str(bench.store.root))
    trial = ("-c", "from streamgauge.app.cli import main; main()", "trial", str(bench.file), *where, *RATE)
    bench.file.write_text(yaml.safe_dump({**raw, "systems": [{"name": "mine", "engine": "relay", "capacity": 5}]}))
    answer = run(checkout, *trial, mistake=True)
    assert (
        "systems.0.capacity: not a key of engine relay, but of known; allowed here: cpus, engine, example, name, rows"
        in answer
    )
    bench.file.write_text(yaml.safe_dump({**raw, "systems": [{"name": "mine", "engine": "relay", "rows": 200}]}))
    record = json.loads(run(checkout, *trial, "--json"))
    assert record["correct"] is True, record
    assert record["check"]["expected_rows"] == record["check"]["reported_rows"] == 1000
    # the floors hold: nothing else of the project knows it
    (checkout / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "test_floors.py", checkout / "tests")
    run(checkout, "-m", "pytest", "-q", "tests/test_floors.py", "-k", "not each_stage")


def test_a_stage_is_a_row_and_a_job(checkout: Path) -> None:
    stages = checkout / "streamgauge" / "catalog" / "stages.py"
    insert(stages, '    Stage("report", ', example("A stage", 1), before=True)
    shutil.copytree(ROOT / "jobs", checkout / "jobs")
    (checkout / "configs").mkdir()
    (checkout / "jobs" / "sizes.py").write_text(example("A stage"))
    bench = write_bench(checkout, capacity=4000)
    arguments = ("--config", str(bench.file), "--artifacts", str(bench.store.root), "--run-id", "r")
    run(checkout, "jobs/sizes.py", *arguments)
    done = RunLog(bench.store.run("r")).latest("sizes")
    assert done is not None
    assert (done.state, done.outcome["e"]) == ("done", EVENTS)
    follows = run(checkout, "-c", FOLLOW, str(bench.file))
    assert "| sizes | stream | sizes | records how many events each stream has |" in follows.splitlines()


def test_a_delay_is_a_function(checkout: Path) -> None:
    run(checkout, "-c", DRAW)


def test_a_verdict_and_a_sink_are_named_in_the_benchmark_file(checkout: Path) -> None:
    lines = checkout / "pushed.txt"
    bench = write_bench(
        checkout,
        capacity=4000,
        search={"verdict": "mine:none_waits"},
        metrics={"sinks": [{"type": "mine:Lines", "options": {"file": str(lines)}}], "period": "500ms"},
    )
    cell = ("--experiment", "e", "--workload", "all", "--system", "known")
    command = ("trial", str(bench.file), *cell, "--rate", "500", "--seconds", "3", "--artifacts", str(bench.store.root))
    said = run(checkout, "-c", "from streamgauge.app.cli import main; main()", *command)
    assert re.search(r"sustainable.*an event waited for \d+\.\d\d s", said), said
    assert lines.read_text().strip(), "metrics were pushed"


def test_a_measurement_is_a_folder_and_a_row(checkout: Path) -> None:
    """The measurement of the example package works within the project, too."""
    room = checkout / "streamgauge" / "bench" / "measurements"
    shutil.copytree(ROOT / "examples" / "plugin" / "streamgauge_example" / "pauses", room / "example_pauses")
    for file in (room / "example_pauses").glob("*.py"):
        text = file.read_text().replace("streamgauge_example.pauses", "streamgauge.bench.measurements.example_pauses")
        file.write_text(text)
    row = '        "example_pauses": "streamgauge.bench.measurements.example_pauses:PAUSES",\n'
    insert(room / "__init__.py", '    "measurements",\n    {\n', row)
    shutil.copytree(ROOT / "jobs", checkout / "jobs")
    bench = write_bench(checkout, capacity=40_000, batch_cost="20ms")
    raw = yaml.safe_load(bench.file.read_text())
    bench.file.write_text(yaml.safe_dump({**raw, "example_pauses": {"rate": 2000, "seconds": 1}}))
    log = RunLog(bench.store.run("r"))
    with log.stage("validate", {"experiment": "e"}):
        pass
    arguments = ("--config", str(bench.file), "--artifacts", str(bench.store.root), "--run-id", "r")
    cell = ("--experiment", "e", "--workload", "all", "--system", "known")
    run(checkout, "jobs/measure.py", "--stage", "example_pauses", *arguments, *cell)
    done = log.latest("example_pauses", **CELL.model_dump())
    assert done is not None
    assert (done.state, 0.02 < done.outcome["longest_pause_s"] < 1) == ("done", True)
    assert "longest_pause_s" in run(checkout, "-c", COMMAND, "schema", "--record", "example_pauses")
    bench.file.write_text(yaml.safe_dump({**raw, "example_pauses": {"rte": 2000}}))
    assert "example_pauses.rte: unknown key; did you mean rate?" in run(
        checkout, "-c", COMMAND, "check", str(bench.file), mistake=True
    )
    (checkout / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "test_floors.py", checkout / "tests")
    run(checkout, "-m", "pytest", "-q", "tests/test_floors.py", "-k", "not each_stage")
