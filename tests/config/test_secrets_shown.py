"""Tests that no secret of a benchmark file stands where somebody else reads: files, pages, lines, hashes."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
from pathlib import Path

import httpx
import pytest

from streamgauge.app.airflow import page_server
from streamgauge.base import printing
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import append_json
from streamgauge.bench.measure.cell_run import settings_hash
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Cell, load, of_run
from streamgauge.results.report import build
from tests.command import Call, run
from tests.config.marked import MARKS


def written(folder: Path) -> dict[str, list[str]]:
    """Files, each with the marks in it."""
    marks_of = {str(file): [mark for mark in MARKS if mark.encode() in file.read_bytes()]
             for file in folder.rglob("*") if file.is_file()}  # fmt: skip
    return {file: marks for file, marks in marks_of.items() if marks}


def test_no_file_page_or_answer_shows_a_secret_of_the_benchmark(marked: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    made = load(marked)
    assert all(mark in made.model_dump_json() for mark in MARKS), "the processes that need them have them"
    log = RunLog(store.run("one"))
    for number, mark in enumerate(MARKS):  # engines quote what they were given
        with contextlib.suppress(UserError, RuntimeError), log.stage("ingest", {"experiment": f"e{number}"}):
            raise (UserError, RuntimeError)[number % 2](f"the store refused the key {mark}, see https://a:{mark}@h")
    with contextlib.suppress(RuntimeError), log.stage("ingest", {}):
        raise RuntimeError(f"no {MARKS[1]}")
    append_json(
        store.run("one") / "results-of-job.jsonl", {"failure": f"it said {MARKS[8]}", "deep": [{"a": MARKS[1]}]}
    )
    page = build(made, store, "one")
    assert "*** stands for a secret" in page.read_text()
    assert written(store.root) == {}
    assert of_run(store.run("one")).name == "marked"
    said = run(Call(["export", "one", "--artifacts", str(store.root), "--out", str(tmp_path / "paper"), "--no-svg"]))
    assert said.code == 0, said.err
    assert written(tmp_path / "paper") == {}
    shown = run(Call(["runs", "show", "one", "--artifacts", str(store.root), "--json"]))
    assert [mark for mark in MARKS if mark in said.out + said.err + shown.out + shown.err] == []


@pytest.mark.anyio
async def test_the_pages_server_gives_no_secret(marked: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    build(load(marked), store, "one")
    transport = httpx.ASGITransport(app=page_server.app(store.root))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("/", "/runs/one/benchmark.json", "/runs/one/index.html"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert [mark for mark in MARKS if mark in answer.text] == []


def test_no_line_that_is_printed_shows_a_secret(marked: Path) -> None:
    for more in ([], ["--json"]):
        answer = run(Call(["check", str(marked), *more]))
        assert [mark for mark in MARKS if mark in answer.out + answer.err] == []
    for wrong in (
        "x: 1\n",
        "systems: [{name: a, conf: {a.password: [Mk30secret]}, memory: [Mk31]}]\n",
        "scale: Mk02secret\n",
    ):
        text = marked.read_text().partition("systems:")[0] if "systems" in wrong else marked.read_text()
        (marked.parent / "wrong.yaml").write_text(text + wrong)
        answer = run(Call(["check", str(marked.parent / "wrong.yaml")]))
        assert answer.code == 2
        assert [mark for mark in (*MARKS, "Mk30secret") if mark in answer.out + answer.err] == []


def test_a_secret_that_everybody_on_the_host_will_see_is_told_before_it_is(marked: Path) -> None:
    said = "shows every user of this host a secret among its arguments  (systems.job.command)"
    assert said in run(Call(["check", str(marked)])).out
    marked.write_text(marked.read_text().replace('--api-key, Mk07secret, "--token=Mk08secret", ', ""))
    answer = run(Call(["check", str(marked)]))
    assert (answer.code, "starts python" in answer.out, said in answer.out) == (0, True, False)


def test_a_log_line_and_a_stack_trace_show_no_secret(marked: Path) -> None:
    load(marked)
    log = io.StringIO()
    handler = logging.StreamHandler(printing.Printed(log))
    try:
        raise ValueError("s3a://me:Mk40secret@bucket and Mk02secret")
    except ValueError as problem:
        handler.emit(logging.LogRecord("x", 40, "x", 1, "%s", (problem,), (ValueError, problem, problem.__traceback__)))
    assert "Traceback" in log.getvalue()
    assert "Mk" not in log.getvalue().replace('Mk40secret@bucket and Mk02secret")', "")


def test_escape_codes_of_a_file_are_printed_as_text(tmp_path: Path) -> None:
    (tmp_path / "events\x1b[2J.csv").write_text("t\n1\n2\n")
    file = tmp_path / "b.yaml"
    file.write_text(json.dumps({
        "name": "b", "description": "\x1b]0;owned\x07\x1b[8mhidden",
        "experiments": [{"name": "e", "target_percent": 0}],
        "source": {"files": "events\x1b[2J.csv", "time": {"column": "t", "unit": "s"}},
    }))  # fmt: skip
    answer = run(Call(["check", str(file)]))
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out
    assert "\\x1b]0;owned\\x07\\x1b[8mhidden" in answer.out
    assert "events\\x1b[2J.csv" in answer.out
    refused = run(Call(["check", str(tmp_path / "no\x1b[31mfile.yaml")]))
    assert "\x1b" not in refused.err


def test_no_hash_of_settings_depends_on_a_secret(marked: Path) -> None:
    """The hash of a short secret can be guessed, and stands in every record of a figure."""
    text = marked.read_text()
    for system in ("spark", "flink", "job", "own"):
        cell = Cell(experiment="late", workload="all", system=system)
        first = settings_hash(load(marked), cell)
        marked.write_text(re.sub(r"Mk(\d\d)secret", r"Zz\1hidden", text))
        assert settings_hash(load(marked), cell) == first
        marked.write_text(text.replace("t, unit: s", "t, unit: ms"))
        assert settings_hash(load(marked), cell) != first
        marked.write_text(text)
