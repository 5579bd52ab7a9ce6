"""The wheel is enough: it is installed where the clone is out of reach, and used from another folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from streamgauge import __version__
from streamgauge.base.errors import UserError
from streamgauge.base.shipped import CLONE, shipped, tools
from streamgauge.config import load
from tests.conftest import ROOT
from tests.test_docs import blocks

FOLDERS = ("dags", "jobs", "expectations", "configs")
#: what spark-submit of PySpark needs in the folder of its Python
SPARK = ("spark-submit", "find-spark-home", "find_spark_home.py")
#: prints where the library and each shipped file are
FIND = """
import json, sys
import streamgauge
from streamgauge.base.shipped import CLONE, shipped, tools
print(json.dumps([str(CLONE), streamgauge.__file__, *(str(shipped(name)) for name in sys.argv[1:]), str(tools())]))
"""
PARSE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
jobs = lambda dag: sorted({getattr(task, "application", "") for task in dag.tasks} - {""})
found = {name: jobs(dag) for name, dag in bag.dags.items()}
print("PARSED" + json.dumps([found, bag.import_errors]))
"""


class Installed:
    """An environment with the wheel, and with the packages of this one but not this one's library."""

    def __init__(self, folder: Path) -> None:
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)], check=True)
        (self.wheel,) = folder.glob("*.whl")
        self.home, self.away = folder / "environment", folder / "away"
        self.away.mkdir()
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(self.home)], check=True)
        self.python = self.home / "bin" / "python"
        install = [uv, "pip", "install", "--quiet", "--no-deps", "--python", str(self.python), str(self.wheel)]
        subprocess.run(install, check=True)
        (self.packages,) = self.home.glob("lib/python3*/site-packages")
        (self.packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for name in SPARK:
            shutil.copy(Path(sys.executable).with_name(name), self.home / "bin")

    def run(self, *command: str, **variables: str) -> str:
        """Runs a program of the environment, far from the clone; returns what it prints."""
        ours = {"STREAMGAUGE_LOCKS": os.environ["STREAMGAUGE_LOCKS"]} if "STREAMGAUGE_LOCKS" in os.environ else {}
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "STREAMGAUGE_"))}
        program = [str(self.home / "bin" / command[0]), *command[1:]]
        done = subprocess.run(program, cwd=self.away, env=clean | ours | variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_a_wheel_carries_the_library_and_what_lies_beside_it(installed: Installed) -> None:
    library = files(installed.packages / "streamgauge")
    beside = {f"{name}/{file}": text for name in FOLDERS for file, text in files(ROOT / name).items()}
    assert library == files(ROOT / "streamgauge") | {f"shipped/{name}": text for name, text in beside.items()}
    assert "py.typed" in library
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(installed.wheel).namelist()}
    assert tops == {"streamgauge", f"streamgauge-{__version__}.dist-info"}


def test_its_metadata_names_no_person_and_no_address(installed: Installed) -> None:
    (folder,) = installed.packages.glob("streamgauge-*.dist-info")
    about = PathDistribution(folder).metadata
    assert about["Author"] == "Streamgauge contributors"
    assert not {"Project-URL", "Home-page"} & {*about}
    assert "Typing :: Typed" in about.get_all("Classifier", [])
    needs = about.get_all("Requires-Dist", [])
    assert not [one for one in needs if "==" in one.partition(";")[0]], "a wheel asks for ranges"
    # both would write the files of pyspark
    brought = [one for one in needs if re.search(r"extra == ['\"](all|jobs|scheduler)", one)]
    assert not [one for one in brought if "apache-spark" in one or "pyspark-client" in one]


def test_shipped_files_are_found_from_another_folder(installed: Installed) -> None:
    names = [f"{name}/{file}" for name in FOLDERS for file in files(ROOT / name)]
    clone, library, *places, made = json.loads(installed.run("python", "-c", FIND, *names))
    inside = installed.packages / "streamgauge"
    assert (clone, library) == ("None", str(inside / "__init__.py"))
    assert places == [str(inside / "shipped" / name) for name in names]
    assert made == str(installed.home / "share" / "streamgauge")


def test_in_a_clone_they_lie_beside_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (CLONE, shipped("jobs/measure.py"), tools()) == (ROOT, ROOT / "jobs" / "measure.py", ROOT / ".venvs")
    monkeypatch.setenv("STREAMGAUGE_TOOLS", "/opt/made")
    assert tools() == Path("/opt/made")
    with pytest.raises(UserError, match=r"/jobs/none.py: is missing; install the wheel with its extra `all`, or run"):
        shipped("jobs/none.py")


def test_commands_work_without_the_clone(installed: Installed) -> None:
    assert "two streams of real flights" in installed.run("streamgauge", "demo", "--help")
    answer = installed.run("streamgauge", "check", str(installed.packages / "streamgauge/shipped/configs/demo.yaml"))
    assert re.search(r"cells   2: ordered\.hourly\.spark, late20\.hourly\.spark", answer)


def test_a_tool_that_is_missing_comes_from_a_clone(installed: Installed) -> None:
    ask = "from streamgauge.app.services.java_server import jars\n"
    ask += "try:\n    jars('broker')\nexcept Exception as no:\n    print(no)"
    place = installed.home / "share" / "streamgauge" / "kafka"
    assert installed.run("python", "-c", ask) == (
        f"found no Kafka in {place}; `make kafka` downloads one in a clone, whose folder .venvs STREAMGAUGE_TOOLS then "
        "names\n"
    )


def test_two_lines_give_an_airflow_of_your_own_the_dags(installed: Installed, tmp_path: Path) -> None:
    configs, folder = tmp_path / "benchmarks", tmp_path / "dags"
    shutil.copytree(ROOT / "configs", configs)
    (configs / "broken.yaml").write_text("name: broken\nexperiment: []\n")
    folder.mkdir()
    for number, block in enumerate(blocks(ROOT / "docs" / "airflow.md", "python")):
        assert len(list(filter(None, block.splitlines()))) == 2
        (folder / f"file{number}.py").write_text(block.replace("/srv/benchmarks", str(configs)))
    variables = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    printed = installed.run("python", "-c", PARSE, str(folder), **variables)
    dags, errors = json.loads(printed.rpartition("PARSED")[2])
    named = {re.sub(r".*/", "", file): text for file, text in errors.items()}
    assert list(named) == ["file1.py"]
    assert "broken.yaml:2:1: experiment: unknown key; did you mean experiments?" in named["file1.py"]
    benchmarks = [load(file) for file in (ROOT / "configs").glob("*.yaml")]
    checks = {f"streamgauge-release_{one.name}" for one in benchmarks if one.release}
    assert set(dags) == {f"streamgauge_{one.name}" for one in benchmarks} | checks
    jobs = installed.packages / "streamgauge" / "shipped" / "jobs"
    stages = ("analyze", "generate", "ingest", "report", "turns", "validate")
    assert dags["streamgauge_demo"] == [str(jobs / f"{name}.py") for name in stages]
