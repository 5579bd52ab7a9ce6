"""The example package brings a measurement: a section, a stage, a record, figures, and blocks on the page."""

from __future__ import annotations

import csv
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench import measurements
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure, settings_hash
from streamgauge.bench.measure.checks import check_names
from streamgauge.bench.measurements import USUAL
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import BY_NAME, needed_before, stage_of, stages_of
from streamgauge.config.reached import reached
from streamgauge.records.answered import Answered
from streamgauge.records.registry import RECORDS, schema_of
from streamgauge.results.index import Index, export
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Hole, Tiles
from streamgauge.results.report.overview import expected
from streamgauge.results.report.run_records import Records
from tests.command import Call, run
from tests.measure.benches import CELL, Bench, write_bench

ROOT = Path(__file__).resolve().parents[1]
NAME = "example_pauses"
CODE = "streamgauge_example.pauses:PAUSES"


def bench_of(place: Path, section: dict[str, Any] | None = None, **more: Any) -> Bench:
    """A system that hands over every 50 ms, and works on each batch for 20 ms."""
    asked = {} if section is None else {NAME: section}
    return write_bench(place, capacity=40_000, batch_cost="20ms", **asked, **more)


def broken(plugin: Path) -> None:
    for file in plugin.rglob("*.py"):
        file.write_text("raise SystemExit('imported')")


def test_a_cell_is_measured_by_the_job_of_all_measurements(plugin: Path, tmp_path: Path) -> None:
    bench = bench_of(tmp_path, {"rate": 2000, "seconds": 2})
    directory = bench.store.run("r")
    for stage, scope in (("validate", {"experiment": CELL.experiment}), ("search", CELL.model_dump())):
        with RunLog(directory).stage(stage, scope):
            pass
    arguments = ["--config", str(bench.file), "--artifacts", str(bench.store.root), "--run-id", "r"]
    arguments += stage_of(NAME).arguments(CELL.model_dump())
    done = subprocess.run(
        [sys.executable, str(ROOT / "jobs" / "measure.py"), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(plugin), str(ROOT)))}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((directory / "cells" / CELL.name / f"{NAME}.json").read_text())
    assert (record["rate_events_per_s"], record["void"]) == (2000, "")
    pause_s = record["longest_pause_s"]
    assert 0.02 < pause_s < 2
    ended = RunLog(directory).latest(NAME, **CELL.model_dump())
    assert ended is not None
    assert (ended.state, ended.outcome["longest_pause_s"]) == ("done", pause_s)
    assert ended.outcome["settings"] == config.fingerprint(bench.benchmark)
    (figure,) = read_jsonl(directory / "results.jsonl")
    assert [figure[key] for key in ("metric", "unit", "value", "valid", "experiment", "workload", "system")] == [
        "longest_pause_s", "s", pause_s, True, "e", "all", "known",
    ]  # fmt: skip
    records = Records(bench.benchmark, bench.store, "r")
    (shown,) = [block for block in cells_section.section(records).parts[0].blocks if isinstance(block, Tiles)]
    assert shown.tiles[0][0] == "longest pause"
    assert shown.tiles[0][2] == "between two hand-overs, at 2\u202f000 events/s"
    assert [(one.what, one.outcome) for one in expected(records)][-1] == (f"{NAME} e all known", "done")
    broken(plugin)
    for name in [name for name in sys.modules if name.startswith("streamgauge_example")]:
        del sys.modules[name]
    holes = {block.what: block.why for block in cells_section.section(records).parts[0].blocks if block.kind == "hole"}
    assert holes == {
        "No sustainable rate": "not found",
        f"No {NAME}": f"{NAME}: {CODE} cannot be loaded: SystemExit: imported",
    }


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
def test_a_figure_has_the_hash_of_its_section_and_the_software_of_the_system(tmp_path: Path) -> None:
    def kept(measurement: str, section: dict[str, Any] | None) -> Any:
        bench = bench_of(tmp_path, section)
        cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"), measurement)
        cell_run.keep("m", "s", 1.0, software={"engine": "7.0", "numpy": "another"})
        return read_jsonl(cell_run.run_directory / "results.jsonl")[-1]

    figure = kept(NAME, {"rate": 2000})
    assert (figure["software"]["engine"], figure["software"]["numpy"]) == ("7.0", "another")
    assert figure["software"]["python"]
    hashes = [kept(NAME, {"rate": rate})["config_hash"] for rate in (2000, 1000)]
    assert (hashes[0], hashes[1]) == (figure["config_hash"], kept(NAME, {})["config_hash"])
    assert hashes[0] != hashes[1]
    built_in = settings_hash(bench_of(tmp_path).benchmark, CELL)
    assert {kept(name, {"rate": 2000})["config_hash"] for name in ("search", "latency")} == {built_in}
    assert built_in not in hashes


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


@pytest.mark.parametrize(
    ("job", "arguments", "line"),
    [
        ("ingest", (), f"streamgauge ingest: {NAME}.rte: unknown key; did you mean rate?"),
        (
            "measure",
            stage_of("search").arguments(CELL.model_dump())[1:],
            f"streamgauge {NAME}: as search e all known failed",
        ),
    ],
)
def test_a_job_says_in_one_line_why_it_does_not_begin(
    plugin: Path, tmp_path: Path, job: str, arguments: tuple[str, ...], line: str
) -> None:
    """A wrong key ends the first job. A cell whose search failed, as in the stage turns, is not measured."""
    bench = bench_of(tmp_path, {"rte": 1} if job == "ingest" else {})
    log = RunLog(bench.store.run("r"))
    for stage, scope in (("ingest", {}), ("generate", {"experiment": "e"}), ("validate", {"experiment": "e"})):
        with log.stage(stage, scope):
            pass
    with pytest.raises(UserError), log.stage("search", CELL.model_dump()):
        raise UserError("no rate")
    own = [f"--stage={NAME}"] if job == "measure" else []
    command = [str(ROOT / "jobs" / f"{job}.py"), "--config", str(bench.file), "--artifacts", str(bench.store.root)]
    done = subprocess.run(
        [sys.executable, *command, "--run-id", "r", *own, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(plugin), str(ROOT)))}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, line), done.stderr[-3000:]


class Silent(Answered):
    @property
    def outputs(self) -> dict[str, bool | None]:
        raise LookupError("no answers")


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("declared", "outputs", "told"),
    [
        (f"{__name__}:Silent", {NAME: None}, [f"{NAME}: its package's record fails: LookupError: no answers"]),
        ("math:pi", {NAME: None}, []),
        ("streamgauge.records.record:Record", {}, []),
    ],
)
def test_a_record_that_cannot_say_whether_its_answers_were_right_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, outputs: dict[str, None], told: list[str]
) -> None:
    package = replace(measurements.package_of(NAME), records={NAME: declared})
    monkeypatch.setattr(sys.modules["streamgauge_example.pauses"], "PAUSES", package)
    bench = bench_of(tmp_path, {})
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    with RunLog(cell_run.run_directory).stage(NAME, CELL.model_dump()):
        cell_run.directory.mkdir(parents=True)
        Silent().write(cell_run.directory / f"{NAME}.json")
    records = Records(bench.benchmark, bench.store, "r")
    assert ([cell.outputs for cell in records.cells], records.damaged) == ([outputs], told)


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
    for fields, message in (
        ({"section": "math:pi"}, f"{NAME}: math:pi is no OwnSection of streamgauge.bench.measurements"),
        ({"measure": "math:pi"}, f"{NAME}: math:pi is no function"),
        ({"measure": "math:no"}, f"{NAME}: math:no cannot be loaded: AttributeError: module 'math' has no"),
    ):
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


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (None, "returned NoneType, allowed: a mapping of facts, such as {}"),
        (
            {"key": "k"},
            "returned the key key, allowed: none of artifact, key, python_cpu_seconds, reused, settings, spark, system",
        ),
        ({"n": np.int64(1)}, "returned 'n': int64, allowed: JSON, which is text, numbers of Python, true, false"),
        ({"n": [{"m": {1}}]}, "returned 'n': list, allowed: JSON, "),
        ({1: 2}, "returned 1: int, allowed: JSON, "),
    ],
)
def test_facts_that_the_log_cannot_hold_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: object, line: str
) -> None:
    bench = bench_of(tmp_path, {})
    monkeypatch.setattr("streamgauge_example.pauses.stage.measure", lambda *_: facts)
    with pytest.raises(UserError) as problem:
        measure(NAME, CellRun(bench.benchmark, bench.store, CELL, tmp_path))
    assert str(problem.value).startswith(f"{NAME}: streamgauge_example.pauses.stage:measure {line}")


@pytest.mark.usefixtures("plugin")
def test_a_search_of_other_settings_is_no_base_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge_example.pauses.stage.measure", lambda *_: {})
    bench = bench_of(tmp_path, {"rate": 2000})
    before = CellRun(bench.benchmark, bench.store, CELL, tmp_path)
    before.directory.mkdir(parents=True)
    SearchAnswer(outcome="found", plan=before.plan_key).write(before.directory / "search.json")
    assert measure(NAME, before) == {}
    other = bench_of(tmp_path, {"rate": 2000}, search={"max_age": "1s"})
    with pytest.raises(UserError, match=f"^{CELL.name}: its search in this run had other settings; run the stage sear"):
        measure(NAME, CellRun(other.benchmark, other.store, CELL, tmp_path))
    section = bench_of(tmp_path, {"rate": 1000})
    assert measure(NAME, CellRun(section.benchmark, section.store, CELL, tmp_path)) == {}, "its own settings may change"


@pytest.mark.usefixtures("plugin")
def test_facts_are_logged_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path, {})
    monkeypatch.setattr("streamgauge_example.pauses.stage.measure", lambda *_: {"a": np.float64(1.5), "b": [None]})
    with RunLog(tmp_path).stage(NAME, {}) as outcome:
        outcome |= measure(NAME, CellRun(bench.benchmark, bench.store, CELL, tmp_path))
    ended = RunLog(tmp_path).latest(NAME)
    assert ended is not None
    assert ended.outcome == {"a": 1.5, "b": [None]}


def renamed(plugin: Path, name: str) -> None:
    (points,) = plugin.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace(f"{NAME} =", f"{name} ="))


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
    with pytest.raises(UserError) as problem:
        write_bench(tmp_path, **{name: {}})
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


@pytest.mark.usefixtures("plugin")
def test_a_figure_of_a_package_may_have_an_interval(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, {})
    run_directory = bench.store.run("r")
    cell_run = CellRun(bench.benchmark, bench.store, CELL, run_directory, NAME)
    cell_run.keep("m", "s", 2.0, interval=(1.5, 2.5))
    for value, interval in ((2.0, (2.5, 3.0)), (None, (1.0, 2.0))):
        with pytest.raises(
            UserError, match=rf"^{NAME}: m: found the interval \({interval[0]}, {interval[1]}\), allowed"
        ):
            cell_run.keep("m", "s", value, interval=interval)
    (figure,) = results.read(run_directory)
    assert figure.text == "2 s (1.5 to 2.5)"
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    index.add_run(run_directory)
    export.write(index.results(), tmp_path / "out.csv")
    (row,) = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    assert (row["metric"], row["value"], row["low"], row["high"]) == ("m", "2", "1.5", "2.5")


def test_a_record_of_ours_keeps_its_schema_beside_a_package_of_its_name(plugin: Path) -> None:
    before = schema_of("profile")
    renamed(plugin, "profile")
    broken(plugin)
    assert "profile" in measurements.MEASUREMENTS.names()
    assert schema_of("profile") == before
