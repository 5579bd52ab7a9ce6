"""The Spark adapter as the controller uses it: a real child, the real wire, and nothing left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.system import TrialSetup, make_system
from streamgauge.bench.engines.processes import Led
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.engines.spark.spark_system import SparkSystem
from streamgauge.config import Workload
from tests.e2e.processes import alive
from tests.engines.hand import COLUMNS, HandDriver, row, sentinel
from tests.told import batches, extra

pytestmark = pytest.mark.e2e
FIRST = min(os.sched_getaffinity(0))


@pytest.fixture
def system(tmp_path: Path) -> Iterator[SparkSystem]:
    sut = SparkSettings(
        name="sut", memory="1g", state_store="rocksdb", batch_rows=50, cpus=(FIRST,),
        checkpoints=f"file:{tmp_path}/checkpoints/",
    )  # fmt: skip
    made = make_system(sut, tmp_path / "system")
    assert isinstance(made, SparkSystem)
    made.start()
    yield made
    made.stop()


def pins(system: SparkSystem) -> set[frozenset[int]]:
    """The CPUs of all its threads but the JVM's compilers, which are kept off the pinned ones."""
    assert system._session is not None
    found = set()
    for process in system._session.processes():
        with suppress(psutil.NoSuchProcess):  # it has ended
            for thread in process.threads():
                with suppress(ProcessLookupError, FileNotFoundError):
                    if "Compiler" in Path(f"/proc/{process.pid}/task/{thread.id}/comm").read_text():
                        continue
                    found.add(frozenset(os.sched_getaffinity(thread.id)))
    return found


def setup(driver: HandDriver, place: Path, **workload: Any) -> TrialSetup:
    given = {"name": "w", "query": "windowed_aggregation", "key": "name", "value": "amount"} | workload
    return TrialSetup(driver.attempt, (driver.endpoint,), Workload.model_validate(given), COLUMNS, "ns", place, 100.0)


def until(true: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_trials_in_one_warm_process_then_a_driver_that_leaves_then_a_kill_that_leaves_nothing(
    system: SparkSystem, tmp_path: Path
) -> None:
    for number, query in enumerate(("windowed_aggregation", "passthrough")):
        driver = HandDriver(attempt=f"t{number}")
        system.begin_trial(setup(driver, tmp_path / f"trial{number}", query=query))
        if number == 1:
            system.pin()  # in the middle of a query, as a search does it
        assert driver.ready.is_set()
        assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [driver.attempt]
        for first in range(0, 100, 20):
            driver.offer([row(n, n) for n in range(first, first + 20)])
            time.sleep(0.2)
            assert system.alive()
        driver.offer([sentinel(1e6)])
        until(lambda all_=driver.queues: all_.state(1)["committed"] == [101])
        assert pins(system) == {frozenset(os.sched_getaffinity(0) if number == 0 else {FIRST})}
        figures = system.end_trial(30.0)
        assert list((tmp_path / "checkpoints").iterdir()) == []
        assert figures["drained"] is True
        assert figures["failure"] is None
        assert sum(batch["rows"] for batch in batches(figures)) == 101
        assert sum(body["rows"] for body in driver.reports.values()) == (10 if number == 0 else 100)
        assert (figures["cpu_seconds"] or 0) > 0
        assert (figures["rss_bytes"] or 0) > 100e6
        assert figures["software"]["spark"].startswith("4.")
        assert figures["rules"].pace.behind == 2, "the session has a watermark for each operator, as declared"
        assert extra(figures, "checkpoint_manager").endswith("FileSystemBasedCheckpointFileManager")
        if number == 0:
            assert max(batch["state_rows"] for batch in batches(figures)) > 0
        driver.close()

    driver = HandDriver(attempt="t2")
    system.begin_trial(setup(driver, tmp_path / "trial2"))
    driver.close()
    until(lambda: not system.alive(), 30)
    assert system.failure is not None
    assert driver.endpoint.address in system.failure
    assert "\n" not in system.failure
    system.end_trial(1.0)

    driver = HandDriver(attempt="t3")
    system.begin_trial(setup(driver, tmp_path / "trial3"))
    assert system.alive()
    assert system._session is not None
    session, members = system._session, system._session.processes()
    assert len(members) >= 2
    system.strike("kill")
    until(lambda: not system.alive(), 10)
    assert system.failure == "the system died: killed by signal 9"
    assert sum(batch["rows"] for batch in batches(system.end_trial(5.0))) == 0
    system.stop()
    assert session.processes() == []
    assert not any(map(alive, members))
    driver.close()


def test_a_query_that_cannot_begin_is_a_mistake_at_first_and_later_its_trial_s_fault(tmp_path: Path) -> None:
    class Refusing(SparkSystem):
        answer: ClassVar[dict[str, Any]] = {"error": "No space left on device"}

        def _ask(self, command: dict[str, Any], _: float) -> dict[str, Any]:
            return self.answer if command["do"] == "begin" else {}

    driver = HandDriver()
    system = Refusing(SparkSettings(name="s"), tmp_path)
    system._session = Led(["sleep", "60"], dict(os.environ), tmp_path / "log")
    said = "the query did not begin: No space left on device"
    with pytest.raises(UserError, match=rf"systems\.s: {said}"):
        system.begin_trial(setup(driver, tmp_path / "one"))
    system._begun = True
    system.begin_trial(setup(driver, tmp_path / "two"))
    assert (system.alive(), system.failure) == (False, said)
    system.stop()
    driver.close()


def test_what_cannot_start_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"systems\.s\.spark_home: found /nowhere, which has no bin/spark-submit"):
        SparkSystem(SparkSettings(name="s", spark_home="/nowhere"), tmp_path).start()
    with pytest.raises(UserError, match="no Spark master answers there"):
        SparkSystem(SparkSettings(name="s", master="spark://127.0.0.1:1"), tmp_path).start()
    with pytest.raises(
        UserError, match=r"systems\.s: Spark did not start: .*initialization of VM; .*heap.*see .*system\.log"
    ):
        SparkSystem(SparkSettings(name="s", memory="1k"), tmp_path).start()
