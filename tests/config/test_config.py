"""Benchmark files: what is accepted, and one line that says key, found and allowed for what is not."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_record
from streamgauge.base.units import Duration
from tests.config.samples import SOUND, changed, loaded
from tests.conftest import ROOT


def test_defaults_and_files_from_where_the_benchmark_lies(tmp_path: Path) -> None:
    benchmark = loaded(tmp_path / "b.yaml", SOUND)
    assert benchmark.source.files == (str(tmp_path / "f.csv"),)
    experiment = benchmark.experiments[0]
    assert (experiment.delay.min, experiment.delay.max) == (Duration(0), Duration.parse("2s"))
    assert (experiment.seed, experiment.outputs, experiment.on_infeasible) == (42, ("parquet",), "error")
    assert benchmark.all_cells() == ()


def test_an_experiment_as_it_came_has_no_delay_and_reads_back(tmp_path: Path) -> None:
    benchmark = loaded(tmp_path / "b.yaml", changed("experiments", 0, value={"name": "e", "target": "source"}))
    (experiment,) = benchmark.experiments
    assert (experiment.fraction, experiment.delay.max, experiment.wanted) == (None, Duration(0), "as it came")
    written = benchmark.model_dump(mode="json")
    assert "target_percent" not in written["experiments"][0]
    assert config.parse(config.Benchmark, written, "written") == benchmark


def test_a_target_is_exactly_what_is_written(tmp_path: Path) -> None:
    benchmark = loaded(tmp_path / "b.yaml", changed("experiments", 0, "target_percent", value=0.1))
    assert benchmark.experiments[0].fraction == Fraction(1, 1000)


EXAMPLES = sorted(
    str(path.relative_to(ROOT)) for at in ("configs", "examples/jobs") for path in (ROOT / at).glob("*.yaml")
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_file_of_configs_and_of_example_jobs_is_accepted(name: str) -> None:
    assert config.load(ROOT / name).experiments


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("naem",), "x", "naem: unknown key; did you mean name?"),
        (("source", "separater"), ";", "source.separater: unknown key; did you mean separator?"),
        (("experiments", 0, "targets"), 3, "experiments.0.targets: unknown key; did you mean target?"),
        (("experiments", 0, "target"), 3, "experiments.0.target: found 3, allowed: 'source'"),
        (("experiments", 0, "target"), "source", "experiments.0: target: found beside target_percent, allowed: one of"),
        (("experiments", 0, "target_percent"), None, "experiments.0: target_percent: this key is missing; or write "),
        (("experiments", 0), {"name": "e", "target": "source", "delay": {"max": "2s"}}, "delay: found with target: so"),
        (("name",), None, "name: this key is missing"),
        (("name",), "a b", "name: found 'a b'"),
        (("source", "time", "unit"), "sec", "source.time.unit: found 'sec', allowed: 'ps', 'ns', 'us', 'ms' or 's'"),
        (("source", "time", "format"), "%Y", "source.time: give at most one of unit, format, iso"),
        (("source", "time", "zone"), "Mars/Base", "source.time.zone: found 'Mars/Base', allowed: an IANA zone"),
        (("source", "time", "column"), -1, "source.time.column: found -1, allowed: a name, or a 0-based index"),
        (("source", "time", "column"), True, "source.time.column: found True, allowed: a name, or a 0-based index"),
        (("source", "separator"), "::", "source.separator: found '::', allowed: one ASCII character"),
        (("source", "separator"), "\n", "allowed: one ASCII character"),
        (("source", "order"), "arrival", "source: order: arrival needs an arrival column"),
        (("source", "columns"), {"seq": "int64"}, "found 'seq', which is reserved by Streamgauge"),
        (("source", "columns"), {"Line": "string"}, "found 'Line', which is reserved by Streamgauge"),
        (("source", "columns"), {"sentinel": "string"}, "found 'sentinel', which is reserved by Streamgauge"),
        (("source", "columns"), {"a": "string", "A": "string"}, "found 'a' twice, ignoring case"),
        (("source", "columns"), {"Last, First": "string"}, "found 'Last, First', allowed: names without . and `"),
        (("source", "columns"), {"id.orig_h": "string"}, "found 'id.orig_h', allowed: names without . and `"),
        (("source", "max_bad_fraction"), 1.5, "source.max_bad_fraction: found 1.5, allowed: at most 1"),
        (("experiments",), [], "experiments"),
        (("experiments", 0, "target_percent"), 101, "experiments.0.target_percent: found 101, allowed: at most 100"),
        (("experiments", 0, "target_percent"), -1, "experiments.0.target_percent: found -1, allowed: at least 0"),
        (("experiments", 0, "target_percent"), float("nan"), "experiments.0.target_percent: found nan"),
        (("experiments", 0, "seed"), -1, "experiments.0.seed: found -1"),
        (("experiments", 0, "delay"), {"min": "3s"}, "experiments.0.delay: min: found 3s, which is above max 2s"),
        (("experiments", 0, "delay"), {"min": "-1s"}, "experiments.0.delay.min: found -1s, allowed: 0 or more"),
        (
            ("experiments", 0, "delay"),
            {"max": "2 weeks"},
            "experiments.0.delay.max: found '2 weeks', allowed: a number",
        ),
        (("experiments", 0, "delay"), {"max": 2}, "experiments.0.delay.max: found 2, allowed: a number and one of"),
        (
            ("experiments", 0, "delay"),
            {"mean": "1s"},
            "mean: found with uniform, which does not use it, allowed: min, max",
        ),
        (
            ("experiments", 0, "delay"),
            {"distribution": "normal", "alpha": 2},
            "alpha: found with normal, which does not use it, allowed: min, max, mean, stddev",
        ),
        (("experiments", 0, "delay"), {"distribution": "normal", "stddev": "-1s"}, "stddev: found -1s, allowed: 0 or"),
        (("experiments", 0, "outputs"), ["avro"], "experiments.0.outputs.0: found 'avro', allowed: 'parquet', 'csv'"),
        (
            ("experiments", 0, "outputs"),
            ["csv", "csv-parts"],
            "experiments.0.outputs: found csv and csv-parts, allowed: one of them",
        ),
        (("replay",), {"remote": ["gen1:99999"]}, "replay.remote.0: found gen1:99999, allowed: a port from 1 to 65535"),
        (("scale",), 0, "scale: found 0, allowed: above 0"),
        (
            ("workloads",),
            [{"name": "w", "query": "passthrough", "watermark": "-1s"}],
            "workloads.0.watermark: found -1s, allowed: 0 or more",
        ),
        (
            ("workloads",),
            [{"name": "w", "query": "passthrough", "window": "-10s"}],
            "workloads.0.window: found -10s, allowed: 0 or more",
        ),
        (("search",), {"max_age": "0s"}, "search: max_age: found 0s, allowed: a time above 0"),
        (("search",), {"min_rate": 10, "max_rate": 5}, "search: min_rate: found 10, which is above max_rate 5"),
        (
            ("cells",),
            [{"experiment": "e", "workload": "w", "system": "s"}],
            "cells.workload: found 'w', allowed: none",
        ),
    ],
)
def test_a_mistake_is_one_line_with_key_found_and_allowed(
    tmp_path: Path, place: tuple[str | int, ...], value: Any, said: str
) -> None:
    with pytest.raises(UserError) as problem:
        loaded(tmp_path / "b.yaml", changed(*place, value=value))
    message = str(problem.value)
    assert message.startswith(f"{tmp_path}/b.yaml:") or place == ("cells",)
    assert said in message
    assert len(getattr(problem.value, "lines", [message])) == 1, "one mistake, one complaint"
    assert "\n" not in message


def test_a_secret_in_place_of_its_variable_is_refused_and_not_repeated(tmp_path: Path) -> None:
    sink = {"type": "http", "url": "http://h/", "headers_from_env": {"Authorization": "Bearer s3cret"}}
    with pytest.raises(UserError) as problem:
        loaded(tmp_path / "b.yaml", changed("metrics", value={"sinks": [sink]}))
    said = str(problem.value)
    assert "metrics.sinks.0.headers_from_env: Authorization: found no name of an environment variable" in said
    assert "s3cret" not in said


@pytest.mark.parametrize("key", ["experiments", "workloads", "systems"])
def test_names_that_occur_twice_are_refused(tmp_path: Path, key: str) -> None:
    items: dict[str, dict[str, Any]] = {
        "experiments": {"target_percent": 1}, "workloads": {"query": "passthrough"}, "systems": {},
    }  # fmt: skip
    item = items[key]
    raw = SOUND | {key: [{"name": "a", **item}, {"name": "b", **item}, {"name": "a", **item}]}
    with pytest.raises(UserError, match=rf"b.yaml(:\d+:\d+)?: {key}: found the name 'a' twice; names must differ"):
        loaded(tmp_path / "b.yaml", raw)


@pytest.mark.parametrize("name", ["x-nightly", "a-release"])
def test_a_name_that_another_dag_s_runs_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=rf"b.yaml:\d+:1: name: found '{name}', allowed: no name that ends in"):
        loaded(tmp_path / "b.yaml", changed("name", value=name))


def test_anchors_and_merge_keys_are_yaml_too(tmp_path: Path) -> None:
    text = yaml.safe_dump(SOUND | {"experiments": []}).replace("experiments: []\n", "")
    text += "experiments:\n- &a {name: a, target_percent: 5, seed: 9}\n- {<<: *a, name: b}\n"
    benchmark = loaded(tmp_path / "b.yaml", text)
    assert [(e.name, e.target_percent, e.seed) for e in benchmark.experiments] == [("a", 5, 9), ("b", 5, 9)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\nname: b\n", "line 2: not valid YAML: the key 'name' is given twice"),
        ("name: [a\nsource: b", "not valid YAML"),
        ("- a\n", "found list, allowed: a mapping"),
        ("", "found NoneType, allowed: a mapping"),
        ("1: a\n", "line 1: not valid YAML: the key 1 is not text"),
        ("on: a\n", "the key True is not text"),
        ("? [a, b]\n: c\n", "line 1: not valid YAML: the key [] is not text"),
    ],
)
def test_a_file_that_is_no_benchmark_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as problem:
        loaded(tmp_path / "b.yaml", text)
    assert said in str(problem.value)
    assert str(tmp_path / "b.yaml") in str(problem.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file; name a benchmark file"):
        config.load(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="cannot be read as UTF-8 text"):
        config.load(tmp_path)
    (tmp_path / "latin").write_bytes(b"name: \xe9\n")
    with pytest.raises(UserError, match="cannot be read as UTF-8 text"):
        config.load(tmp_path / "latin")


# -- the JSON of the DEBS 2019 poster


def test_two_cells_of_one_name_are_refused(tmp_path: Path) -> None:
    given = changed("experiments", value=[{"name": name, "target_percent": 0} for name in ("p5", "p5.exp")])
    given["workloads"] = [{"name": name, "query": "passthrough"} for name in ("sum", "exp.sum")]
    given["systems"] = [{"name": "s", "engine": "known"}]
    with pytest.raises(UserError, match=r"cells: found p5.exp.sum.s twice \(p5, exp.sum, s; p5.exp, sum, s\)"):
        loaded(tmp_path / "b.yaml", given)


def test_a_parquet_source_needs_its_quotes(tmp_path: Path) -> None:
    given = changed("source", "format", value="parquet")
    given["source"]["quote"] = None
    with pytest.raises(UserError, match="quote: found null, allowed for format parquet: a character"):
        loaded(tmp_path / "b.yaml", given)


def test_a_pipe_a_device_and_a_huge_file_are_told_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with open(tmp_path / "huge.yaml", "wb") as huge:
        huge.truncate(1 << 34)
    for name, said in (
        (tmp_path / "pipe.yaml", "a device or a pipe, allowed: a regular file"),
        (Path("/dev/zero"), "a device or a pipe, allowed: a regular file"),
        (tmp_path / "huge.yaml", "found 17,179,869,184 bytes, allowed: up to 16,777,216"),
    ):
        with pytest.raises(UserError) as problem:
            config.load(name)
        assert str(problem.value) == f"{name}: cannot be read as UTF-8 text: {said}"


@pytest.mark.parametrize(
    ("release", "allowed"),
    [
        ({"compare": ["rates"]}, "compare: found 'rates', allowed: rate, latency, cpu"),
        ({"compare": []}, "compare: found 'none', allowed: rate, latency, cpu"),
        ({"compare": ["cpu"], "tolerance": {"processing_latency_ms_p50": 0.2}}, "allowed: system_cpu_us_per_event"),
        (
            {"tolerance": {"event_latency_ms_p50": 0.2}},
            "allowed: processing_latency_ms_p50, processing_latency_ms_p99, s",
        ),
    ],
)
def test_a_release_check_compares_what_versions_change(release: dict[str, object], allowed: str) -> None:
    with pytest.raises(UserError, match=re.escape(allowed)):
        config.parse(config.Release, {"rate": 10, **release}, "release")


def test_what_is_compared_is_judged_at_a_tenth() -> None:
    assert config.Release(rate=10).tolerance == {
        "processing_latency_ms_p50": 0.1, "processing_latency_ms_p99": 0.1, "system_cpu_us_per_event": 0.1,
    }  # fmt: skip
    assert config.Release(rate=10, compare=("cpu",)).tolerance == {"system_cpu_us_per_event": 0.1}
    assert config.Release(rate=10, compare=("catchup",)).tolerance == {"catchup_seconds": 0.1}
    assert config.Release(rate=10, compare=("rate",)).tolerance == {"sustainable_rate_events_per_s": 0.1}


@pytest.mark.parametrize(
    ("more", "in_turns"),
    [
        ({}, True),
        ({"search": {"in_turns": False}}, False),
        ({"nightly": {}}, False),
        ({"nightly": {}, "search": {"in_turns": True}}, True),
        ({"replay": {"remote": ["a:1"]}}, False),
        ({"cells": [{"experiment": "e", "workload": "w", "system": "s"}]}, False),
        ({"workloads": []}, False),
        ({"systems": [{"name": "s", "engine": "job", "command": ["a"], "bootstrap": "b:1"}]}, False),
    ],
)
def test_cells_take_turns_where_they_share_a_process_and_there_are_no_nights(
    more: dict[str, object], in_turns: bool
) -> None:
    two = [{"name": name, "target_percent": 0} for name in "ef"]
    text = {
        "name": "b", "source": {"files": "a.csv", "time": {"column": "t"}}, "experiments": two,
        "workloads": [{"name": "w", "query": "passthrough"}], "systems": [{"name": "s"}],
    }  # fmt: skip
    benchmark = config.parse(config.Benchmark, text | more, "b.yaml")
    assert benchmark.search.in_turns is in_turns
    assert config.Overrides(experiments=("e",)).apply(benchmark).search.in_turns is in_turns


def test_a_night_recorded_before_emails_went_by_apprise_is_read(tmp_path: Path) -> None:
    made = loaded(tmp_path / "b.yaml", SOUND | {"nightly": {}})
    recorded = made.model_dump(mode="json")
    write_record(tmp_path / "benchmark.json", recorded | {"nightly": recorded["nightly"] | {"email": None}})
    assert config.of_run(tmp_path) == made
    write_record(tmp_path / "benchmark.json", recorded | {"nightly": recorded["nightly"] | {"email": {"to": "a@b"}}})
    with pytest.raises(UserError, match=r"nightly\.email: unknown key"):
        config.of_run(tmp_path)
