"""Processes that die, a network that is cut and a disk that is full, in the middle of a job's trial."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer

from streamgauge.app.services.broker import Broker
from streamgauge.app.services.java_server import HOME
from streamgauge.base.errors import Outage, UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.driver.ports import free_port
from streamgauge.bench.engines.job.job_system import JobSystem
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.search import stage as search_stage
from streamgauge.bench.publish import publisher
from streamgauge.config import Cell
from streamgauge.records.driver import DriverFigures
from streamgauge.records.trial import WINDOWS
from streamgauge.streams.kafka.clients import Access
from tests.conftest import is_made
from tests.driver.conftest import artifact
from tests.e2e.relay import Relay
from tests.e2e.test_kafka import JOB, settings, started, topics, trial
from tests.e2e.test_kafka_versions import bench_of
from tests.measure.conftest import _alone_and_quick
from tests.told import compared, extra, known

__all__ = ["_alone_and_quick", "artifact"]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
EVENTS = 900  # of a trial of 1.5 s


class Once:
    """Calls a function once the job has committed some rows of the trial, in a thread, as a trial does not wait."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act, self.thread = act, None

    thread: threading.Thread | None

    def __call__(self, told: Sequence[DriverFigures]) -> None:
        if self.thread is None and any(sum(driver["committed"]) > 300 for driver in told):
            self.thread = threading.Thread(target=self._act, daemon=True)
            self.thread.start()


def kill_publisher() -> None:
    """Kills the publisher of the trial."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if publisher.__name__ in process.cmdline():
                process.kill()


def is_whole(system: JobSystem, fleet: Any, work: Path) -> None:
    """Asserts that the next trial counts, and that each event was offered and answered once."""
    run = trial(system, fleet, work)
    check = compared(run.details)
    assert (run.observation.invalid, check["wrong"], check["delivery"]) == (None, None, "exactly once")
    assert run.details["emitted"] == extra(check, "answers") == EVENTS
    assert sum(extra(run.details["system"], "link")["published"]) == EVENTS + 1


@pytest.mark.parametrize("victim", ["job", "publisher"])
def test_a_killed_process_makes_the_trial_invalid_and_the_next_one_counts(
    artifact: Path, tmp_path: Path, broker: Broker, victim: str
) -> None:
    with started(settings(broker), artifact, tmp_path) as (system, fleet):
        kill = partial(system.strike, "kill") if victim == "job" else kill_publisher
        run = trial(system, fleet, tmp_path / "first", seconds=60, progress=Once(kill))
        assert str(run.observation.invalid).startswith(f"the {victim} ended with -9: ")
        is_whole(system, fleet, tmp_path / "second")
    assert topics(broker) == set()


@pytest.mark.prove
def test_what_a_job_answers_again_after_its_death_counts_as_duplicates(
    artifact: Path, tmp_path: Path, broker: Broker
) -> None:
    job = [sys.executable, str(JOB), "$0", "$1", "$2", "$3", f"dies once: {tmp_path / 'died'}"]
    again = "until " + " ".join(part if part[0] == "$" else shlex.quote(part) for part in job) + "; do sleep 0.1; done"
    given = settings(broker, command=["sh", "-c", again, "{bootstrap}", "{input}", "{output}", "{group}"])
    with started(given, artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "first")
    check = compared(run.details)
    assert (tmp_path / "died").exists()
    assert (run.observation.invalid, check["wrong"], check["delivery"]) == (None, None, "at least once")
    assert extra(check, "answers") == EVENTS + known(check["duplicates"]) > EVENTS == check["expected_rows"]


def test_a_second_member_that_joins_the_group_and_leaves_loses_and_doubles_nothing(
    artifact: Path, tmp_path: Path, broker: Broker
) -> None:
    taken: list[object] = []

    def join() -> None:
        (name,) = (topic.removesuffix("-in") for topic in topics(broker) if topic.endswith("-in"))
        about = {"group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer(Access(broker.bootstrap).settings() | about)
        consumer.subscribe([f"{name}-in"])
        until = time.monotonic() + 20
        while not taken and time.monotonic() < until:
            taken.extend(consumer.consume(10, 0.2))
        consumer.close()

    with started(settings(broker), artifact, tmp_path, partitions=2) as (system, fleet):
        run = trial(system, fleet, tmp_path / "first", seconds=6, progress=Once(join))
        check = compared(run.details)
        assert taken, "it had a part of the input topic"
        assert (run.observation.invalid, check["wrong"]) == (None, None)
        assert run.details["emitted"] == check["expected_rows"] == 3600
    assert topics(broker) == set()


@dataclass
class Mortal:
    """A broker for tests that break it; `far` leads to it over a network that can be cut."""

    broker: Broker
    relay: Relay
    disk: Path | None  # a small one of its own, where this user can mount one

    @property
    def far(self) -> str:
        return f"127.0.0.1:{self.relay.port}"


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    is_made("kafka", HOME / ".ready")
    work, behind = tmp_path_factory.mktemp("mortal"), free_port()
    (disk := work / "disk").mkdir()
    mounted = not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], check=False).returncode
    own = "PLAINTEXT://127.0.0.1:{port},"
    try:
        with Relay(behind) as relay:
            about = {
                "log.dirs": str(disk / "data"),
                "listeners": f"{own}CONTROLLER://127.0.0.1:{{controller}},FAR://127.0.0.1:{behind}",
                "advertised.listeners": f"{own}FAR://127.0.0.1:{relay.port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
            broker = Broker(work, settings=about)
            yield Mortal(broker, relay, disk if mounted else None)
            broker.stop()
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_short_cut_of_the_network_is_waited_for_and_a_long_one_makes_the_trial_invalid(
    artifact: Path, tmp_path: Path, mortal: Mortal
) -> None:
    def cut_for(seconds: float) -> Once:
        def cut() -> None:
            mortal.relay.cut()
            time.sleep(seconds)
            mortal.relay.mend()

        return Once(cut)

    with started(settings(mortal.broker, bootstrap=mortal.far), artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "short", seconds=4, progress=cut_for(1.5))
        check = compared(run.details)
        assert (run.observation.invalid, check["wrong"]) == (None, None)
        assert run.details["emitted"] == check["expected_rows"] == 2400
        slip = known(run.details["system"]["link_slip_ns"])
        assert (slip["max"] or 0) > 1e9, "the cut is the link's, and is told as such"

        run = trial(system, fleet, tmp_path / "long", seconds=60, progress=cut_for(30))
        assert str(run.observation.invalid).startswith("the offsets of the group streamgauge-")
        mortal.relay.mend()
        is_whole(system, fleet, tmp_path / "after")
    assert topics(mortal.broker) == set()


@pytest.mark.parametrize("fault", ["killed", pytest.param("full", marks=pytest.mark.prove)])
def test_a_broker_that_dies_or_whose_disk_is_full_ends_the_trial_and_serves_the_next_one(
    artifact: Path, tmp_path: Path, mortal: Mortal, fault: str
) -> None:
    broker, disk = mortal.broker, mortal.disk
    if fault == "full" and disk is None:
        pytest.skip("this user cannot mount a small disk")

    def fill() -> None:
        with suppress(OSError), open(f"{disk}/filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(65_536))

    with started(settings(broker), artifact, tmp_path) as (system, fleet):
        breaks = broker.kill if fault == "killed" else fill
        run = trial(system, fleet, tmp_path / "first", seconds=60, progress=Once(breaks))
        # either the job gives up first, or we do
        assert str(run.observation.invalid).startswith(("the job ended with ", "the offsets of the group "))
        if fault == "full":
            assert "No space left on device" in broker.log.read_text()
            Path(f"{disk}/filler").unlink()
        broker.stop()
        with pytest.raises(UserError, match=r"^systems.mine.bootstrap: the Kafka broker .* cannot be used: "):
            system.start()
        broker.start()
        is_whole(system, fleet, tmp_path / "after")
    assert topics(broker) == set()


@pytest.mark.prove
def test_a_search_whose_broker_dies_goes_on_after_its_last_measurement(tmp_path: Path, mortal: Mortal) -> None:
    search = {"max_age": "3s", "warmup_seconds": 1, "window_seconds": 0.5, "proof_steps": 0, "processes": 1}
    bench = bench_of(tmp_path, mortal.broker, {"mine": "1.0"}, search=search)
    cell = Cell(experiment="e", workload="all", system="mine")
    cell_run = CellRun(bench.benchmark, bench.store, cell, bench.store.run("r"))
    windows = cell_run.directory / WINDOWS

    def kill_after_one() -> None:
        while not read_jsonl(windows):
            time.sleep(0.05)
        mortal.broker.kill()

    threading.Thread(target=kill_after_one, daemon=True).start()
    with pytest.raises(Outage, match="it started before with these settings, but failed to start again: "):
        search_stage.run(cell_run)
    before = read_jsonl(windows)
    mortal.broker.start()
    found = search_stage.run(cell_run)
    after = read_jsonl(windows)
    assert after[: len(before)] == before
    assert [record["number"] for record in after] == list(range(1, len(after) + 1))
    assert found.windows == len(after) > len(before)
    assert topics(mortal.broker) == set()
