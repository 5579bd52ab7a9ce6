"""`streamgauge run --only STAGE`: runs one stage, and before it those that it needs, without starting Airflow."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from streamgauge.airflow import home
from streamgauge.airflow.submission import settings
from streamgauge.base import process_sessions
from streamgauge.base.errors import UserError
from streamgauge.base.places import here
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.catalog.stages import Stage, scopes_of, stages_of
from streamgauge.config import Benchmark

POLL_SECONDS = 0.1


def run(
    file: Path,
    benchmark: Benchmark,
    store: Store,
    overrides: Mapping[str, Any],
    *,
    only: str,
    run_id: str,
    master: str | None = None,
    say: Callable[[str], None] = home.tell,
) -> int:
    """Submits the stage and those that it needs, one after another; returns 0, or 1 once a stage has failed.

    A stage that this run has finished is left out. Raises UserError for a stage that the benchmark does not have.
    """
    stages = needed(benchmark, only)
    directory = store.run(run_id)
    log = here(directory) / "stages.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    records = RunLog(directory)
    say(f"run {run_id}: {', '.join(stage.name for stage in stages)}; log {log}")
    for stage, scope in _tasks(benchmark, stages):
        before = records.latest(stage.name, **scope)
        if before is not None and before.state == "done" and stage.name != only:
            continue
        told = " ".join([stage.name, *scope.values()])
        say(f"  started {told}")
        arguments = ["--config", str(file.absolute()), "--artifacts", str(store.root), "--run-id", run_id]
        arguments += ["--overrides", json.dumps(overrides), *(f"--{key}={value}" for key, value in scope.items())]
        _submit(stage, arguments, master or "local[2]", log)
        record = records.latest(stage.name, **scope)
        if record is None or record == before:
            raise UserError(f"{told}: spark-submit failed before the stage began; see the end of {log}")
        say(line(record))
        if record.state != "done":
            return 1
    say(f"records: {directory}")
    return 0


def needed(benchmark: Benchmark, only: str) -> list[Stage]:
    """Lists the stage of that name after all those that make what it reads. Raises UserError for an unknown name."""
    stages = stages_of(benchmark)
    names = [stage.name for stage in stages]
    if only not in names:
        raise UserError(f"--only: found {only!r}, allowed: {', '.join(names)}")
    wanted = {kind for stage in stages if stage.name == only for kind in (stage.writes, *stage.reads)}
    for stage in reversed(stages[: names.index(only)]):
        if stage.writes in wanted:
            wanted |= set(stage.reads)
    return [stage for stage in stages[: names.index(only) + 1] if stage.writes in wanted]


def line(stage: StageRecord) -> str:
    """Line on the state of a stage, such as `  done    generate late20 3.9 s (reused)`."""
    what = " ".join([stage.stage, *stage.scope.values()])
    seconds = f" {stage.seconds:.1f} s" if stage.seconds is not None else ""
    reused = " (reused)" if stage.outcome.get("reused") else ""
    return f"  {stage.state:8}{what}{seconds}{reused}" + (f": {stage.error}" if stage.error else "")


def _tasks(benchmark: Benchmark, stages: list[Stage]) -> Iterator[tuple[Stage, dict[str, str]]]:
    for stage in stages:
        for scope in scopes_of(benchmark, stage.scope):
            yield stage, scope


def _submit(stage: Stage, arguments: list[str], master: str, log: Path) -> None:
    """Runs spark-submit to its end; whatever ends this call ends all of its processes."""
    given = settings(master, {}, arguments, python=sys.executable, stays=stage.stays)
    submit = Path(sys.executable).with_name("spark-submit")
    conf = [part for key, value in given["conf"].items() for part in ("--conf", f"{key}={value}")]
    application = str(home.ROOT / "jobs" / f"{stage.name}.py")
    command = [str(submit), "--master", master, *conf, application, *given["application_args"]]
    process = process_sessions.Leader(command, os.environ | given["env_vars"], log)
    try:
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
    finally:
        process_sessions.stop(process)
