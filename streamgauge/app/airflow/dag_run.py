"""`streamgauge run`: runs one benchmark through a private Airflow and reports its progress in short lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from streamgauge import config
from streamgauge.app.airflow import home, stage_runs, summary
from streamgauge.app.airflow.progress import Watch, relay
from streamgauge.app.airflow.services import ui
from streamgauge.base import processes
from streamgauge.base.live import Live, tell, took
from streamgauge.base.places import here
from streamgauge.base.words import counted
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.claims import claimed
from streamgauge.catalog.run_log import RunLog
from streamgauge.streams.stages.session import check_master

__all__ = ["run", "ui"]


def run(
    file: Path,
    benchmark: config.Benchmark,
    store: Store,
    overrides: Mapping[str, object],
    *,
    run_id: str,
    master: str | None,
    only: str | None,
    alone: bool,
) -> int:
    """Runs every stage of the benchmark; returns 0 if all went well, 1 if a task failed, 130 on Ctrl-C.

    overrides: those that are applied to the benchmark. run_id: a run to begin or to continue: what it has measured is
    kept. only: the stage to run, after those that it needs, without Airflow. alone: run all without Airflow.

    Raises UserError for problems that show before anything starts, and while another process has that run.
    """
    if master:
        check_master(master)
    with claimed(store.run(run_id)) as claim:
        if only or alone:
            began = time.monotonic()
            code = stage_runs.run(
                file, benchmark, store, overrides, only=only, run_id=run_id, claim=claim, master=master
            )
            if only is None:
                return _ended(benchmark, store, run_id, failed=bool(code), began=began)
            if only in (*benchmark.sections, "turns"):
                summary.show_figures(benchmark, store, RunLog(store.run(run_id)))
            return code
        return _run(file, benchmark, store, overrides, run_id=run_id, claim=claim, master=master)


def _run(
    file: Path,
    benchmark: config.Benchmark,
    store: Store,
    overrides: Mapping[str, object],
    *,
    run_id: str,
    claim: Mapping[str, str],
    master: str | None,
) -> int:
    directory = store.run(run_id)
    environment = home.environment(here(store.root) / "airflow" / "run", store.root, file.absolute(), master)
    environment |= {**claim, "STREAMGAUGE_RUN_ID": run_id}
    log = here(directory) / "airflow.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    asked = [counted(len(benchmark.experiments), "experiment"), counted(len(benchmark.all_cells()), "cell")]
    tell(f"run {run_id}: {', '.join(asked)}; log {log}")
    command = [*home.AIRFLOW, "dags", "test", f"streamgauge_{benchmark.name}", "--conf", json.dumps(overrides)]
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
    return _ended(benchmark, store, run_id, failed=failed, began=begin)


def _ended(benchmark: config.Benchmark, store: Store, run_id: str, *, failed: bool, began: float) -> int:
    """Says what a run that has ended measured, and where its page is; returns its exit code."""
    directory = store.run(run_id)
    summary.show(benchmark, store, RunLog(directory))
    page = directory / "index.html"
    tell(f"{'failed' if failed else 'done'} in {time.monotonic() - began:.0f} s")
    tell(f"page: {page}" if page.exists() else f"no page was made; see the logs in {directory}")
    return int(failed)
