"""Tests which stages `run --only` submits: those that must succeed before, for the scopes that are needed."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.airflow.stage_runs import tasks
from streamgauge.base.errors import UserError
from streamgauge.config import Benchmark, parse

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
