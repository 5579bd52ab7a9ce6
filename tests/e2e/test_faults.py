"""Faults in a trial have a reason in one line, lose or double no row, and leave no process behind.

One Spark with an executor of its own serves all of its trials; the last one kills it. A killed driver, which is the
same for every engine: tests/driver/test_trial_faults.py and tests/measure/test_cell.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.driver.fleet import Fleet, RemoteDrivers
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.driver.system import TrialSetup, make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.engines.spark.spark_system import SparkSystem
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.config import Replay, Workload
from tests.driver.conftest import COLUMNS, stream_table
from tests.driver.proxy import Proxy
from tests.e2e.during import DuringATrial, our_processes
from tests.e2e.processes import COMMAND, left_behind, wait_for
from tests.measure.benches import CELL, write_bench

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
WORKLOAD = Workload(name="pass", query="passthrough", key="carrier", value="flight")
RATE = 5000.0
#: everything runs on one host here, and its two cores also start executors: the driver may be late
PATIENT = Bounds(max_slip_s=10, drain_s=240)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stream")
    pq.write_table(stream_table([i * 1_000_000 for i in range(7919)]), place / "part-0.parquet")
    (place / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}))
    return place


@pytest.fixture(scope="module")
def fleet(stream: Path) -> Iterator[Fleet]:
    with Fleet(stream, Replay(), tick="ns", columns=COLUMNS) as started:
        yield started


def exactly_once(run: TrialRun, stream: Path) -> None:
    """Checks that the output equals the input: as many rows, with the same values, each with a latency."""
    counts = [[rows - 1 for rows in driver["offered"]] for driver in run.details["drivers"]]  # without sentinels
    table = load_stream([stream / "part-0.parquet"], "ns", COLUMNS, line=False, max_memory_mb=64, densify=1)
    sent = offered_rows(table, counts).select(["seq", "event_time", "carrier", "flight"])
    assert run.observation.invalid is None
    assert run.details["drained"]
    assert run.observation.offered == run.observation.taken == run.details["emitted"] == sent.num_rows
    assert sum(epoch["checksum"] or 0 for epoch in run.details["epochs"]) % 2**64 == checksum(sent)
    apart = run.details["outside_event_latency_ns"]["count"]
    assert run.event_latency.count + apart + run.details["negative_latencies"] == sent.num_rows


def invalid(run: TrialRun) -> str:
    reason = run.observation.invalid
    assert reason
    assert "\n" not in reason
    return reason


# -- Spark


class Proxied(SparkSystem):
    """Reads through a proxy if there is one; the controller does not."""

    proxy: Proxy | None = None

    def begin_trial(self, setup: TrialSetup) -> None:
        super().begin_trial(replace(setup, endpoints=(self.proxy.endpoint,)) if self.proxy else setup)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    settings = SparkSettings(
        name="sut", master="local-cluster[1,1,1024]", memory="1g", batch_rows=4000,
        conf={**local, "spark.executor.memory": "600m", "spark.sql.shuffle.partitions": "1"},
    )  # fmt: skip
    made = Proxied(settings, tmp_path_factory.mktemp("system"))
    made.start()
    yield made
    made.stop()


@contextmanager
def through(system: Proxied, fleet: Fleet) -> Iterator[Proxy]:
    with Proxy(fleet.endpoints[0]) as proxy:
        system.proxy = proxy
        try:
            yield proxy
        finally:
            system.proxy = None


def trial(system: SparkSystem, fleet: Fleet, work: Path, action: Callable[[], object], seconds: float) -> TrialRun:
    fleet.start()
    during = DuringATrial(action)
    run = run_trial(system, fleet, TrialRequest(WORKLOAD, work, RATE, seconds, PATIENT, progress=during))
    during.done()
    return run


def test_an_executor_killed_in_the_middle_of_a_batch_loses_and_repeats_nothing(
    system: Proxied, fleet: Fleet, stream: Path, tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill() -> None:
        proxy.catch()
        if proxy.caught.wait(30):  # its task has begun to read a batch
            [executor] = our_processes("CoarseGrainedExecutorBackend")
            killed.append(executor.pid)
            system.strike("restart")
        proxy.release()

    with through(system, fleet) as proxy:
        run = trial(system, fleet, tmp_path, kill, seconds=6)
    exactly_once(run, stream)
    [executor] = our_processes("CoarseGrainedExecutorBackend")
    assert killed != [executor.pid]
    assert len(killed) == 1


def test_a_network_that_is_cut_and_comes_back_loses_and_repeats_nothing(
    system: Proxied, fleet: Fleet, stream: Path, tmp_path: Path
) -> None:
    caught: list[bool] = []

    def cut_twice() -> None:
        for away_s in (0.0, 1.5):
            proxy.catch()
            caught.append(proxy.caught.wait(30))  # each time within an answer, hence when all have come back
            proxy.cut()
            proxy.release()
            time.sleep(away_s)
            proxy.mend()

    with through(system, fleet) as proxy:
        run = trial(system, fleet, tmp_path, cut_twice, seconds=5)
    assert caught == [True, True]
    exactly_once(run, stream)


def test_a_network_that_stays_away_ends_the_trial_with_its_reason(
    system: Proxied, fleet: Fleet, stream: Path, tmp_path: Path
) -> None:
    with through(system, fleet) as proxy:
        run = trial(system, fleet, tmp_path / "cut", proxy.cut, seconds=60)
        assert f"driver {proxy.endpoint.address}: " in invalid(run)
        assert "refused" in invalid(run)
    exactly_once(trial(system, fleet, tmp_path / "next", lambda: None, seconds=1.5), stream)


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk of 1 MiB, or of as many as the test asks for."""
    place, size_mib = tmp_path / "small", getattr(request, "param", 1)
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> Path:
    """Leaves no room on a disk; returns the file that takes it."""
    with open(disk / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass
    return disk / "filler"


def test_a_disk_that_is_full_for_checkpoints_ends_the_trial_with_its_reason(
    system: Proxied, fleet: Fleet, small_disk: Path
) -> None:
    run = trial(system, fleet, small_disk, lambda: fill(small_disk), seconds=60)
    assert "No space left on device" in invalid(run)


def test_a_killed_system_ends_the_trial_and_leaves_no_process(system: Proxied, fleet: Fleet, tmp_path: Path) -> None:
    assert system._session is not None
    pid = system._session.leader.pid
    run = trial(system, fleet, tmp_path, lambda: system.strike("kill"), seconds=60)
    assert invalid(run) == "the system died: killed by signal 9"
    assert system._session is not None
    session = system._session
    system.stop()
    assert session.processes() == []
    assert {p.pid for p in psutil.Process().children(recursive=True) if "java" in p.name() and p.pid == pid} == set()
    assert our_processes("CoarseGrainedExecutorBackend") == []


# -- the known system: what is the same for every engine


def test_a_cut_between_controller_and_driver_ends_the_trial_and_the_next_one_is_whole(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.start()
    known = make_system(KnownSettings(name="k", engine="known"), tmp_path)
    with Proxy(fleet.endpoints[0]) as proxy:
        remote = RemoteDrivers((proxy.endpoint,), "ns", COLUMNS)
        cut = DuringATrial(proxy.cut, 0.5)
        run = run_trial(known, remote, TrialRequest(WORKLOAD, tmp_path, 1000, 60, PATIENT, progress=cut))
        cut.done()
        # whoever of both notices first
        assert re.search(rf"driver {proxy.endpoint.address}: (closed the connection|.*reset|.*refused)", invalid(run))
        assert our_processes("streamgauge.bench.engines.known") == []
        proxy.mend()
        run = run_trial(known, remote, TrialRequest(WORKLOAD, tmp_path, 1000, 0.5, PATIENT))
        assert run.observation.invalid is None
        assert run.observation.offered == run.details["emitted"] == run.event_latency.count == 500


@pytest.mark.parametrize("small_disk", [256], indirect=True)
def test_a_search_killed_in_a_ladder_leaves_no_process_and_goes_on_and_a_full_disk_is_told(
    tmp_path: Path, small_disk: Path
) -> None:
    plan = {"max_age": "1s", "warmup_seconds": 0, "window_seconds": 0.8, "recovery_seconds": 5, "proof_steps": 1}
    bench = write_bench(
        small_disk, capacity=40_000, batch_cost="50ms", cpus={min(os.sched_getaffinity(0))},
        search={**plan, "processes": 2, "margin": 0.3},
    )  # fmt: skip
    named = [part for key, name in CELL for part in (f"--{key}", name)]
    command = ["search", str(bench.file), *named, "--run-id", "r", "--json"]
    environment = {
        **os.environ, "STREAMGAUGE_ARTIFACTS": str(bench.store.root), "TMPDIR": str(tmp_path),
    }  # fmt: skip
    windows = bench.store.root / "runs" / "r" / "cells" / CELL.name / "windows.jsonl"

    def of_process(number: int) -> list[dict[str, Any]]:
        return [record for record in read_jsonl(windows) if record["process"] == number]

    def search() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [COMMAND, *command], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    first = search()
    wait_for(lambda: len(of_process(2)) >= 1, "first window of the second process", 120)
    wait_for(lambda: len(left_behind(bench.store.root)) >= 3, "its next window", 30)  # system, driver, search
    first.kill()
    first.communicate()
    wait_for(lambda: not left_behind(bench.store.root), "end of its processes", 30)

    full = search()
    wait_for(
        lambda: 3 in {record["window"]["life"] for record in of_process(2)},
        "a window of the next process",
        60,
        every=0.1,
    )
    full.send_signal(signal.SIGSTOP)  # to fill the disk may take longer than the windows that are left
    filler = fill(small_disk)
    full.send_signal(signal.SIGCONT)
    out, said = full.communicate(timeout=60)
    finished, kept = windows.read_text(), len(of_process(2))
    told = [line for line in said.splitlines() if line.startswith("streamgauge: ")]
    assert (full.returncode, out, len(told)) == (2, "", 1), said
    assert told[0].startswith(f"streamgauge: {small_disk}")
    assert "cannot be written: No space left on device; free space there" in told[0]
    assert "Traceback" not in said
    filler.unlink()

    out, said = search().communicate(timeout=200)
    assert out, said
    found = json.loads(out)
    assert f"resuming after {finished.count(chr(10))} measurements" in said
    assert windows.read_text().startswith(finished)
    numbers = sorted(r["number"] for r in (*read_jsonl(windows), *found["trial_records"]))
    assert numbers == list(range(1, len(numbers) + 1))
    assert {record["window"]["life"] for record in of_process(1)} == {1}, "a complete process stays"
    # its ladder may have been whole when the disk was full, and then nothing of it is lost
    lives = [record["window"]["life"] for record in of_process(2)]
    assert (set(lives[:kept]), set(lives[kept:]) <= {4}) == ({2, 3}, True), "the lost one is measured again"
    assert found["sustainable_rate_events_per_s"] == pytest.approx(20_000, rel=0.1)
    assert ([one["process"] for one in found["processes"]], found["interval_of"]) == ([1, 2], "processes")
    results = read_jsonl(bench.store.root / "runs" / "r" / "results.jsonl")
    assert [(result["metric"], result["samples"]) for result in results] == [("sustainable_rate_events_per_s", 2)]
    assert {record["purpose"] for record in found["trial_records"]} == {"below", "above"}
    assert left_behind(bench.store.root) == []
