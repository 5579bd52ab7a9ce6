"""Tests what one run may choose of a benchmark file: streams, queries, systems, cells, and how deep the search goes."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.config import Benchmark, Overrides, parse

FILE: dict[str, Any] = {
    "name": "b",
    "source": {"files": "x.csv", "time": {"column": 0, "unit": "s"}, "header": False},
    "experiments": [{"name": "calm", "target_percent": 0}, {"name": "wild", "target_percent": 50, "seed": 7}],
    "workloads": [{"name": "all", "query": "passthrough"}, {"name": "none", "query": "discard"}],
    "systems": [{"name": "one"}, {"name": "two"}],
}
FEW = [
    {"experiment": "calm", "workload": "all", "system": "one"},
    {"experiment": "wild", "workload": "all", "system": "two"},
]


def chosen(choice: dict[str, Any], **more: Any) -> Benchmark:
    return parse(Overrides, choice, "overrides").apply(parse(Benchmark, {**FILE, **more}, "test"))


def cells(benchmark: Benchmark) -> list[str]:
    return [cell.name for cell in benchmark.all_cells()]


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ({"experiments": ["wild"], "workloads": ["all"]}, ["wild.all.one", "wild.all.two"]),
        ({"experiments": ["calm"], "systems": ["two"]}, ["calm.all.two", "calm.none.two"]),
        ({"cells": ["wild.none.two", "calm.all.one"]}, ["calm.all.one", "wild.none.two"]),
        ({"cells": ["calm.all.one", "wild.none.two"], "systems": ["two"]}, ["wild.none.two"]),
        ({"experiments": ["wild", "wild"], "systems": ["two", "two"]}, ["wild.all.two", "wild.none.two"]),
    ],
)
def test_cells_are_those_of_the_choice(choice: dict[str, Any], left: list[str]) -> None:
    assert cells(chosen(choice)) == left


def test_a_file_that_names_its_cells_keeps_those_that_the_choice_leaves() -> None:
    assert cells(chosen({}, cells=FEW)) == ["calm.all.one", "wild.all.two"]
    assert cells(chosen({"systems": ["two"]}, cells=FEW)) == ["wild.all.two"]
    assert cells(chosen({"experiments": ["calm"], "systems": ["two"]}, cells=FEW)) == []


def test_scale_seed_outputs_and_the_depth_of_the_search_replace_those_of_the_file() -> None:
    benchmark = chosen({"scale": 0.5, "seed": 3, "outputs": ["csv"], "processes": 3, "proof_steps": 0})
    assert (benchmark.scale, benchmark.search.processes, benchmark.search.proof_steps) == (0.5, 3, 0)
    assert [(one.seed, one.outputs) for one in benchmark.experiments] == [(3, ("csv",)), (3, ("csv",))]
    as_it_is = chosen({})
    assert [one.seed for one in as_it_is.experiments] == [42, 7]
    assert as_it_is == parse(Benchmark, FILE, "test")


def test_a_first_look_has_short_windows_and_what_is_asked_beside_it() -> None:
    benchmark = chosen({"quick": True, "proof_steps": 0}, search={"max_age": "3s", "processes": 3})
    assert (str(benchmark.search.max_age), benchmark.search.processes, benchmark.search.proof_steps) == ("3s", 1, 0)
    assert (benchmark.search.window_seconds, benchmark.search.yardstick) == (1.5, False)
    assert (benchmark.latency.fractions, benchmark.latency.seconds) == ((0.5,), 5.0)
    record = benchmark.model_dump(mode="json")
    assert [one.quick for one in (benchmark, parse(Benchmark, record, "its record"))] == [True, True]
    assert not chosen({}, search=record["search"]).quick, "a file that has its values is none"
    shorter = chosen({"quick": True}, catchup={"minutes": 5, "rate": 10}).catchup
    assert shorter is not None
    assert (shorter.minutes, shorter.repeats, shorter.rate) == (1, 2, 10)
    old = chosen({"quick": True}, search={"max_age": "90s"}, catchup={"minutes": 5, "rate": 10})
    assert old.catchup is not None
    assert old.catchup.minutes == 3, "a backlog is older than search.max_age"
    struck = chosen({"quick": True}, recovery={"rate": 10, "repeats": 5, "faults": ["kill"]}).recovery
    assert struck is not None
    assert (struck.repeats, struck.faults) == (2, ("kill",))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"workloads": ["al"]}, "workload: found 'al', allowed: all, none"),
        ({"systems": ["three"]}, "system: found 'three', allowed: one, two"),
        ({"cells": ["calm.all.three"]}, "cell: found 'calm.all.three', allowed: calm.all.one, "),
        (
            {"cells": ["calm.all.one"], "experiments": ["wild"]},
            "cells: calm.all.one: none is left, as their experiment",
        ),
        ({"processes": 0}, "overrides: processes: "),
        ({"proof_steps": 5}, "overrides: proof_steps: "),
    ],
)
def test_a_wrong_choice_is_one_line(choice: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        chosen(choice)
    assert str(refused.value).startswith(said)
    assert len(str(refused.value).splitlines()) == 1
