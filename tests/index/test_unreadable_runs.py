"""A store with one run that cannot be read: what goes over all runs names it and goes on; what is about it refuses."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import SEAL
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Benchmark, keep
from streamgauge.results.index import garbage_collection
from streamgauge.results.report import again, runs_page
from streamgauge.results.report.blocks import Hole
from streamgauge.results.report.run_records import Records
from tests.command import Answer, Call, run
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example, stream
from tests.index.example import result

FILES = {
    "stages": f"runs/{RUN}/stages.jsonl",
    "results": f"runs/{RUN}/results.jsonl",
    "search": f"runs/{RUN}/cells/late20.sum.hdfs/search.json",
    "latency": f"runs/{RUN}/cells/late20.sum.hdfs/latency.json",
    "manifest": "data/stream/late20/manifest.json",
}
DAYS_AGO = time.time() - 3 * 86_400


def with_version(file: Path, version: int | None) -> None:
    """Gives each record of a file that version, or none."""

    def changed(record: dict[str, Any]) -> dict[str, Any]:
        rest = {key: value for key, value in record.items() if key not in ("version", SEAL)}
        return rest if version is None else {**rest, "version": version}

    if file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(changed(json.loads(line))) + "\n" for line in file.open()))
    else:
        value = json.loads(file.read_text())
        file.write_text(json.dumps(list(map(changed, value)) if isinstance(value, list) else changed(value)))


def be_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda file: file.write_text("{damaged\n"),
    "no record": lambda file: file.write_text("7\n"),
    "no version": lambda file: with_version(file, None),
    "version 2": lambda file: with_version(file, 2),
    "torn": lambda file: file.write_bytes(file.read_bytes()[:-30]),
    "a folder": be_folder,
}
#: a torn line at the end of a log never counted as written, and manifests have their version in their key
HARMLESS = {("stages", "torn"), ("results", "torn"), ("manifest", "no version")}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Benchmark, Store]:
    """The example run and a later one, each with a figure, and a stream that nothing but the former used."""
    folder = tmp_path_factory.mktemp("recorded")
    made, store = benchmark(folder / "source.csv", **CELLS), Store(folder / "a")
    recorder = record_example(store, made)
    record_cells(recorder)
    keep(made, recorder.run)
    used = recorder.artifact("stream", "used", {"files": []})
    recorder.stage("generate", experiment="used", outcome=used)
    of_late20 = recorder.artifact("stream", "late20", stream(20))
    recorder.stage("generate", experiment="late20", outcome=of_late20)
    results.append(recorder.run, result(RUN, 80.0))
    later = store.run("later")
    with RunLog(later).stage("ingest", {}):
        pass
    results.append(later, result("later", 100.0))
    return made, store


def damaged(recorded: tuple[Benchmark, Store], folder: Path, name: str, damage: str) -> tuple[Benchmark, Store]:
    """A copy of the store in which one file is damaged."""
    made, store = recorded[0], Store(folder / name)
    shutil.copytree(recorded[1].root, store.root)
    DAMAGES[damage](store.root / FILES[name])
    return made, store


def cli(store: Store, *arguments: str) -> Answer:
    return run(Call([*arguments, "--artifacts", str(store.root)]))


def listed(_: Benchmark, store: Store) -> str:
    summaries = {one["run"]: one for one in cli(store, "runs", "list", "--json").json["runs"]}
    assert (summaries["later"]["figures"], summaries["later"]["problem"]) == (1, None)
    problem = str(summaries[RUN]["problem"] or "")
    assert problem in cli(store, "runs", "list").out
    return problem


def page_of_all(_: Benchmark, store: Store) -> str:
    page = runs_page.render(store)
    assert "later" in page
    return page


def beside_the_run_before(made: Benchmark, store: Store) -> str:
    [part] = again.section(Records(made, store, "later")).parts
    [block] = part.blocks
    if isinstance(block, Hole):
        assert block.why.startswith("these artifacts hold no earlier run with a figure of the same cells.")
    return str(block)


def indexed(_: Benchmark, store: Store) -> str:
    answers = [cli(store, "results", command) for command in ("add", "rebuild")]
    assert all(answer.code == 0 or "left out 1 line of the records" in answer.err for answer in answers)
    assert "later" in {row["run_id"] for row in cli(store, "results", "list", "--json").json["results"]}
    assert cli(store, "dashboard", "--out", str(store.root / "dashboard.html")).code == 0
    assert cli(store, "results", "export", "--out", str(store.root / "all.csv")).code == 0
    return ""  # the log tells


def collected(_: Benchmark, store: Store) -> str:
    for file in store.root.rglob("*"):  # no run goes on
        os.utime(file, (DAYS_AGO, DAYS_AGO))
    problems = cli(store, "gc", "--budget", "0", "--keep-runs", "0", "--json").json["problems"]
    assert (store.find("stream", "used") is not None) == bool(problems)
    with pytest.raises(UserError) as refused:
        garbage_collection.require_budget(store, 0, keep_runs=0)
    assert all(problem in str(refused.value) for problem in problems)
    return " ".join(map(str, problems))


OVER_ALL: dict[Callable[[Benchmark, Store], str], tuple[str, ...]] = {
    listed: ("stages", "results"),
    page_of_all: ("stages", "results"),
    beside_the_run_before: ("stages", "results"),
    indexed: ("results", "search"),
    collected: ("stages", "results"),
}
OF_ONE: dict[tuple[str, ...], tuple[str, ...]] = {
    ("runs", "show", RUN): ("stages", "results", "search"),
    ("export", RUN, "--no-svg"): ("stages", "search", "latency", "manifest"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", OVER_ALL, ids=lambda command: command.__name__)
def test_what_goes_over_all_runs_names_one_that_cannot_be_read_and_goes_on(
    recorded: tuple[Benchmark, Store],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    command: Callable[[Benchmark, Store], str],
    damage: str,
) -> None:
    for name in (*OVER_ALL[command], "manifest"):
        caplog.clear()
        text = command(*damaged(recorded, tmp_path, name, damage)) + caplog.text
        is_named = name in OVER_ALL[command] and (name, damage) not in HARMLESS
        assert (FILES[name] in text) == is_named, name


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", OF_ONE, ids=" ".join)
def test_what_is_about_that_run_refuses_in_one_line_and_says_what_to_do(
    recorded: tuple[Benchmark, Store], tmp_path: Path, command: tuple[str, ...], damage: str
) -> None:
    for name in OF_ONE[command]:
        _, store = damaged(recorded, tmp_path, name, damage)
        out = ("--out", str(tmp_path / f"{name}-export")) if command[0] == "export" else ()
        answer = cli(store, *command, *out)
        if (name, damage) in HARMLESS:
            assert answer.code == 0, answer.err
        else:
            answer.refused(f"{store.root / FILES[name]}: ", "; ")
