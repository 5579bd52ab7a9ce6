"""Tests which stages `run --only` submits: those that must succeed before, for the scopes that are needed.

The command itself, and what it prints with --json: tests/kafka/test_topic_runs.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.airflow import progress, stage_runs
from streamgauge.app.airflow.stage_runs import BenchmarkRun, tasks, together
from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.config import Benchmark, fingerprint, parse
from streamgauge.config.sections import benchmark_model

FILE: dict[str, Any] = {
    "name": "b",
    "source": {"files": "x.csv", "time": {"column": 0, "unit": "s"}, "header": False},
    "experiments": [{"name": "calm", "target_percent": 0}, {"name": "wild", "target_percent": 50}],
    "workloads": [{"name": "all", "query": "passthrough"}],
    "systems": [{"name": "one"}],
    "cells": [{"experiment": "wild", "workload": "all", "system": "one"}],
}
BENCHMARK = parse(Benchmark, FILE, "test")


@pytest.mark.parametrize(
    ("only", "submitted"),
    [
        ("ingest", ["ingest"]),
        ("analyze", ["ingest", "analyze"]),
        ("generate", ["ingest", "generate calm", "generate wild"]),
        ("validate", ["ingest", "generate calm", "validate calm", "generate wild", "validate wild"]),
        ("search", ["ingest", "generate wild", "validate wild", "search wild all one"]),
        ("report", ["report"]),  # it shows what there is
        (None, ["ingest", "analyze", "generate calm", "generate wild", "validate calm", "validate wild",
                "search wild all one", "latency wild all one", "report"]),
    ],
)  # fmt: skip
def test_only_what_must_succeed_before_is_submitted_and_once(only: str | None, submitted: list[str]) -> None:
    assert [" ".join([stage.name, *scope.values()]) for stage, scope in tasks(BENCHMARK, only)] == submitted


@pytest.mark.parametrize("in_turns", [False, True])
@pytest.mark.parametrize("name", ["catchup", "recovery", "soak"])
def test_what_names_its_rate_needs_no_search(name: str, in_turns: bool) -> None:
    before = ["ingest", "generate", "validate"]
    for section, searches in (({"rate": 1000}, []), ({}, ["turns" if in_turns else "search"])):
        given = {**FILE, "search": {"in_turns": in_turns}, name: section}
        steps = tasks(parse(Benchmark, given, "test"), name)
        assert list(dict.fromkeys(stage.name for stage, _ in steps)) == [*before, *searches, name]


def test_what_measures_has_a_process_of_its_own_and_the_page_goes_on_in_it() -> None:
    groups = together([*tasks(BENCHMARK, None), *tasks(BENCHMARK, "generate")])
    assert [[stage.name for stage, _ in group] for group in groups] == [
        ["ingest", "analyze", "generate", "generate", "validate", "validate"],
        ["search"],
        ["latency", "report"],
        ["ingest", "generate", "generate"],
    ]


@pytest.mark.usefixtures("plugin")
def test_a_measurement_after_turns_waits_for_the_streams_of_all_experiments() -> None:
    cells = [{**FILE["cells"][0], "experiment": name} for name in ("calm", "wild")]
    raw = {**FILE, "cells": cells, "search": {"in_turns": True}, "example_pauses": {}}
    planned = tasks(parse(benchmark_model(), raw, "test"), "example_pauses")
    assert [" ".join([stage.name, *scope.values()]) for stage, scope in planned] == [
        "ingest",
        *("generate calm", "validate calm", "generate wild", "validate wild"),
        "turns",
        *("example_pauses calm all one", "example_pauses wild all one"),
    ]


def test_a_stage_that_is_done_is_left_out_with_the_same_settings_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[str] = []

    def run(benchmark: Benchmark) -> list[str]:
        def submit(given: list[list[str]], *_: object) -> None:
            for stage, *_rest in given:
                submitted.append(stage)
                with RunLog(tmp_path / "runs" / "r").stage(stage, {}) as facts:
                    facts["settings"] = fingerprint(benchmark)

        submitted.clear()
        monkeypatch.setattr(stage_runs, "_submitted", submit)
        monkeypatch.setattr(stage_runs, "relay", lambda *_: None)
        file = tmp_path / "b.yaml"
        assert stage_runs.run(BenchmarkRun(file, benchmark, Store(tmp_path), {}, "r"), "analyze", {}) == 0
        return list(submitted)

    assert run(BENCHMARK) == ["ingest", "analyze"]
    assert run(BENCHMARK) == ["analyze"]
    assert run(BENCHMARK.model_copy(update={"scale": 0.5})) == ["ingest", "analyze"]


def test_an_unknown_stage_is_one_line_with_those_that_the_benchmark_has() -> None:
    with pytest.raises(
        UserError, match=r"^--only: found 'turns', allowed: ingest, analyze, generate, validate, search"
    ):
        tasks(BENCHMARK, "turns")


def test_the_last_step_is_what_a_job_of_this_stage_logged_last(tmp_path: Path) -> None:
    log = tmp_path / "stages.log"
    assert progress.last_step(log, 0) == ""
    log.write_text("12:00:01 generate took 8.3 s\n")
    begin = log.stat().st_size
    assert (progress.last_step(log, 0), progress.last_step(log, begin)) == (" (generate took 8.3 s)", "")
    with log.open("a") as file:
        file.write("2026-11-27T12:00:09Z [info] 12:00:09   at 50 events/s: offered 9 [airflow.x] loc=x:1\nWARN x\n")
    assert progress.last_step(log, begin) == " (at 50 events/s: offered 9)"


def test_who_waits_is_told_the_stage_its_step_and_what_is_left(tmp_path: Path) -> None:
    log = tmp_path / "airflow.log"
    log.write_text("12:00:01 generate took 8.3 s\n")
    watch = progress.Watch(BENCHMARK, log)
    assert re.fullmatch(r"  starting, 0 s in all; about \d+ min left", watch.state())

    def record(state: str) -> StageRecord:
        scope = {"experiment": "calm"}
        return StageRecord(stage="generate", scope=scope, attempt="1", state=state, at="", started_at="")

    watch.seen([record("started")])
    with log.open("a") as file:
        file.write("12:00:02 sorting\n")
    assert re.fullmatch(r"  generate calm, 0 s; about \d+ min left \(sorting\)", watch.state())
    watch.seen([record("done")])
    assert re.fullmatch(r"  between stages, 0 s in all; about \d+ min left", watch.state())
    assert progress.Watch(None, log).state() == "  starting, 0 s in all"
