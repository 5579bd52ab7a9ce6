"""The stage nexmark with several systems: what each can do, and a query that fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.answers import hard_queries, stage
from streamgauge.bench.answers.ask_systems import unanswered
from streamgauge.bench.answers.record import CAPABILITIES, ROWS
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, parse
from streamgauge.records.answers import Answer, Example
from streamgauge.results.report.run_records import Records
from streamgauge.streams.stages import generate, ingest
from streamgauge.streams.stages.workers import Forked

ONE_WATERMARK = {"spark.sql.streaming.statefulOperator.allowMultiple": "false", "spark.driver.memory": "1g"}
RAW: dict[str, Any] = {
    "name": "auction",
    "source": {"format": "nexmark", "nexmark": {"events": 600, "rate": 6}},
    "experiments": [{"name": "late", "target_percent": 20, "delay": {"max": "60s"}}],
    "suite": {"queries": ["q18"]},
    "systems": [
        {"name": "hdfs"},
        {"name": "one", "state_store": "rocksdb", "conf": ONE_WATERMARK},
        {"name": "own", "python": sys.executable, "state_store": "rocksdb"},
        {"name": "strange", "engine": "known", "capacity": 5},
    ],
}


@pytest.fixture(scope="module")
def finished(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Benchmark, Store, Path]:
    """The stage's benchmark, its store, and its run after the stage has ended, with two of the hard queries."""
    benchmark, store = parse(Benchmark, RAW, "here"), Store(tmp_path_factory.mktemp("artifacts"))
    ingest.run(Forked(), benchmark, store)
    generate.run(Forked(), benchmark, store, benchmark.experiments[0])
    run = store.run("mine")
    two = [spec for spec in hard_queries.SPECS if spec.query in ("chained_windows", "deduplication")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hard_queries, "SPECS", two)
        patch.setattr(hard_queries, "BATCHES", 5)
        with pytest.raises(UserError, match="late: 1 of 6 answers: q18 in streaming is unsupported"):
            stage.run(spark, benchmark, store, benchmark.experiments[0], run)
    return benchmark, store, run


def test_what_a_process_that_ended_early_did_not_answer_is_named() -> None:
    q1 = Answer(query="q1", mode="batch", status="correct")
    assert [(one.query, one.mode, one.status, one.why) for one in unanswered([q1], ["q1", "q2"])] == [
        (query, mode, "unchecked", "the system's process ended before it answered")
        for query, mode in (("q2", "batch"), ("q1", "streaming"), ("q2", "streaming"))
    ]


@pytest.mark.spark
def test_one_failing_query_stops_nothing_and_each_system_has_its_column(
    finished: tuple[Benchmark, Store, Path],
) -> None:
    """Spark's default state store cannot do q18. With one watermark for all, chained windows lose rows,
    while a single operator only drops more of them.
    """
    benchmark, store, run = finished
    found = {(row["system"], row["query"], row["mode"]): row["status"] for row in read_jsonl(run / ROWS)}
    assert found == {
        ("hdfs", "q18", "batch"): "correct",
        ("hdfs", "q18", "streaming"): "unsupported",
        ("hdfs", "chained_windows", "batch"): "correct",
        ("hdfs", "chained_windows", "streaming"): "correct",
        ("one", "q18", "batch"): "correct",
        ("one", "q18", "streaming"): "correct",
        **{(system, "deduplication", mode): "correct" for system in ("hdfs", "one") for mode in ("batch", "streaming")},
        ("own", "q18", "batch"): "correct",
        ("own", "q18", "streaming"): "correct",
        ("one", "chained_windows", "batch"): "correct",
        ("one", "chained_windows", "streaming"): "wrong",
    }
    (why,) = {str(row["why"]) for row in read_jsonl(run / ROWS) if row["status"] == "unsupported"}
    assert why.startswith("[UNSUPPORTED_FEATURE.STORE_BACKEND_NOT_SUPPORTED_FOR_TWS] The feature is not supported")
    matrix = json.loads((run / CAPABILITIES).read_text())["features"]
    own = {(cell["system"], cell["mode"]): cell["status"] for cell in matrix if cell["feature"].startswith("per-op")}
    assert own == {
        ("hdfs", "batch"): "works", ("hdfs", "streaming"): "works", ("one", "batch"): "works",
        ("one", "streaming"): "wrong",
    }  # fmt: skip
    (record,) = Records(benchmark, store, "mine").hard
    assert (record.system, len(record.example)) == ("hdfs", 3)


@pytest.mark.spark
def test_each_operator_has_its_own_watermark_and_one_for_all_loses_rows(
    finished: tuple[Benchmark, Store, Path],
) -> None:
    """6, 4, 5 at seconds 1, 2, 3, then 7 at 4: windows [1, 4), [4, 7) of the first operator, [1, 7) of the second."""

    def batches(example: Example) -> list[Any]:
        """Per batch: each operator's two watermarks in s, its rows and drops; the result as (start, groups, total)."""

        def seconds(ms: int | None) -> int | None:
            return None if ms is None else ms // 1000

        return [
            (
                [(seconds(o.late_ms), seconds(o.eviction_ms), o.rows, o.dropped) for o in micro.operators],
                [(r["window_start"][17:19], int(r["groups"]), int(r["total"])) for r in micro.output],
            )
            for micro in example.batches
        ]

    benchmark, store, _ = finished
    (record,) = Records(benchmark, store, "mine").hard
    own, shared, late = [batches(example) for example in record.example]
    end = 10**9
    assert own == [
        ([(0, 0, 1, 0), (0, 0, 0, 0)], []),
        ([(0, 3, 2, 0), (0, 3, 0, 0)], []),
        ([(3, 4, 2, 0), (3, 4, 1, 0)], []),  # 6 of [1, 4) has come to the second operator
        ([(4, end, 1, 0), (4, end, 0, 0)], [("01", 2, 13)]),  # and so has 7 of [4, 7), in time
    ]
    assert shared == [
        ([(0, 0, 1, 0), (0, 0, 0, 0)], []),
        ([(3, 3, 2, 0), (3, 3, 0, 0)], []),
        ([(4, 4, 2, 0), (4, 4, 1, 0)], []),
        # 7 comes out of the first by the watermark by which it is late in the second: 6 instead of 13, and no error
        ([(end, end, 1, 0), (end, end, 0, 1)], [("01", 1, 6)]),
    ]
    # 9 at second 2 comes when [1, 4) has ended at 6: it is dropped once, in the first operator, and 16 stays 13
    assert sorted(row for _, out in late for row in out) == [("01", 2, 13), ("19", 1, 1)]
    assert [[o[3] for o in operators] for operators, _ in late if any(o[3] for o in operators)] == [[1, 0]]
