"""A gate that is killed leaves nothing that the same command does not remove, and goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from streamgauge.base.folders import LOCKS
from streamgauge.records.gate import GateCheck, GateRepetition
from tests.conftest import ROOT
from tests.gate.repositories import benchmark, git, repository

pytestmark = [pytest.mark.e2e, pytest.mark.prove]


def test_a_killed_gate_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locks").mkdir()
    monkeypatch.setenv(LOCKS, str(tmp_path / "locks"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    place = tmp_path / "r"
    repository(place, benchmark(), benchmark(capacity=12_000))
    program = str(Path(sys.executable).with_name("streamgauge"))
    command = [program, "gate", "mine.yaml", "--base", "main", "--head", "change", "--output", "gate"]
    log = place / "gate" / "gate.jsonl"

    begun = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (log.exists() and len(GateRepetition.read_log(log)) >= 2):
        assert begun.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    children = psutil.Process(begun.pid).children(recursive=True)
    begun.kill()
    begun.wait()
    psutil.wait_procs(children, timeout=30)
    assert [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE] == []
    kept = GateRepetition.read_log(log)
    assert git(place, "worktree", "list").count("\n") == 2  # no process was left to remove them

    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert f"going on with {len(kept)} processes that an unfinished gate has measured" in done.stderr
    assert GateRepetition.read_log(log)[: len(kept)] == kept
    assert GateCheck.read(place / "gate" / "gate.json").verdict == "no-go"
    assert git(place, "worktree", "list").count("\n") == 0
