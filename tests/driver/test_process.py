"""The driver as a process: it says where it listens, ends with its parent, and tells what is wrong in one line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from streamgauge.base.errors import Outage, UserError
from streamgauge.bench.driver.ceiling import ceiling
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.process import TOKEN
from streamgauge.bench.driver.system import Endpoint
from streamgauge.config import Replay
from tests.command import Call, run
from tests.driver.conftest import COLUMNS

COMMAND = [str(Path(sys.executable).with_name("streamgauge")), "driver"]


def gone(pid: int, within_s: float = 15) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True  # dead; its parent has not asked yet
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_started_by_hand_it_serves_one_trial_to_whoever_has_the_token(artifact: Path) -> None:
    command = [*COMMAND, str(artifact), "--rate", "1000", "--seconds", "0.2", "--columns", "flight", "--line"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, TOKEN: "secret"})
    try:
        assert process.stdout is not None
        about = json.loads(process.stdout.readline())
        assert (about["pid"], about["rows"], about["truncated"]) == (process.pid, 1000, False)
        with Connection(Endpoint("127.0.0.1", about["port"], token="secret"), "by-hand") as connection:
            assert connection.schema.names[-2:] == ["line", "flight"]
            connection.start()
            rows = 0
            while rows < 201:
                rows += sum(b.num_rows for b in connection.read(0, rows, wait_s=2))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0


@pytest.mark.e2e
def test_it_ends_when_its_parent_is_killed(artifact: Path) -> None:
    script = f"""
import sys, time
from pathlib import Path
from streamgauge.config import Replay
from streamgauge.bench.driver.fleet import Fleet
fleet = Fleet(Path({str(artifact)!r}), Replay(processes=2, partitions=2), tick="ns", columns={{}})
fleet.start()
print(*fleet.pids, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    parent.kill()
    parent.wait(10)
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--rate", "0", "--seconds", "1"], "rate: found 0.0, allowed: a number of events per second above 0"),
        (["--rate", "nan", "--seconds", "1"], "--rate': found 'nan', allowed: a number"),
        (["--rate", "5", "--seconds", "0"], "seconds: found 0.0"),
        (["--rate", "5"], "give --rate and --seconds both"),
        (["--share", "2/2"], "--share: found '2/2', allowed: i/n"),
        (["--share", "1/2"], "--share: found 1/2, allowed: i/n with i below 1, the number of partitions"),
        (["--partitions", "1001"], "replay.partitions: found 1001, allowed: at most the stream's 1000 events"),
        (["--partitions", "0"], "partitions: found 0"),
        (["--columns", "origin"], "--columns: found 'origin', allowed: carrier, flight"),
        (["--cpus", "977"], "--cpus: found '977'"),
        (["--certificate", "nowhere.pem"], "nowhere.pem: cannot load certificate and key"),
        (["--sentinel-horizon", "soon"], "--sentinel-horizon: found 'soon'"),
    ],
)
def test_bad_arguments(artifact: Path, arguments: list[str], error: str) -> None:
    run(Call(["driver", str(artifact), *arguments])).refused(error)


def test_no_stream_there(tmp_path: Path) -> None:
    run(Call(["driver", str(tmp_path / "nothing")])).refused("no finished stream there")
    (tmp_path / "manifest.json").write_text('{"files": ["stream.csv"]}')
    run(Call(["driver", str(tmp_path)])).refused("names no Parquet files")


def test_a_port_in_use(artifact: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusal = f"streamgauge: 127.0.0.1:{port}: cannot listen on this address"
        run(Call(["driver", str(artifact), "--port", str(port)])).refused(refusal)


def test_a_fleet_tells_what_its_process_said(artifact: Path) -> None:
    with pytest.raises(UserError, match="the driver process did not start: --columns: found 'origin'"):
        Fleet(artifact, Replay(), tick="ns", columns={"origin": "string"}).start()
    with pytest.raises(UserError, match=r"replay\.processes: found 2, allowed: at most replay.partitions 1"):
        Fleet(artifact, Replay(processes=2), tick="ns", columns=COLUMNS)


def test_the_ceiling_is_far_above_any_test(artifact: Path) -> None:
    with Fleet(artifact, Replay(max_memory_mb=64), tick="ns", columns=COLUMNS) as fleet:
        found = ceiling(fleet, seconds=0.5)
    assert found.events_per_s > 50_000
    assert 0 < found.driver_cpu_us_per_event < 10
    assert found.processes == 1


def test_a_driver_that_leaves_its_self_test_is_an_outage(artifact: Path) -> None:
    with Fleet(artifact, Replay(max_memory_mb=64), tick="ns", columns=COLUMNS) as fleet:
        killer = threading.Timer(0.5, os.kill, (fleet.pids[0], signal.SIGKILL))
        killer.start()
        with pytest.raises(Outage, match=r"driver self-test: driver process 0 \(pid \d+\) ended with -9"):
            ceiling(fleet, seconds=30)
        killer.join()
