"""`streamgauge run --only STAGE` and `demo`: run one stage with those that it needs, or all, without Airflow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from streamgauge.app.airflow.progress import Watch, relay
from streamgauge.app.airflow.submission import settings
from streamgauge.base import processes
from streamgauge.base.errors import UserError
from streamgauge.base.live import tell
from streamgauge.base.places import here
from streamgauge.base.shipped import shipped
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.catalog.stages import Stage, needed_before, scopes_of, stages_of
from streamgauge.config import Benchmark, fingerprint

Step = tuple[Stage, dict[str, str]]


@dataclass(frozen=True)
class BenchmarkRun:
    """A run of a benchmark, which begins, or goes on with what it has measured."""

    file: Path
    benchmark: Benchmark
    store: Store
    overrides: Mapping[str, object]  # those that are applied to the benchmark
    run_id: str
    master: str | None = None

    @cached_property
    def directory(self) -> Path:
        return self.store.run(self.run_id)


def run(one: BenchmarkRun, only: str | None, claim: Mapping[str, str]) -> int:
    """Runs the stages, one after another; returns 0, or 1 once a stage has failed.

    only: None runs every stage. One that this run has finished with these settings is left out; `only` always runs.
    claim: environment variables that tell a process of this run's claim.
    Raises UserError for a stage that the benchmark does not have.
    """
    planned, directory = tasks(one.benchmark, only), one.directory
    log = here(directory) / "stages.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    records, asked = RunLog(directory), fingerprint(one.benchmark)
    tell(f"run {one.run_id}: {', '.join(dict.fromkeys(stage.name for stage, _ in planned))}; log {log}")
    arguments = ["--config", str(one.file.absolute()), "--artifacts", str(one.store.root), "--run-id", one.run_id]
    arguments += ["--overrides", json.dumps(one.overrides)]
    watch = Watch(None, log)
    watch.reported = {stage.attempt: stage.state for stage in records.stages()}
    for steps in together(planned):
        known = [(stage, scope, records.latest(stage.name, **scope)) for stage, scope in steps]
        due = [step for step in known if step[0].name == only or not _is_done(step[2], asked)]
        if due:
            given = [[stage.job, *arguments, *stage.arguments(scope)] for stage, scope, _ in due]
            relay(_submitted(given, one.master or "local[2]", log, claim), records, watch)
        for stage, scope, last in due:
            record = records.latest(stage.name, **scope)
            if record is None or record == last:
                raise UserError(f"{stage.name}: spark-submit failed before the stage began; see the end of {log}")
            if record.state != "done":
                return 1
    tell(f"records: {directory}")
    return 0


def _is_done(last: StageRecord | None, asked: str) -> bool:
    """True if the last attempt at a stage ended well, with the settings that are asked now."""
    return last is not None and (last.state, last.outcome.get("settings")) == ("done", asked)


def tasks(benchmark: Benchmark, only: str | None) -> list[Step]:
    """Lists that stage for each of its scopes, after all that must succeed before it. Raises UserError for its name."""
    stages = {stage.name: stage for stage in stages_of(benchmark)}
    if only is None:
        return [(stage, scope) for stage in stages.values() for scope in scopes_of(benchmark, stage.scope)]
    if only not in stages:
        raise UserError(f"--only: found {only!r}, allowed: {', '.join(stages)}")
    steps: list[Step] = []

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


def together(planned: Sequence[Step]) -> list[list[Step]]:
    """Parts stages into those that share a process, and with it Spark's session. What measures has its own."""
    groups: list[list[Step]] = []
    for stage, scope in planned:
        alone = stage.measures or (groups and groups[-1][0][0].measures and not stage.records)
        if alone or not groups:
            groups.append([])
        groups[-1].append((stage, scope))
    return groups


def _submitted(given: Sequence[Sequence[str]], master: str, log: Path, claim: Mapping[str, str]) -> processes.Leader:
    """Starts spark-submit. given: of each stage, its job and the job's arguments."""
    parameters = settings(master, {}, [json.dumps(given)], python=sys.executable, stays=True)
    conf = [part for key, value in parameters["conf"].items() for part in ("--conf", f"{key}={value}")]
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master, *conf]
    command += [str(shipped("jobs/several.py")), *parameters["application_args"]]
    return processes.Leader(command, {**os.environ, **parameters["env_vars"], **claim}, log)
