"""Declarations of the example package: its name, section, stage and records, and what is not as declared."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.bench import measurements
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measure.checks import check_names
from streamgauge.bench.measurements import USUAL
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import BY_NAME, needed_before, stage_of, stages_of
from streamgauge.config.reached import reached
from streamgauge.records.registry import RECORDS, schema_of
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Hole
from streamgauge.results.report.run_records import Records
from tests.command import Call, run
from tests.measure.benches import CELL, write_bench
from tests.pauses import CODE, NAME, bench_of, broken, renamed


@pytest.mark.parametrize("in_turns", [False, True])
def test_its_stage_follows_the_search_and_the_report_follows_it(plugin: Path, tmp_path: Path, in_turns: bool) -> None:
    broken(plugin)  # nothing of it is imported for a plan
    bench = bench_of(tmp_path, {"seconds": 30}, search={"in_turns": in_turns})
    stages = {stage.name: stage for stage in stages_of(bench.benchmark, nightly=True)}
    measured = ["turns"] if in_turns else ["search", "latency"]
    assert list(stages)[4:] == [*measured, NAME, "report", "regressions"]
    assert stages[NAME].reads == ("stream", "validation", "turns" if in_turns else "search")
    assert (stages[NAME].job, stages[NAME].does) == ("measure", f"measures by {CODE}")
    assert all(NAME in stages[later].reads for later in ("report", "regressions"))
    before = [stage.name for stage, _ in needed_before(stages[NAME], CELL.model_dump())]
    assert before == ["generate", "validate", "turns" if in_turns else "search"]
    assert timing.stage_seconds(stages[NAME], bench.benchmark, USUAL) == USUAL.start_s + 30  # there is no warm-up


def test_a_file_without_the_section_has_no_stage_of_it(plugin: Path, tmp_path: Path) -> None:
    broken(plugin)
    benchmark = bench_of(tmp_path).benchmark
    assert list(benchmark.sections) == ["search", "latency"]
    assert NAME not in benchmark.model_dump(mode="json"), "the run can be read without the package"
    assert NAME not in [stage.name for stage in stages_of(benchmark)]
    check_names(benchmark, load=True)
    with pytest.raises(UserError, match=f"^{NAME}: the benchmark file has no section of this name; add one, such as"):
        measure(NAME, CellRun(benchmark, bench_of(tmp_path).store, CELL, tmp_path))


@pytest.mark.usefixtures("plugin")
def test_a_benchmark_with_its_section_can_be_pickled(tmp_path: Path) -> None:
    benchmark = bench_of(tmp_path, {"rate": 2000}).benchmark
    again = pickle.loads(pickle.dumps(benchmark))
    assert (again, type(again)) == (benchmark, type(benchmark))
    assert again.sections[NAME].model_dump() == {"seconds": 60.0, "rate": 2000}
    assert config.schema()["title"] == "Benchmark"


def test_a_check_knows_the_section_and_imports_nothing(plugin: Path, tmp_path: Path) -> None:
    broken(plugin)
    bench = bench_of(tmp_path, {"rate": 2000, "rte": 1})
    check_names(bench.benchmark)
    assert ("code", NAME, CODE) in [(one.kind, one.key, one.name) for one in reached(bench.benchmark)]
    answer = run(Call(["check", str(bench.file), "--artifacts", str(tmp_path / "a")]))
    assert (answer.code, answer.err) == (0, "")
    assert f"names   runs the code {CODE}  ({NAME})" in answer.out
    assert NAME in config.schema()["properties"]
    with pytest.raises(UserError, match=f"^{NAME}: {CODE} cannot be loaded: SystemExit: imported$"):
        check_names(bench.benchmark, load=True)


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("section", "line"),
    [
        ({"rte": 1}, f"{NAME}.rte: unknown key; did you mean rate?"),
        ({"rate": -1}, f"{NAME}.rate: found -1, allowed: above 0"),
        ({"speed": 1}, f"{NAME}.speed: unknown key; allowed here: rate, seconds"),
    ],
)
def test_its_keys_are_checked_before_a_run(tmp_path: Path, section: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError) as problem:
        check_names(bench_of(tmp_path, section).benchmark, load=True)
    assert str(problem.value) == line


def test_without_the_package_its_section_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=rf"b\.yaml:\d+:1: {NAME}: unknown key; allowed here: advice, catchup, cells, description,"
    ):
        bench_of(tmp_path, {})
    allowed = "search, latency, soak, scaling, catchup, recovery"
    with pytest.raises(UserError, match=f"^stage: found '{NAME}', allowed: {allowed}$"):
        stage_of(NAME)


@pytest.mark.usefixtures("plugin")
def test_what_is_not_as_declared_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert schema_of(NAME)["properties"]["longest_pause_s"]["anyOf"][0] == {"type": "number"}
    bench = bench_of(tmp_path, {})
    declared = measurements.package_of(NAME)
    here = sys.modules["streamgauge_example.pauses"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"section": "math:pi"}, f"{NAME}: math:pi is no OwnSection of streamgauge.bench.measurements"),
        ({"measure": "math:pi"}, f"{NAME}: math:pi is no function"),
        ({"measure": "math:no"}, f"{NAME}: math:no cannot be loaded: AttributeError: module 'math' has no"),
    ]
    for fields, message in wrong:
        monkeypatch.setattr(here, "PAUSES", replace(declared, **fields))
        with pytest.raises(UserError) as problem:
            check_names(bench.benchmark, load=True)
        assert str(problem.value).startswith(message)
    monkeypatch.setattr(here, "PAUSES", replace(declared, records={NAME: "math:pi"}))
    with pytest.raises(UserError, match=f"^{NAME}: math:pi is no Record of streamgauge.records.record$"):
        schema_of(NAME)
    with RunLog(bench.store.run("r")).stage(NAME, CELL.model_dump()):
        pass
    blocks = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    assert blocks[-1] == Hole("No pauses", "their record is missing or damaged")
    monkeypatch.setattr(here, "PAUSES", "a text")
    with pytest.raises(UserError, match=f"^{NAME}: {CODE} is no MeasurementPackage of streamgauge.bench.measurements$"):
        check_names(bench.benchmark, load=True)


def test_reserved_names_are_those_of_stages_of_what_they_write_and_of_records() -> None:
    taken = {*BY_NAME, *(stage.writes for stage in BY_NAME.values()), *RECORDS} - {*measurements.MEASUREMENTS.built_in}
    assert {name for name in taken if name.replace("_", "a").isalpha()} == measurements.RESERVED


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("stream", f"{CODE} is registered under this name, which is one of Streamgauge's stages or records"),
        ("trials", f"{CODE} is registered under this name, which is one of Streamgauge's stages or records"),
        ("my-meas", f"{CODE} is registered under this name, allowed: small letters, digits and _, a letter first"),
        ("copy", "the model of a benchmark has it; rename it"),
    ],
)
def test_a_name_that_cannot_be_is_refused_where_it_is_used(plugin: Path, tmp_path: Path, name: str, why: str) -> None:
    renamed(plugin, name)
    assert bench_of(tmp_path).benchmark.sections.keys() == {"search", "latency"}
    section: dict[str, Any] = {name: {}}
    with pytest.raises(UserError) as problem:
        write_bench(tmp_path, **section)
    assert f"{name}: found a measurement that cannot have this name: {why}" in str(problem.value)
    assert len(str(problem.value).splitlines()) == 1
    if name != "copy":
        with pytest.raises(UserError, match=f"^{name}: {CODE} is registered under this name"):
            measurements.package_of(name)


@pytest.mark.parametrize("name", ["schedule", "search"])
def test_a_name_that_every_file_has_is_told_at_load(
    plugin: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    renamed(plugin, name)
    broken(plugin)
    assert bench_of(tmp_path).benchmark.schedule is None
    assert caplog.messages == [
        f"{name}: {CODE} is registered as a measurement of this name, which is a key of every benchmark file, so that "
        "none asks for it; rename it"
    ]


@pytest.mark.usefixtures("plugin")
def test_further_records_of_a_package_have_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    record = f"{CODE.partition(':')[0]}.record:Pause"
    declared = measurements.package_of(NAME)
    here = sys.modules["streamgauge_example.pauses"]
    monkeypatch.setattr(here, "PAUSES", replace(declared, records={**declared.records, "hand_overs": record}))
    schema = schema_of("hand_overs")
    assert (schema, schema["title"]) == (schema_of(NAME), "Pause")
    with pytest.raises(UserError, match=f"^--record: found 'speed', allowed: stages, .*, {NAME}, hand_overs$"):
        schema_of("speed")
    monkeypatch.setattr(here, "PAUSES", replace(declared, records={"trials": record}))
    with pytest.raises(UserError, match=f"^{NAME}: records: found 'trials', which is one of Streamgauge's own records"):
        schema_of("speed")


def test_a_record_of_ours_keeps_its_schema_beside_a_package_of_its_name(plugin: Path) -> None:
    before = schema_of("profile")
    renamed(plugin, "profile")
    broken(plugin)
    assert "profile" in measurements.MEASUREMENTS.names()
    assert schema_of("profile") == before
