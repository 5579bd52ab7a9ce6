"""A stage whose experiment failed before is skipped, not failed: record, summary and page say why."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from streamgauge import config
from streamgauge.app.airflow.progress import line
from streamgauge.app.stage_job import Job
from streamgauge.base.errors import Skipped, UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.metrics.pipeline import Pipeline
from streamgauge.results.report.run_records import Records

RAW: dict[str, Any] = {
    "name": "b",
    "source": {"files": "none.csv", "time": {"column": "t", "unit": "s"}},
    "experiments": [{"name": "late20", "target_percent": 20}],
    "workloads": [{"name": "all", "query": "passthrough"}],
    "systems": [{"name": "known", "engine": "known"}],
}
SCOPE = {"experiment": "late20", "workload": "all", "system": "known"}


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        ("generate", "as generate late20 failed"),
        ("validate", "as validate late20 failed"),
        ("ingest", "as ingest failed"),
        (None, "as ingest did not run"),
    ],
)
def test_what_a_failure_keeps_from_running_is_skipped(tmp_path: Path, failed: str | None, why: str) -> None:
    benchmark, store = config.parse(config.Benchmark, RAW, "test"), Store(tmp_path)
    log = RunLog(store.run("r"))
    for stage in ("ingest", "generate", "validate") if failed else ():
        scope = {} if stage == "ingest" else {"experiment": "late20"}
        if stage == failed:
            with pytest.raises(UserError), log.stage(stage, scope):
                raise UserError("it cannot be reached")
            break
        with log.stage(stage, scope):
            pass
    job = Job(benchmark, store, "r", argparse.Namespace(stage="search", **SCOPE), log, {}, Pipeline(None, "b"))
    with pytest.raises(Skipped), log.stage("search", SCOPE):
        job.require("validate")
    record = log.latest("search", **SCOPE)
    assert record is not None
    assert (record.state, record.error, record.cause) == ("skipped", why, "mistake")
    assert line(record).startswith("  skipped search late20 all known")
    assert line(record).endswith(f": {why}")
    seen = Records(benchmark, store, "r")
    status = seen.status("search", **SCOPE)
    assert (status.outcome, status.reason) == ("missing", f"skipped, {why}")
    if failed:
        assert seen.why(status).startswith("not run: see")


@pytest.mark.parametrize(
    ("section", "why"), [({}, "not run: see search late20 all known"), ({"rate": 1000}, "not run")]
)
def test_a_measurement_at_a_rate_of_its_own_waits_for_no_search(
    tmp_path: Path, section: dict[str, object], why: str
) -> None:
    benchmark, store = config.parse(config.Benchmark, {**RAW, "soak": section}, "test"), Store(tmp_path)
    for stage in ("generate", "validate"):
        with RunLog(store.run("r")).stage(stage, {"experiment": "late20"}):
            pass
    seen = Records(benchmark, store, "r")
    assert seen.why(seen.status("soak", **SCOPE)) == why


def test_what_is_done_only_in_part_is_no_base_for_another_stage(tmp_path: Path) -> None:
    benchmark, store = config.parse(config.Benchmark, RAW, "test"), Store(tmp_path)
    log = RunLog(store.run("r"))
    for stage, scope in (
        ("ingest", {}),
        ("generate", {"experiment": "late20"}),
        ("validate", {"experiment": "late20"}),
    ):
        with log.stage(stage, scope):
            pass
    with log.stage("search", SCOPE) as facts:  # one round of several, after which the stage turns was killed
        facts.is_whole = False
    job = Job(benchmark, store, "r", argparse.Namespace(stage="own", **SCOPE), log, {}, Pipeline(None, "b"))
    with pytest.raises(Skipped, match=r"^as search late20 all known is done only in part$"):
        job.require("search")
    with log.stage("search", SCOPE):
        pass
    job.require("search")
