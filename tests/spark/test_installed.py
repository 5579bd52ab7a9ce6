"""Tests that a job imports the installed PySpark, unless spark-submit belongs to another Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
ARCHIVES = sorted((HOME / "python" / "lib").glob("*.zip"))
TELL = "import streamgauge.streams.stages, pyspark, py4j; print(pyspark.__file__, py4j.__file__)"


def imported(archives: list[Path]) -> list[Path]:
    """Files of PySpark and Py4J that a job imports whose path begins with these archives."""
    path = os.pathsep.join(map(str, [*archives, Path(__file__).resolve().parents[2]]))
    told = subprocess.run(
        [sys.executable, "-c", TELL], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return [Path(one) for one in told.stdout.split()]


def test_the_installed_one_is_preferred_to_the_archive_of_its_sources() -> None:
    assert {one.name.split("-")[0] for one in ARCHIVES} == {"pyspark.zip", "py4j"}
    assert imported(ARCHIVES) == [HOME / "__init__.py", HOME.with_name("py4j") / "__init__.py"]


def test_that_of_another_spark_is_kept(tmp_path: Path) -> None:
    theirs = [Path(shutil.copy(one, tmp_path)) for one in ARCHIVES]
    assert {one.parents[1] for one in imported(theirs)} == set(theirs)
