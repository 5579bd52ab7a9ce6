"""Processes that die, a network that is cut and a disk that is full, in the middle of a job's trial."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer

from streamgauge.base.errors import UserError
from streamgauge.driver.ports import free_port
from streamgauge.engines.job.job_system import JobSystem
from streamgauge.kafka import publisher
from streamgauge.kafka.broker import HOME, Broker
from streamgauge.kafka.clients import Access
from tests.driver.conftest import artifact
from tests.e2e.relay import Relay
from tests.e2e.test_kafka import JOB, settings, started, topics, trial
from tests.kafka.conftest import broker

__all__ = ["artifact", "broker"]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
EVENTS = 900  # of a trial of 1.5 s


class Once:
    """Calls a function once the job has committed some rows of the trial, in a thread, as a trial does not wait."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act, self.thread = act, None

    thread: threading.Thread | None

    def __call__(self, told: dict[str, Any]) -> None:
        if self.thread is None and any(sum(driver["committed"]) > 300 for driver in told["drivers"]):
            self.thread = threading.Thread(target=self._act, daemon=True)
            self.thread.start()


def kill(part: str) -> None:
    """Kills each process below this one whose command has that part."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if part in process.cmdline():
                os.kill(process.pid, signal.SIGKILL)


def is_whole(system: JobSystem, fleet: Any, work: Path) -> None:
    """Asserts that the next trial counts, and that each event was offered and answered once."""
    run = trial(system, fleet, work)
    check = run.details["system"]["check"]
    assert (run.observation.invalid, check["wrong"], check["delivery"]) == (None, None, "exactly once")
    assert run.details["emitted"] == check["answers"] == EVENTS
    assert sum(run.details["system"]["link"]["published"]) == EVENTS + 1


@pytest.mark.parametrize(
    ("victim", "reason"),
    [(str(JOB), "the job ended with -9: "), (publisher.__name__, "the publisher ended with -9: ")],
)
def test_a_killed_process_makes_the_trial_invalid_and_the_next_one_counts(
    artifact: Path, tmp_path: Path, broker: Broker, victim: str, reason: str
) -> None:
    with started(settings(broker), artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "first", seconds=60, progress=Once(lambda: kill(victim)))
        assert str(run.observation.invalid).startswith(reason)
        is_whole(system, fleet, tmp_path / "second")
    assert topics(broker) == set()


def test_what_a_job_answers_again_after_its_death_counts_as_duplicates(
    artifact: Path, tmp_path: Path, broker: Broker
) -> None:
    job = [sys.executable, str(JOB), "$0", "$1", "$2", "$3", f"dies once: {tmp_path / 'died'}"]
    again = "until " + " ".join(part if part[0] == "$" else shlex.quote(part) for part in job) + "; do sleep 0.1; done"
    given = settings(broker, command=["sh", "-c", again, "{bootstrap}", "{input}", "{output}", "{group}"])
    with started(given, artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "first")
    check = run.details["system"]["check"]
    assert (tmp_path / "died").exists()
    assert (run.observation.invalid, check["wrong"], check["delivery"]) == (None, None, "at least once")
    assert check["answers"] == EVENTS + check["duplicates"] > EVENTS == check["expected_rows"]


def test_a_second_member_that_joins_the_group_and_leaves_loses_and_doubles_nothing(
    artifact: Path, tmp_path: Path, broker: Broker
) -> None:
    taken = []

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
        check = run.details["system"]["check"]
        assert taken, "it had a part of the input topic"
        assert (run.observation.invalid, check["wrong"]) == (None, None)
        assert run.details["emitted"] == check["expected_rows"] == 3600
    assert topics(broker) == set()


def test_a_short_cut_of_the_network_is_waited_for_and_a_long_one_makes_the_trial_invalid(
    artifact: Path, tmp_path: Path
) -> None:
    behind = free_port()
    with Relay(behind) as relay, own_broker(tmp_path / "broker", {
        "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},FAR://127.0.0.1:" + str(behind),
        "advertised.listeners": "PLAINTEXT://127.0.0.1:{port},FAR://127.0.0.1:" + str(relay.port),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }) as broker, started(
        settings(broker, bootstrap=f"127.0.0.1:{relay.port}"), artifact, tmp_path
    ) as (system, fleet):  # fmt: skip

        def cut_for(seconds: float) -> Once:
            def cut() -> None:
                relay.cut()
                time.sleep(seconds)
                relay.mend()

            return Once(cut)

        run = trial(system, fleet, tmp_path / "short", seconds=4, progress=cut_for(1.5))
        check = run.details["system"]["check"]
        assert (run.observation.invalid, check["wrong"]) == (None, None)
        assert run.details["emitted"] == check["expected_rows"] == 2400
        assert run.details["system"]["link_slip_ns"]["max"] > 1e9, "the cut is the link's, and is told as such"

        run = trial(system, fleet, tmp_path / "long", seconds=60, progress=(cut := cut_for(30)))
        assert str(run.observation.invalid).startswith("the offsets of the group streamgauge-")
        assert cut.thread is not None
        relay.mend()
        is_whole(system, fleet, tmp_path / "after")
        assert topics(broker) == set()


@contextmanager
def own_broker(work: Path, more: dict[str, str] | None = None) -> Iterator[Broker]:
    if not (HOME / ".ready").exists():
        pytest.skip("`make kafka` was not run")
    made = Broker(work, settings=more)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], check=False)
    if done.returncode:
        pytest.skip("this user cannot mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_broker_that_dies_or_whose_disk_is_full_ends_the_trial_and_is_used_again_once_it_is_back(
    artifact: Path, tmp_path: Path, small_disk: Path
) -> None:
    def fill() -> None:
        with suppress(OSError), open(small_disk / "filler", "wb") as file:
            while True:
                file.write(bytes(65_536))
                file.flush()

    with (
        own_broker(tmp_path / "broker", {"log.dirs": str(small_disk / "data")}) as broker,
        started(settings(broker), artifact, tmp_path) as (system, fleet),
    ):
        for name, breaks in (("killed", broker.kill), ("full", fill)):
            run = trial(system, fleet, tmp_path / name, seconds=60, progress=Once(breaks))
            # either the job gives up first, or we do
            assert str(run.observation.invalid).startswith(("the job ended with ", "the offsets of the group "))
            (small_disk / "filler").unlink(missing_ok=True)
            broker.stop()
            with pytest.raises(UserError, match=r"^systems.mine.bootstrap: the Kafka broker .* cannot be used: "):
                system.start()
            broker.start()
            is_whole(system, fleet, tmp_path / f"after {name}")
            assert topics(broker) == set()
