"""Tells who waits which stages of a run start and end, and what its log names last."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

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
    """State of a run for who waits: its stage, the step that its log names last, and what is left."""

    def __init__(self, benchmark: Benchmark | None, log: Path) -> None:
        """Begins to watch. benchmark: what is left of it is told."""
        self._benchmark, self._log = benchmark, log
        self._began = self._stage_began = time.monotonic()
        self._log_begin = 0
        self.stages: list[StageRecord] = []
        self.told: dict[str, str] = {}  # the state of each attempt that was reported last

    def seen(self, stages: list[StageRecord]) -> None:
        """Takes the attempts at stages so far."""
        if len(stages) > len(self.stages):
            self._stage_began, self._log_begin = time.monotonic(), size_bytes(self._log)
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
        if not self.stages:
            return f"  starting, {took(now - self._began)}{left}"
        running = [one for one in self.stages if one.state == "started"]
        if not running:
            return f"  between stages, {took(now - self._began)} in all{left}"
        what = " ".join([running[-1].stage, *running[-1].scope.values()])
        step = last_step(self._log, self._log_begin)
        return f"  {what}, {took(now - self._stage_began)}{left}{step}"


def relay(process: subprocess.Popen[bytes], run_log: RunLog, watch: Watch) -> None:
    """Reports each stage's start and end, and the step in between, until the process ends."""
    running = True
    with Live(watch.state, sys.stdout):
        while running:
            running = process.poll() is None
            stages = run_log.stages()
            watch.seen(stages)
            for stage in stages:
                if watch.told.get(stage.attempt) != stage.state:
                    watch.told[stage.attempt] = stage.state
                    rest = f"  ({watch.left})" if stage.state == "started" and watch.left else ""
                    tell(line(stage) + rest)
            if running:
                time.sleep(POLL_SECONDS)


def line(stage: StageRecord) -> str:
    """Line on the state of a stage, such as `  done    generate late20 3.9 s (reused)`."""
    what = " ".join([stage.stage, *stage.scope.values()])
    seconds = f" {stage.seconds:.1f} s" if stage.seconds is not None else ""
    reused = " (reused)" if stage.reused else ""
    return f"  {stage.state:8}{what}{seconds}{reused}" + (f": {stage.error}" if stage.error else "")


def size_bytes(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def last_step(log: Path, begin: int) -> str:
    """The last line that a job logged after the first `begin` bytes, in brackets; empty without one."""
    try:
        with log.open("rb") as file:
            file.seek(max(begin, size_bytes(log) - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    steps = (match[1].strip() for line in reversed(lines) if (match := _LOGGED.search(line)))
    return next((f" ({step})" for step in steps), "")
