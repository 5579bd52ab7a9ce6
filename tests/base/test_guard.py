"""Kills a process: the sessions that it leads end, with their children, and no other session does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

STARTS = """
import os, psutil, subprocess, sys, time
from pathlib import Path
from streamgauge.base.processes import Leader
command = ["sh", "-c", "sleep 600 & wait"]
os.environ["STREAMGAUGE_FENCE"] = "1"
made = {name: Leader(command, dict(os.environ), Path(sys.argv[1])) for name in ("guarded", "ended")}
made["own"] = subprocess.Popen(command, start_new_session=True)
while not psutil.Process(made["ended"].pid).children():
    time.sleep(0.01)
made["ended"].kill()
made["ended"].wait()
print(made["guarded"].pid, made["own"].pid, made["ended"].pid, flush=True)
time.sleep(600)
"""


def session(leader: int) -> list[psutil.Process]:
    running = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running


def alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.timeout(60)
def test_a_killed_process_takes_its_sessions_with_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS, str(tmp_path / "log")], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        guarded, own, ended = map(int, killed.stdout.readline().split())
        try:
            until(lambda: [len(session(leader)) for leader in (guarded, own, ended)] == [2, 2, 1])  # shells and sleeps
            guards = [one for one in psutil.Process(killed.pid).children() if "guard.py" in " ".join(one.cmdline())]
            assert len(guards) == 1
            assert "STREAMGAUGE_FENCE" not in guards[0].environ()
            killed.send_signal(signal.SIGKILL)
            until(lambda: not session(guarded) and not any(map(alive, guards)))
            assert [len(session(leader)) for leader in (own, ended)] == [2, 1], "others are left alone"
        finally:
            killed.kill()
            for left in (guarded, own, ended):
                for process in session(left):
                    process.kill()
