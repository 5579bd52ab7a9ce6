"""The example package brings a measurement: a section, a stage, a record, figures, and blocks on the page."""

from __future__ import annotations

import csv
import json
import os
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
from streamgauge.bench.measure.cell_run import CellRun, measure, settings_hash
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import stage_of
from streamgauge.records.answered import Answered
from streamgauge.results.index import Index, export
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Hole, Tiles
from streamgauge.results.report.overview import expected
from streamgauge.results.report.run_records import Records
from tests.measure.benches import CELL
from tests.pauses import CODE, NAME, bench_of, broken

ROOT = Path(__file__).resolve().parents[1]


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
    blocks = cells_section.section(records).parts[0].blocks
    assert {block.what: block.why for block in blocks if isinstance(block, Hole)} == {
        "No sustainable rate": "not found",
        f"No {NAME}": f"{NAME}: {CODE} cannot be loaded: SystemExit: imported",
    }


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
