"""Writers of results are killed at every write, at the half of a write, and at every statement, and then run again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from streamgauge.base.jsonl import write_json
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.judgement import Judgement, Look
from streamgauge.results.index import Index, default_url
from tests.index.example import dump, judgement_rows, result

#: calls of the operating system that change a file; only those that write have a middle
WRITES = ("write", "pwrite")
CALLS = (*WRITES, "ftruncate", "fsync", "rename", "replace", "open")
METRICS = ("event_latency_ms_p50", "event_latency_ms_p99", "system_cpu_us_per_event")
MOMENT = "2026-03-01T02:00:00+00:00"


def stage(artifacts: Path, value: float) -> None:
    """A stage as the jobs run one: its record, its figures, its judgement, and the index."""
    run = artifacts / "runs" / "night"
    run.mkdir(parents=True, exist_ok=True)
    with RunLog(run).stage("latency", {}) as outcome:
        write_json(run / "latency.json", {"value": value})
        for metric in METRICS:
            results.append(run, result("night", value, metric=metric, replaces=True, at=MOMENT))
        key = "0" * 16
        if not any(one.series_key == key for _, one in results.numbered_judgements(run)[0]):
            results.judge(run, Judgement("night", key, MOMENT, "open", value, Look()))
        outcome["points"] = Index(default_url(artifacts)).add_run(run)


def killed_at(count: int, half: bool, work: Callable[[], None]) -> bool:
    """Runs work in a fork that kills itself at a call; False if it came to its end before.

    It is the call number `count` of those that change a file, before it; or with `half` of those that write, in its
    middle.
    """
    child = os.fork()
    if not child:
        try:
            _die_at(count, half)
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _die_at(count: int, half: bool) -> None:
    left = count

    def step() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    def fatal(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if step():
                if half:
                    descriptor, data, *rest = arguments
                    real(descriptor, data[: len(data) // 2], *rest)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in WRITES if half else CALLS:
        setattr(os, name, fatal(getattr(os, name)))
    if half:
        return
    from sqlalchemy.engine import Engine

    @event.listens_for(Engine, "before_cursor_execute")
    def _statement(*_: Any) -> None:
        if step():
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("half", [False, True], ids=["before the call", "in its middle"])
def test_a_stage_killed_anywhere_and_repeated_leaves_one_valid_point_a_figure(tmp_path: Path, half: bool) -> None:
    points = 0
    for count in range(1, 1000):
        artifacts = tmp_path / str(count)
        if not killed_at(count, half, partial(stage, artifacts, 1.0)):
            break
        points += 1
        _read(artifacts)  # what a person may do before the stage is repeated
        stage(artifacts, 2.0)
        index = Index(default_url(artifacts))
        live = dump(index)
        valid = [(row["metric"], row["value"]) for row in index.results() if row["valid"]]
        assert sorted(valid) == [(metric, 2.0) for metric in METRICS], count
        assert len(judgement_rows(index)) == 1, count
        assert index.problems == [], count
        index.rebuild([artifacts / "runs" / "night"])
        assert dump(index) == live, count
    assert points > (5 if half else 30), "the stage has that many writes, and that many calls and statements"


def _read(artifacts: Path) -> None:
    run = artifacts / "runs" / "night"
    if run.is_dir():
        Index(default_url(artifacts)).add_run(run)


def test_two_writers_at_once_lose_no_line_and_cut_none(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / results.RESULTS).write_bytes(b'{"torn": ')
    children = []
    for writer in range(4):
        child = os.fork()
        if not child:
            for number in range(50):
                results.append(run, result("run", float(50 * writer + number), metric="m" * 3000))
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    found, problems = results.numbered(run)
    assert problems == []
    assert sorted(float(one.value or 0) for _, one in found) == [float(n) for n in range(200)]
