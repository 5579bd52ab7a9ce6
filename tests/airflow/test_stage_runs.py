"""Tests which stages `run --only` submits: those that must succeed before, for the scopes that are needed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamgauge.airflow.stage_runs import tasks
from streamgauge.base.errors import UserError
from streamgauge.config import Benchmark, parse
from tests.e2e.processes import COMMAND, write_config

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
    ],
)
def test_only_what_must_succeed_before_is_submitted_and_once(only: str, submitted: list[str]) -> None:
    assert [" ".join([stage.name, *scope.values()]) for stage, scope in tasks(BENCHMARK, only)] == submitted


def test_an_unknown_stage_is_one_line_with_those_that_the_benchmark_has() -> None:
    with pytest.raises(
        UserError, match=r"^--only: found 'turns', allowed: ingest, analyze, generate, validate, search"
    ):
        tasks(BENCHMARK, "turns")


@pytest.mark.e2e
@pytest.mark.timeout(180)
def test_a_run_with_json_prints_one_object_and_tells_the_rest_on_standard_error(tmp_path: Path) -> None:
    config = write_config(tmp_path / "small.yaml", ["{name: calm, target_percent: 0}"])
    arguments = [str(config), "--only", "ingest", "--artifacts", str(tmp_path / "a"), "--run", "mine", "--json"]
    done = subprocess.run([COMMAND, "run", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = str(tmp_path / "a" / "runs" / "mine")
    assert json.loads(done.stdout) == {"run": "mine", "exit_code": 0, "records": records, "page": None}
    assert "ingest" in done.stderr
