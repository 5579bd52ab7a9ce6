"""A measurement whose stage is killed: it leaves nothing behind, and is measured again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from streamgauge.base.folders import LOCKS
from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import BY_NAME
from tests.measure.benches import CELL, Bench
from tests.metrics.backend import wait_until

ROOT = Path(__file__).resolve().parents[2]


def killed_and_measured_again(bench: Bench, name: str, reached: Callable[[Path], object]) -> tuple[Path, list[str]]:
    """Kills that stage once the cell's directory is as `reached` wants it, and runs it again.

    Returns the cell's directory, and the metrics of its figures.
    """
    run = bench.store.run("r")
    cell, figures = run / "cells" / CELL.name, run / "results.jsonl"
    for stage, scope in (("validate", {"experiment": CELL.experiment}), ("search", CELL.model_dump())):
        with RunLog(run).stage(stage, scope):
            pass
    before = read_jsonl(figures) if figures.exists() else []
    command = job_of(bench, "measure", BY_NAME[name].arguments(CELL.model_dump()))
    kill(bench, command, lambda: reached(cell))
    assert not (cell / f"{name}.json").exists()
    assert (read_jsonl(figures) if figures.exists() else []) == before
    run_again(bench, command)
    assert not list(cell.glob("work/trial-*"))
    ended = RunLog(run).latest(name, **CELL.model_dump())
    assert ended is not None
    assert ended.state == "done"
    metrics = [one["metric"] for one in read_jsonl(figures)[len(before) :]]
    assert len(metrics) == len(set(metrics))
    return cell, metrics


def job_of(bench: Bench, job: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command of a job for the run r."""
    command = [sys.executable, str(ROOT / "jobs" / f"{job}.py"), "--config", str(bench.file)]
    return [*command, "--artifacts", str(bench.store.root), "--run-id", "r", *arguments]


def kill(bench: Bench, command: Sequence[str], reached: Callable[[], object]) -> None:
    """Kills the job once it is reached, while driver and system are there; waits until these are gone, too."""
    with subprocess.Popen(
        command, cwd=ROOT, env=_environment(bench), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as job:
        of_job = psutil.Process(job.pid).children
        wait_until(lambda: reached() and len(of_job()) >= 2, "what it is killed in, with driver and system", 120)
        started = of_job(recursive=True)
        job.kill()
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive


def run_again(bench: Bench, command: Sequence[str]) -> None:
    again = subprocess.run(command, cwd=ROOT, env=_environment(bench), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr[-3000:]


def _environment(bench: Bench) -> dict[str, str]:
    """The environment with a lock of its own: others measure on this host, too."""
    return {**os.environ, LOCKS: str(bench.file.parent)}
