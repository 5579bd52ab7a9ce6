"""Records of stages, figures, judgements and releases: each has a schema and a version, and is what was written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from streamgauge.base.environment import environment
from streamgauge.base.errors import Damaged
from streamgauge.base.jsonl import write_record
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.judgement import (
    Acceptance,
    Evidence,
    Judgement,
    Look,
    Outcome,
    ReleaseVerdict,
    Rerun,
    SelfTest,
    Step,
)
from streamgauge.records.registry import RECORDS, schema_of
from streamgauge.records.stages import StageLine
from streamgauge.stats.ab import compare
from streamgauge.stats.outcomes import Change
from tests.example_search import System, search


@pytest.mark.parametrize("name", RECORDS)
def test_each_schema_is_one(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    one = schema.get("items", schema)
    assert {"version", "crc32"} <= one["properties"].keys()


def test_what_has_no_version_is_no_record(tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    write_record(file, {key: value for key, value in search(System(1.0, 2.25e-5), 8).items() if key != "version"})
    with pytest.raises(Damaged, match=r"search.json: version: found none, allowed: 1; run its stage again$"):
        SearchAnswer.read(file)


def test_a_stage_and_a_judgement_are_what_was_written(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    with log.stage("search", {"experiment": "e"}) as outcome:
        outcome |= {"key": "k", "cells": ("a", "b")}
    started, done = StageLine.read_log(tmp_path / "stages.jsonl")
    assert (started.state, done.state, done.outcome) == ("started", "done", {"key": "k", "cells": ["a", "b"]})
    assert done.environment == environment()
    (record,) = log.stages()
    assert (record.started_at, record.environment) == (started.at, done.environment)
    check = Draft202012Validator(schema_of("stages"))
    for line in (tmp_path / "stages.jsonl").read_text().splitlines():
        check.validate(json.loads(line))
    change = Change(9, math.inf, (0.02, math.inf), 0.93, 1.0, 1.03)
    comparison = compare([1.0] * 4, [1.1] * 4)
    evidences: list[tuple[Outcome, Evidence]] = [
        ("regression", Rerun(change=change, comparison=comparison, after={"spark": "4.3.0", "memory_gib": 7.6})),
        ("self", SelfTest(comparison=comparison, baseline=(1.0,), candidate=(2.0,))),
        ("accepted", Acceptance(reason="r", author="a", at="2026-03-01")),
        ("release_check", ReleaseVerdict(verdict="go")),
        ("look", Look(steps=(Step(at="2026-03-01", magnitude=0.1, interval=None, confidence=0.9),))),
    ]
    judged = [Judgement("n", "k", "2026-03-01", outcome, 0.1, evidence) for outcome, evidence in evidences]
    for one in judged:
        results.judge(tmp_path, one)
    assert [one for _, one in results.numbered_judgements(tmp_path)[0]] == judged
