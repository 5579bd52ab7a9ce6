"""A package outside of the project brings a query, a delay distribution and a data set; nothing here knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.bench import workloads
from streamgauge.bench.driver.system import Unsupported
from streamgauge.bench.engines.flink import queries as flink
from streamgauge.bench.engines.spark import queries as spark
from streamgauge.bench.measure.checks import check_names
from streamgauge.bench.oracle.duck import ask
from streamgauge.bench.workloads import Query, Spec
from streamgauge.config import DelaySpec, datasets
from streamgauge.config.reached import reached, without_own
from streamgauge.streams.disorder.delays import table
from streamgauge.streams.stages.session import library_zip
from tests.command import Call, run
from tests.measure.benches import write_bench
from tests.oracle.test_duck import events

NAME = "example.extremes"
SPEC = Spec(NAME, "name", "amount", 10_000_000)
MINE = {"name": "w", "query": NAME, "key": "carrier", "value": "flight"}
CODE = ("code", "workloads.w.query", "streamgauge_example.extremes:EXTREMES")


def test_without_the_package_its_parts_are_unknown() -> None:
    with pytest.raises(
        UserError, match=r"query\.query: found 'example.extremes', allowed: passthrough, .*nexmark.q0 to"
    ):
        workloads.find(NAME)


@pytest.mark.usefixtures("plugin")
def test_the_question_is_answered_by_duckdb() -> None:
    assert workloads.registry()[-1].name == NAME
    rows = events([(1, "a", 3), (2, "a", 7), (3, "b", 5), (12, "a", 1), (13, None, None)])
    answer = ask(SPEC, (rows,)).select(["key", "smallest", "largest"]).to_pylist()
    assert sorted(map(str, (tuple(row.values()) for row in answer))) == [
        "('a', 1, 1)", "('a', 3, 7)", "('b', 5, 5)", "(None, None, None)",
    ]  # fmt: skip


@pytest.mark.usefixtures("plugin")
def test_each_engine_finds_its_code_and_its_rules() -> None:
    assert spark.place(SPEC) == "streamgauge_example.extremes.spark:query"
    assert spark.rules(SPEC).late_counted == "groups"
    flink.check("f", SPEC)
    assert "INTERVAL '10' SECOND" in str(flink.sql(SPEC))
    assert flink.results(SPEC) == ("window_start", "window_end", "key", "smallest", "largest")


@pytest.mark.usefixtures("plugin")
def test_its_delays_and_its_data_set_have_names_as_ours_have() -> None:
    ticks = table(DelaySpec.model_validate({"distribution": "triangle", "min": "0s", "max": "1s"}), "ns").ticks
    assert abs(ticks[len(ticks) // 2] / 10**6 - 293) <= 1, "1 - sqrt(1/2) of a second"
    assert datasets.names()[-1] == "example-buses"
    assert datasets.source("example-buses", "f.csv").kinds == {"route": "string", "speed": "int64"}


def test_a_broken_package_leaves_the_other_queries_in_the_list(plugin: Path) -> None:
    for file in plugin.rglob("*.py"):
        file.write_text("raise SystemExit('imported')")
    answer = run(Call(["workloads", "--json"]))
    assert [query["name"] for query in json.loads(answer.out)] == list(workloads.WORKLOADS.built_in)
    assert f"workloads.{NAME}.query: streamgauge_example" in answer.err
    assert "cannot be loaded: SystemExit: imported" in answer.err
    assert len(answer.err.splitlines()) == 1


def bench_of(place: Path, **more: Any) -> config.Benchmark:
    return write_bench(place, workloads=[MINE], cells=[], **more).benchmark


def test_a_check_knows_the_names_and_imports_nothing(plugin: Path, tmp_path: Path) -> None:
    for file in plugin.rglob("*.py"):
        file.write_text("raise SystemExit('imported')")
    delayed = {"name": "d", "target_percent": 1, "delay": {"distribution": "triangle"}}
    benchmark = bench_of(tmp_path)
    benchmark = benchmark.model_copy(update={"experiments": (config.Experiment.model_validate(delayed),)})
    check_names(benchmark)
    assert CODE in [(one.kind, one.key, one.name) for one in reached(benchmark)]
    assert (without_own(benchmark).experiments, without_own(benchmark).all_cells()) == ((), ())
    with pytest.raises(
        UserError, match=r"workloads.w.query: streamgauge_example.* cannot be loaded: SystemExit: imported"
    ):
        check_names(benchmark, load=True)


@pytest.mark.usefixtures("plugin")
def test_its_columns_are_checked_before_a_run(tmp_path: Path) -> None:
    benchmark = bench_of(tmp_path)
    check_names(benchmark, load=True)
    wrong = benchmark.model_copy(
        update={"workloads": (benchmark.workloads[0].model_copy(update={"value": "carrier"}),)}
    )
    with pytest.raises(UserError, match=r"workloads.w.value: carrier is not numeric"):
        check_names(wrong, load=True)


def changed(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Gives the query of the package other fields."""
    query = replace(workloads.find(NAME), **fields)
    monkeypatch.setattr(sys.modules["streamgauge_example.extremes"], "EXTREMES", query)


@pytest.mark.usefixtures("plugin")
def test_what_a_query_lacks_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for_flink: list[tuple[dict[str, Any], str]] = [
        ({"code": {"spark": "a:b"}}, "has code for spark, and not for flink"),
        ({"results": ()}, "does not name the columns of its answer"),
        ({"late": "session"}, "Flink does not count the late events"),
    ]
    for fields, message in for_flink:
        with monkeypatch.context() as patch:
            changed(patch, **fields)
            with pytest.raises(Unsupported, match=message):
                flink.check("f", SPEC)
    for_all: list[tuple[dict[str, Any], str]] = [
        (
            {"question": "none.sql"},
            "query example.extremes: the package streamgauge_example.extremes has no text none.sql",
        ),
        ({"code": {}}, "query example.extremes: streamgauge_example.extremes has code for none, and not for spark"),
        ({"name": "other"}, "query.query: streamgauge_example.extremes:EXTREMES is named other, but registered as"),
    ]
    for fields, message in for_all:
        with monkeypatch.context() as patch:
            changed(patch, **fields)
            with pytest.raises(UserError) as problem:  # noqa: PT012 - the first of them that fails
                workloads.find(NAME).asked()
                spark.place(SPEC)
            assert str(problem.value).startswith(message)
    with pytest.raises(ValueError, match="columns: found key, which is made of the workload's key"):
        changed(monkeypatch, columns=("key",))


@pytest.mark.usefixtures("plugin")
def test_a_query_may_read_further_columns_by_their_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, columns=("place",))
    monkeypatch.setattr(Query, "text", lambda *_: "select key, number, place from events")
    rows = events([(1, "a", 3)]).append_column("place", pa.array(["x"]))
    assert ask(SPEC, (rows,)).to_pylist() == [{"key": "a", "number": 3, "place": "x"}]


@pytest.mark.usefixtures("plugin")
def test_a_spark_elsewhere_gets_the_package_with_its_name() -> None:
    library = library_zip()
    try:
        script = (
            "from streamgauge.bench import workloads; from streamgauge.bench.engines.spark import queries\n"
            f"query = workloads.find({NAME!r})\n"
            "print(workloads.__file__, query.asked()[:6], query.late, query.code['spark'])"
        )
        environment = {**os.environ, "PYTHONPATH": str(library)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, cwd=library.parent, capture_output=True, text=True
        )
        code = "streamgauge_example.extremes.spark:query"
        wanted = f"{library}/streamgauge/bench/workloads/__init__.py select window {code}\n"
        assert done.stdout.replace(".pyc", ".py") == wanted, done.stderr
    finally:
        shutil.rmtree(library.parent)


def test_the_example_s_metadata_names_what_exists(plugin: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "from streamgauge.app.cli import main; main()", "workloads", "--json"],
        env={**os.environ, "PYTHONPATH": str(plugin)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(listed.stdout)[-1]["name"] == NAME
