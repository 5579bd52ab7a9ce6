"""`streamgauge run --only STAGE` and `demo`: run one stage with those that it needs, or all, without Airflow."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.app.airflow.submission import settings
from streamgauge.base import processes
from streamgauge.base.errors import UserError
from streamgauge.base.live import Live, tell, took
from streamgauge.base.places import here
from streamgauge.base.shipped import shipped
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.catalog.stages import Stage, needed_before, scopes_of, stages_of
from streamgauge.config import Benchmark

POLL_SECONDS = 0.1
#: a line that a job logged, as it stands in Airflow's log or by itself: its time, and what it says
_LOGGED = re.compile(r"(?:^|\] )\d\d:\d\d:\d\d +(.*?) *(?:\[airflow\..*)?$")
#: bytes at the end of a log that hold its last lines
_TAIL_BYTES = 20_000


def run(
    file: Path,
    benchmark: Benchmark,
    store: Store,
    overrides: Mapping[str, Any],
    *,
    only: str | None,
    run_id: str,
    claim: Mapping[str, str],
    master: str | None = None,
) -> int:
    """Submits the stages, one after another; returns 0, or 1 once a stage has failed.

    only: None runs every stage. One that this run has finished is left out; `only` itself always runs.
    claim: environment variables that tell a process of this run's claim.
    Raises UserError for a stage that the benchmark does not have.
    """
    planned = tasks(benchmark, only)
    directory = store.run(run_id)
    log = here(directory) / "stages.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    records = RunLog(directory)
    tell(f"run {run_id}: {', '.join(dict.fromkeys(stage.name for stage, _ in planned))}; log {log}")
    for stage, scope in planned:
        before = records.latest(stage.name, **scope)
        if before is not None and before.state == "done" and stage.name != only:
            continue
        name = " ".join([stage.name, *scope.values()])
        tell(f"  started {name}")
        arguments = ["--config", str(file.absolute()), "--artifacts", str(store.root), "--run-id", run_id]
        arguments += ["--overrides", json.dumps(overrides), *stage.arguments(scope)]
        began, begin = time.monotonic(), size_bytes(log)

        def state(name: str = name, began: float = began, begin: int = begin) -> str:
            return f"  {name}, {took(time.monotonic() - began)}{last_step(log, begin)}"

        with Live(state, sys.stdout):
            _submit(stage, arguments, master or "local[2]", log, claim)
        record = records.latest(stage.name, **scope)
        if record is None or record == before:
            raise UserError(f"{name}: spark-submit failed before the stage began; see the end of {log}")
        tell(line(record))
        if record.state != "done":
            return 1
    tell(f"records: {directory}")
    return 0


def tasks(benchmark: Benchmark, only: str | None) -> list[tuple[Stage, dict[str, str]]]:
    """Lists that stage for each of its scopes, after all that must succeed before it. Raises UserError for its name."""
    stages = {stage.name: stage for stage in stages_of(benchmark)}
    if only is None:
        return [(stage, scope) for stage in stages.values() for scope in scopes_of(benchmark, stage.scope)]
    if only not in stages:
        raise UserError(f"--only: found {only!r}, allowed: {', '.join(stages)}")
    steps: list[tuple[Stage, dict[str, str]]] = []

    def add(stage: Stage, scope: dict[str, str]) -> None:
        for one, narrower in needed_before(stage, scope):
            if one.always:  # it works with what there is, so all of that comes first
                for earlier in stages.values():
                    for its in scopes_of(benchmark, earlier.scope) if earlier.writes in one.reads else ():
                        add(earlier, its)
            add(one, narrower)
        if (stage, scope) not in steps:
            steps.append((stage, scope))

    for scope in scopes_of(benchmark, stages[only].scope):
        add(stages[only], scope)
    return steps


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


def _submit(stage: Stage, arguments: list[str], master: str, log: Path, claim: Mapping[str, str]) -> None:
    """Runs spark-submit to its end; whatever ends this call ends all of its processes."""
    given = settings(master, {}, arguments, python=sys.executable, stays=stage.stays)
    submit = Path(sys.executable).with_name("spark-submit")
    conf = [part for key, value in given["conf"].items() for part in ("--conf", f"{key}={value}")]
    application = str(shipped(f"jobs/{stage.job}.py"))
    command = [str(submit), "--master", master, *conf, application, *given["application_args"]]
    process = processes.Leader(command, {**os.environ, **given["env_vars"], **claim}, log)
    try:
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
    finally:
        processes.stop(process)
