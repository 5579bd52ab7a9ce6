"""Helpers of the end-to-end tests: the command in a process, and proof that no process of it is left."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from streamgauge.base.folders import LOCKS
from streamgauge.streams.stages.session import quick_jvm

COMMAND = str(Path(sys.executable).with_name("streamgauge"))
FLIGHTS = Path(__file__).resolve().parents[2] / "configs" / "data" / "flights_2013_01.csv.gz"
#: for a dozen JVMs that live for seconds each
QUICK = {"JAVA_TOOL_OPTIONS": quick_jvm()}

#: a cell of a known system that is searched within seconds, after write_config
KNOWN_CELL = """
workloads: [{name: all, query: passthrough}]
systems: [{name: known, engine: known, capacity: 3e5, trigger: 50ms}]
replay: {max_memory_mb: 64, max_slip: 5s}
search:
  max_rate: 2000
  warmup_seconds: 0
  window_seconds: 1.5
  recovery_seconds: 5
  max_age: 1s
  proof_steps: 1
  margin: 0.3
  yardstick: false
"""


def free_port() -> int:
    """Below those that the kernel gives to whoever asks for any, so that it is still free when it is used."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


def write_config(path: Path, experiments: list[str]) -> Path:
    """A small benchmark on the real flights in the order of their schedule."""
    path.write_text(
        f"name: {path.stem}\n"
        f"source:\n"
        f"  files: {FLIGHTS}\n"
        f'  time: {{column: sched, format: "%Y-%m-%d %H:%M:%S"}}\n'
        f"  order: event_time\n"
        f"scale: 0.1\n"
        f"experiments:\n" + "".join(f"  - {line}\n" for line in experiments)
    )
    return path


def start(arguments: list[str], log: Path, prefix: Sequence[str] = (), **variables: str) -> subprocess.Popen[bytes]:
    """prefix: a command that starts it elsewhere."""
    ours = ("AIRFLOW", "STREAMGAUGE")  # but the place of the locks, which keeps tests from other measurements
    kept = {key: value for key, value in os.environ.items() if key == LOCKS or not key.startswith(ours)}
    with open(log, "wb") as output:
        return subprocess.Popen(
            [*prefix, COMMAND, *arguments], env=kept | variables, stdout=output, stderr=subprocess.STDOUT
        )


def wait_for(found: Callable[[], object], what: str, seconds: float, every: float = 0.5) -> None:
    """Waits until it is found. every: seconds between two looks; an answer of Airflow's API takes 0.1 s of CPU."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still no {what}"
        time.sleep(every)


def alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def processes_of(artifacts: Path | str) -> dict[int, str]:
    """Maps the ids of processes that were started for these artifacts to their command lines."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("STREAMGAUGE_ARTIFACTS") == str(artifacts):
                found[process.pid] = " ".join(process.cmdline())
    return found


def left_behind(artifacts: Path | str) -> list[str]:
    """Command lines of processes that were started for these artifacts."""
    return [*processes_of(artifacts).values()]
