"""`streamgauge run`: runs one benchmark by a private Airflow, or without one, and tells its progress in short lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping

from streamgauge.app.airflow import home, stage_runs, summary
from streamgauge.app.airflow.progress import Watch, relay
from streamgauge.app.airflow.services import ui
from streamgauge.app.airflow.stage_runs import BenchmarkRun
from streamgauge.base import processes
from streamgauge.base.live import Live, tell, took
from streamgauge.base.places import here
from streamgauge.base.words import counted
from streamgauge.catalog.claims import claimed
from streamgauge.catalog.run_log import RunLog
from streamgauge.streams.stages.session import check_master

__all__ = ["BenchmarkRun", "run", "ui"]


def run(one: BenchmarkRun, *, only: str | None, alone: bool) -> int:
    """Runs every stage of the benchmark; returns 0 if all went well, 1 if a task failed or an answer was wrong.

    With Airflow it returns 130 on Ctrl-C; without, a KeyboardInterrupt passes.
    only: the stage to run, after those that it needs, without Airflow. alone: run all without Airflow.

    Raises UserError for problems that show before anything starts, and while another process has that run.
    """
    if one.master:
        check_master(one.master)
    with claimed(one.directory) as claim:
        if not (only or alone):
            return _by_airflow(one, claim)
        began = time.monotonic()
        code = stage_runs.run(one, only, claim)
        if only is None:
            return _ended(one, failed=bool(code), began=began)
        if only in (*one.benchmark.sections, "turns"):
            return code or int(not summary.show_figures(one.benchmark, one.store, RunLog(one.directory)))
        return code


def _by_airflow(one: BenchmarkRun, claim: Mapping[str, str]) -> int:
    benchmark, directory, root = one.benchmark, one.directory, one.store.root
    environment = home.environment(here(root) / "airflow" / "run", root, one.file.absolute(), one.master)
    environment |= {**claim, "STREAMGAUGE_RUN_ID": one.run_id}
    log = here(directory) / "airflow.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    asked = [counted(len(benchmark.experiments), "experiment"), counted(len(benchmark.all_cells()), "cell")]
    tell(f"run {one.run_id}: {', '.join(asked)}; log {log}")
    command = [*home.AIRFLOW, "dags", "test", f"streamgauge_{benchmark.name}", "--conf", json.dumps(one.overrides)]
    begin = time.monotonic()
    try:
        with processes.stoppable():
            with Live(lambda: f"  preparing Airflow, {took(time.monotonic() - begin)}", sys.stdout):
                home.prepare(environment)
            process = processes.Leader(command, environment, log)
            # Airflow takes the end of a stage for a failure: it must be gone before it tries again
            relay(process, RunLog(directory), Watch(benchmark, log), home.RETRY_SECONDS - 1)
    except KeyboardInterrupt:
        tell("stopped")
        return 130
    failed = process.returncode != 0
    if failed and all(stage.state in ("done", "partly") for stage in RunLog(directory).stages()):
        tell(f"Airflow failed outside of the stages; see the end of {log}")
    return _ended(one, failed=failed, began=begin)


def _ended(one: BenchmarkRun, *, failed: bool, began: float) -> int:
    """Says what a run that has ended measured, and where its page is; returns its exit code."""
    right = summary.show(one.benchmark, one.store, RunLog(one.directory))
    page = one.directory / "index.html"
    state = "failed" if failed else "done" if right else "done, with wrong answers,"
    tell(f"{state} in {time.monotonic() - began:.0f} s")
    tell(f"page: {page}" if page.exists() else f"no page was made; see the logs in {one.directory}")
    return int(failed or not right)
