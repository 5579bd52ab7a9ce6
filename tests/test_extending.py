"""Follows "To add something" of docs/architecture.md, word by word, in a fresh copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.measure.benches import write_bench

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()

#: asks both engines for the largest values, and checks them against what they must be
ASK_BOTH = """
from pyspark.sql import SparkSession
from streamgauge import workloads
from streamgauge.oracle.checksum import checksum
from streamgauge.oracle.duck import ask
from tests.oracle.test_duck import events

spec = workloads.Spec("largest", "name", "amount", 10_000_000)
rows = events([(1, "a", 3), (2, "a", 7), (3, "b", 5), (12, "a", 1)])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
found, wanted = workloads.run([spark.createDataFrame(rows)], spec).toArrow(), ask(spec, (rows,))
assert sorted(zip(found["key"].to_pylist(), found["largest"].to_pylist())) == [("a", 1), ("a", 7), ("b", 5)], found
assert checksum(found) == checksum(wanted), (found.to_pylist(), wanted.to_pylist())
"""

DRAW = """
from streamgauge.config import DelaySpec
from streamgauge.disorder.delays import table
ticks = table(DelaySpec.model_validate({"distribution": "mine:triangle", "min": "0s", "max": "1s"}), "ms").ticks
half = ticks[len(ticks) // 2]
assert abs(half - 293) <= 1, half  # 1 - sqrt(1/2) of a second
"""


def example(heading: str, number: int = 0) -> str:
    """The nth block of code below a heading of the page."""
    section = re.split(r"^##+ ", PAGE.split(f"### {heading}\n")[1], flags=re.MULTILINE)[0]
    return re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)[number]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the package, with the file of a user beside it."""
    shutil.copytree(ROOT / "streamgauge", tmp_path / "streamgauge", ignore=shutil.ignore_patterns("__pycache__"))
    parts = [example(heading) for heading in ("A verdict", "A delay", "A sink")]
    (tmp_path / "mine.py").write_text("\n\n".join(parts))
    return tmp_path


def run(checkout: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout), str(ROOT)))}
    done = subprocess.run(
        [sys.executable, *command], cwd=checkout, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_query_is_two_files_and_a_row(checkout: Path) -> None:
    rooms = checkout / "streamgauge" / "workloads"
    for number, name in enumerate(("largest.py", "largest.sql")):
        (rooms / name).write_text(example("A query", number))
    registry = rooms / "registry.py"
    begin = "REGISTRY = (\n"
    assert begin in registry.read_text()
    registry.write_text(registry.read_text().replace(begin, begin + example("A query", 2)))
    listed = run(checkout, "-c", "from streamgauge.cli import main; main()", "workloads")
    assert "largest" in listed
    run(checkout, "-c", ASK_BOTH)


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
    said = run(checkout, "-c", "from streamgauge.cli import main; main()", *command)
    assert re.search(r"sustainable.*an event waited for \d+\.\d\d s", said), said
    assert lines.read_text().strip(), "metrics were pushed"
