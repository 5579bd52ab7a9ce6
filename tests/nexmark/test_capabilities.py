"""The capability matrix and its page, from rows written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.answers.capabilities import HARD, SUITE, capabilities
from streamgauge.bench.answers.record import CAPABILITIES, ROWS, keep
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, parse
from streamgauge.records.answers import AnswerLine, Capabilities
from streamgauge.results.report.blocks import Table, Text
from streamgauge.results.report.nexmark_section import expected, section
from streamgauge.results.report.page import render
from streamgauge.results.report.run_records import Records


def row(query: str, mode: str, status: str, why: str | None = None, **more: Any) -> dict[str, Any]:
    fixed = {"query": query, "mode": mode, "status": status, "why": why, "system": "spark", "disorder_percent": 0.0}
    return {**fixed, "rows": 5, "hash": "ab", "seconds": 1.5, "events_per_s": 100.0, **more}


def line(row: dict[str, Any]) -> AnswerLine:
    return AnswerLine.of(row, "a row")


ROWS_BY_HAND = [
    row("q3", "streaming", "wrong", "4 rows, 5 expected"),
    row("q3", "streaming", "correct"),  # run again
    row("q20", "streaming", "correct", seconds=9.0),
    row("q20", "streaming", "wrong", "6 rows, 5 expected", disorder_percent=20.0),
    row("q23", "streaming", "unsupported", "no joins here", rows=None, hash=None, seconds=None, events_per_s=None),
    row("q3", "batch", "correct"),
    row("q18", "batch", "unsupported", "needs RocksDB", system="spark-hdfs"),
]


def test_a_feature_is_as_good_as_the_worst_of_its_queries() -> None:
    found = capabilities(map(line, ROWS_BY_HAND)).to_json()
    states = {(c["feature"], c["system"], c["mode"]): (c["status"], c["why"]) for c in found["features"]}
    assert states == {
        ("stream-stream join", "spark", "streaming"): ("wrong", "nexmark.q20: 6 rows, 5 expected"),
        ("chained joins", "spark", "streaming"): ("unsupported", "nexmark.q23: no joins here"),
        ("stream-stream join", "spark", "batch"): ("works", None),
        ("transformWithState", "spark-hdfs", "batch"): ("unsupported", "nexmark.q18: needs RocksDB"),
        ("deduplication", "spark-hdfs", "batch"): ("unsupported", "nexmark.q18: needs RocksDB"),
    }
    queries = {(c["query"], c["system"], c["mode"]): (c["status"], c["why"]) for c in found["queries"]}
    assert queries == {
        ("nexmark.q3", "spark", "streaming"): ("works", None),
        ("nexmark.q20", "spark", "streaming"): ("wrong", "6 rows, 5 expected"),
        ("nexmark.q23", "spark", "streaming"): ("unsupported", "no joins here"),
        ("nexmark.q3", "spark", "batch"): ("works", None),
        ("nexmark.q18", "spark-hdfs", "batch"): ("unsupported", "needs RocksDB"),
    }


def test_rows_are_kept_as_they_come_and_the_matrix_with_them(tmp_path: Path) -> None:
    for one in ROWS_BY_HAND:
        keep(tmp_path, line(one))
    assert AnswerLine.read_log(tmp_path / ROWS) == list(map(line, ROWS_BY_HAND))
    assert read_jsonl(tmp_path / ROWS) == [{"version": 1, **one} for one in ROWS_BY_HAND]
    matrix = Capabilities.read(tmp_path / CAPABILITIES)
    assert matrix == capabilities(map(line, ROWS_BY_HAND))


def text_of(cell: object) -> str:
    assert isinstance(cell, Text)
    return cell.text


def test_the_page_shows_states_with_their_reasons_the_slowest_and_every_answer() -> None:
    features, queries, reasons, slowest, ordered, late, others = section(list(map(line, ROWS_BY_HAND))).blocks
    assert isinstance(features, Table)
    assert features.columns == ["feature", "spark", "spark-hdfs"]
    assert features.rows[0] == [
        "stream-stream join", Text("wrong in streaming", "bad", hint="nexmark.q20: 6 rows, 5 expected"), None,
    ]  # fmt: skip
    assert isinstance(queries, Table)
    assert [
        [row[0], *(cell and text_of(cell) for cell in row[1:] if not isinstance(cell, str))] for row in queries.rows
    ] == [
        ["q3", "works", None],
        ["q20", "wrong in streaming", None],
        ["q23", "unsupported in streaming", None],
        ["q18", None, "unsupported in batch"],
    ]
    assert isinstance(slowest, Table)
    assert slowest.rows[0][0] == "q20"
    assert isinstance(reasons, Table)
    assert [(row[0], row[4]) for row in reasons.rows] == [
        ("q20", "6 rows, 5 expected"), ("q23", "no joins here"), ("q18", "needs RocksDB"),
    ]  # fmt: skip
    answers = [table for table in (ordered, late, others) if isinstance(table, Table)]
    assert [(table.caption, table.folded, len(table.rows)) for table in answers] == [
        ("Answers of spark, 0\u202f% out of order", "", 4),
        ("Answers of spark, 20\u202f% out of order", "", 1),
        ("", "Answers of spark-hdfs, 0\u202f% out of order", 1),
    ]


def test_an_answer_that_is_missing_is_a_visible_hole(tmp_path: Path) -> None:
    raw = {
        "name": "auction",
        "source": {"format": "nexmark"},
        "experiments": [{"name": "late", "target_percent": 20}],
    }
    store = Store(tmp_path)
    wanted = expected(Records(parse(Benchmark, raw, "here"), store, "mine"))
    assert len(wanted) == 2 * 31
    found = section([line(row("q5", "batch", "correct", disorder_percent=20.0))], wanted)
    queries = found.blocks[1]
    assert isinstance(queries, Table)
    assert {str(line[0]): line[1].text for line in queries.rows if isinstance(line[1], Text)} == {
        name: "not run in streaming" if name == "q5" else "not run" for name in (*SUITE, *HARD)
    }
    assert "not run: see generate late" in render(Records(parse(Benchmark, raw, "here"), store, "mine"))


def test_an_answer_of_which_no_rows_are_told_is_unchecked_and_one_without_rows_was_not_run() -> None:
    about: dict[str, Any] = {"mode": "batch", "status": "unchecked", "why": "too slow", "system": "s"}
    told = AnswerLine(query="q1", disorder_percent=0, rows=None, **about)
    untold = AnswerLine(query="q2", disorder_percent=0, **about)
    assert [one.status for one in capabilities([told, untold]).queries] == ["not run", "unchecked"]
