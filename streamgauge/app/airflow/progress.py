"""Tells who waits which stages of a run start and end, and what its log names last."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from streamgauge.base import processes
from streamgauge.base.live import Live, tell, took
from streamgauge.bench.measure import timing
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.config import Benchmark

POLL_SECONDS = 0.2
#: a line that a job logged, as it stands in Airflow's log or by itself: its time, and what it says
_LOGGED = re.compile(r"(?:^|\] )\d\d:\d\d:\d\d +(.*?) *(?:\[airflow\..*)?$")
#: bytes at the end of a log that hold its last lines
_TAIL_BYTES = 20_000


class Watch:
    """State of a run for who waits: its stage, the step that its log names last, and what is left of a benchmark."""

    def __init__(self, benchmark: Benchmark | None, log: Path) -> None:
        self._benchmark, self._log = benchmark, log
        self._began = self._stage_began = time.monotonic()
        self._log_begin = 0
        self.stages: list[StageRecord] = []
        self.reported: dict[str, str] = {}  # the state of each attempt that was reported last

    def seen(self, stages: list[StageRecord]) -> None:
        """Takes the attempts at stages so far."""
        if len(stages) > len(self.stages):
            self._stage_began = time.monotonic()
            self._log_begin = self._log.stat().st_size if self._log.exists() else 0
        self.stages = stages

    @property
    def left(self) -> str:
        if self._benchmark is None:
            return ""
        running_s = time.monotonic() - self._stage_began
        return timing.left(self._benchmark, self.stages, running_s=running_s)

    def state(self) -> str:
        """The line for who waits."""
        now, left = time.monotonic(), f"; {self.left}" if self.left else ""
        running = [one for one in self.stages if one.state == "started"]
        if not running:
            return f"  {'between stages' if self.stages else 'starting'}, {took(now - self._began)} in all{left}"
        step = last_step(self._log, self._log_begin)
        return f"  {running[-1].what}, {took(now - self._stage_began)}{left}{step}"


def relay(process: processes.Leader, run_log: RunLog, watch: Watch, grace_seconds: float = 8.0) -> None:
    """Reports each stage's start and end until the process ends; whatever ends this call ends all of its processes."""
    running = True
    try:
        with Live(watch.state, sys.stdout):
            while running:
                running = process.poll() is None
                watch.seen(run_log.stages())
                for stage in watch.stages:
                    if watch.reported.get(stage.attempt) != stage.state:
                        watch.reported[stage.attempt] = stage.state
                        tell(line(stage) + (f"  ({watch.left})" if stage.state == "started" and watch.left else ""))
                if running:
                    time.sleep(POLL_SECONDS)
    finally:
        processes.stop(process, grace_seconds=grace_seconds)


def line(stage: StageRecord) -> str:
    """Line on the state of a stage, such as `  done    generate late20 3.9 s (reused)`."""
    seconds = f" {stage.seconds:.1f} s" if stage.seconds is not None else ""
    reused = " (reused)" if stage.reused else ""
    return f"  {stage.state:8}{stage.what}{seconds}{reused}" + (f": {stage.error}" if stage.error else "")


def last_step(log: Path, begin: int) -> str:
    """The last line that a job logged after the first `begin` bytes, in brackets; empty without one."""
    try:
        with log.open("rb") as file:
            file.seek(max(begin, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    steps = (match[1].strip() for line in reversed(lines) if (match := _LOGGED.search(line)))
    return next((f" ({step})" for step in steps), "")
