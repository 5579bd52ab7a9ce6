"""The capability matrix and its page, from rows written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamgauge.artifacts import read_jsonl
from streamgauge.report.blocks import Table, Text
from streamgauge.report.nexmark import section
from streamgauge.suite.capabilities import capabilities
from streamgauge.suite.record import CAPABILITIES, ROWS, keep


def row(query: str, mode: str, status: str, why: str | None = None, **more: Any) -> dict[str, Any]:
    fixed = {"query": query, "mode": mode, "status": status, "why": why, "system": "spark", "disorder_percent": 0.0}
    return {**fixed, "rows": 5, "hash": "ab", "seconds": 1.5, "events_per_s": 100.0, **more}


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
    found = capabilities(ROWS_BY_HAND)
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
        keep(tmp_path, one)
    assert read_jsonl(tmp_path / ROWS) == ROWS_BY_HAND
    assert json.loads((tmp_path / CAPABILITIES).read_text()) == capabilities(ROWS_BY_HAND)


def test_the_page_shows_states_with_their_reasons_the_slowest_and_every_answer() -> None:
    features, queries, slowest, answers = section(ROWS_BY_HAND).blocks
    assert isinstance(features, Table)
    assert features.columns == ["feature", "spark, streaming", "spark, batch", "spark-hdfs, batch"]
    assert features.rows[0] == [
        "stream-stream join", Text("wrong", "bad", hint="nexmark.q20: 6 rows, 5 expected"), Text("works", "good"), None,
    ]  # fmt: skip
    assert isinstance(queries, Table)
    assert len(queries.rows) == 4
    assert isinstance(slowest, Table)
    assert slowest.rows[0][0] == "q20"
    assert isinstance(answers, Table)
    assert len(answers.rows) == 6
