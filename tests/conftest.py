"""Shared by all tests: one Spark session, and the real data sets where they lie."""

from __future__ import annotations

import gc
import gzip
import json
import logging
import os
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from streamgauge.base import secrets
from streamgauge.streams.stages.session import quick_jvm
from tests.plugins import installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadFileScheduling

    from streamgauge.app.services.broker import Broker
    from streamgauge.app.services.local_registry import LocalRegistry
    from streamgauge.streams.stages.workers import Workers

ROOT = Path(__file__).resolve().parents[1]
#: real event files, see the README there
DATA = ROOT / "tests" / "data"
#: what each file took when it was last timed (scripts/test_seconds.py)
SECONDS = ROOT / "tests" / "seconds.json"
hypothesis.settings.register_profile("ours", deadline=None)  # a busy machine is no fault
hypothesis.settings.register_profile("quick", deadline=None, max_examples=30)
hypothesis.settings.load_profile("ours")
logging.getLogger("py4j").setLevel(logging.WARNING)  # it tells of its end when nobody listens any more


#: a quick run leaves out files that took so long, beside other processes
QUICK_SECONDS = 8


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", set())


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs the example package for a test; returns the folder in which it lies."""
    place = installed(tmp_path / "site")
    monkeypatch.syspath_prepend(str(place))
    for name in [name for name in sys.modules if name.startswith("streamgauge_example")]:
        monkeypatch.delitem(sys.modules, name)
    return place


def pytest_addoption(parser: pytest.Parser) -> None:
    told = f"leave out end-to-end tests, tests that need Spark, and files that take {QUICK_SECONDS} s or more"
    parser.addoption("--quick", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Gives each test process a measuring lock of its own; otherwise one would end the other as an orphan.

    JVMs of engines live for seconds, so they take the quick options of the batch stages. Tests that are marked `alone`
    run in no such process, with the options that users have.
    """
    gc.disable()  # until all tests are collected: what is made until then stays
    if config.getoption("quick"):
        hypothesis.settings.load_profile("quick")
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        place = Path(tempfile.gettempdir()) / f"streamgauge-tests-{config.workerinput['testrunuid'][:8]}" / worker  # type: ignore[attr-defined]
        place.mkdir(parents=True)
        os.environ["TMPDIR"], tempfile.tempdir = str(place), None
        os.environ["STREAMGAUGE_LOCKS"] = str(place)
        os.environ["JAVA_TOOL_OPTIONS"] = quick_jvm()
        # PySpark ends a process whose main module has no file: it takes it for one that runs doctests
        sys.modules["__main__"].__file__ = __file__


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.unfreeze()  # the end of the interpreter frees it
    if hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


@cache
def group_of(file: str) -> str:
    """Group of a file that one process runs in a row: all that share the one Spark, Flink or Kafka; else itself."""
    text = (ROOT / file).read_text()
    if re.search(r"mark\.spark|@everywhere", text):
        return "spark"
    if "one_flink: " in text:
        return "flink"
    return "kafka" if re.search(r"broker: Broker[,)]|registry: LocalRegistry", text) else file


def is_quick(item: pytest.Item, seconds: dict[str, float]) -> bool:
    file = item.path.relative_to(ROOT).as_posix()
    slow = item.get_closest_marker("e2e") or item.get_closest_marker("alone") or group_of(file) == "spark"
    return not slow and seconds.get(file, 0.0) < QUICK_SECONDS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    from xdist.scheduler import LoadFileScheduling

    class InGroups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(super()._split_scope(nodeid))

    return InGroups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Starts the longest groups first, so that no process works alone in the end; a shuffled order stays as it is."""
    for item in items:
        if "favoured" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.alone)
    seconds: dict[str, float] = json.loads(SECONDS.read_text())
    if config.getoption("quick"):
        kept = [item for item in items if is_quick(item, seconds)]
        config.hook.pytest_deselected(items=[item for item in items if not is_quick(item, seconds)])
        items[:] = kept
    if not config.pluginmanager.has_plugin("randomly"):
        files = {item.path.relative_to(ROOT).as_posix() for item in items}
        whole: dict[str, float] = defaultdict(float)
        for file in files:
            whole[group_of(file)] += seconds.get(file, 0.0)

        def rank(item: pytest.Item) -> tuple[float, str, float]:
            file = item.path.relative_to(ROOT).as_posix()
            return -whole[group_of(file)], group_of(file), -seconds.get(file, 0.0)

        items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Leaves what was collected out of all later rounds of the garbage collector; they would walk it in vain."""
    gc.freeze()
    gc.enable()


def is_made(target: str, file: Path) -> None:
    """Fails where something is not there that `make test` makes beforehand."""
    if not file.exists():
        pytest.fail(f"`make {target}` was not run: {file} does not exist", pytrace=False)


@pytest.fixture(scope="session")
def flink_is_made() -> None:
    from streamgauge.bench.engines.flink.settings import HOME, JAR

    is_made("flink", HOME / "pyflink" / "lib" / JAR)


@pytest.fixture(scope="session")
def jvm_link_is_made() -> None:
    from streamgauge.bench.engines.spark.settings import JAR

    is_made("jvm-link", JAR)


@pytest.fixture(scope="session")
def _spark_ends() -> Iterator[None]:
    yield
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        session.stop()


@pytest.fixture(scope="module")
def spark(_spark_ends: None) -> SparkSession:
    """The one Spark of all tests; a module that has spoilt it stops it, and the next one starts another."""
    from streamgauge.bench.engines.spark.settings import JAR
    from streamgauge.streams.stages.session import batch_session

    jars = {"spark.jars": str(JAR)} if JAR.exists() else {}
    session = batch_session("tests", "local[2,4]", {"spark.sql.shuffle.partitions": "2", **jars})
    # Hadoop starts a process for every file that it makes, to set its mode; half of them would hold checksums
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    session._jvm.org.apache.hadoop.fs.FileSystem.getLocal(hadoop).setWriteChecksum(False)
    return session


@pytest.fixture
def workers(request: pytest.FixtureRequest) -> Workers:
    """Copies of this process; or, where a test is marked with @everywhere, also Spark's tasks."""
    from streamgauge.streams.stages.tasks import OnSpark
    from streamgauge.streams.stages.workers import Forked

    return OnSpark(request.getfixturevalue("spark")) if getattr(request, "param", "") == "spark" else Forked(2)


#: asks a test twice: with copies of this process, and with Spark's tasks
everywhere = pytest.mark.parametrize(
    "workers", ["forked", pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)


def everywhere_with(name: str, *values: str) -> pytest.MarkDecorator:
    """Asks a test of each value with copies of this process, and of the last one with Spark's tasks, too.

    For values that make no difference to who does the work.
    """
    asked = [("forked", value) for value in values]
    on_spark = pytest.param("spark", values[-1], marks=pytest.mark.spark)
    return pytest.mark.parametrize(("workers", name), [*asked, on_spark], indirect=["workers"])


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The one Kafka broker of all tests that do not break it."""
    from streamgauge.app.services.broker import Broker
    from streamgauge.app.services.java_server import HOME

    is_made("kafka", HOME / ".ready")
    broker = Broker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """The one schema registry of all tests."""
    from streamgauge.app.services.java_server import HOME
    from streamgauge.app.services.local_registry import LocalRegistry

    is_made("kafka", HOME / "registry")
    registry = LocalRegistry(tmp_path_factory.mktemp("registry"))
    yield registry
    registry.stop()


def unpacked(name: str, folder: Path) -> Path:
    """A file of tests/data/, which is kept packed, in that folder."""
    file = folder / name
    file.write_bytes(gzip.decompress((DATA / f"{name}.gz").read_bytes()))
    return file


@pytest.fixture(scope="session")
def flights_gz() -> Path:
    return ROOT / "configs" / "data" / "flights_2013_01.csv.gz"
