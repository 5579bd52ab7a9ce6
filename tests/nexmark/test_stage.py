"""The stage nexmark with several systems: what each can do, and a query that fails."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamgauge.answers import hard_queries, stage
from streamgauge.answers.record import CAPABILITIES, ROWS
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, parse
from streamgauge.report.run_records import Records
from streamgauge.spark import generate, ingest
from streamgauge.spark.workers import Forked

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


@pytest.mark.spark
def test_one_failing_query_stops_nothing_and_each_system_has_its_column(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's default state store cannot do q18. With one watermark for all, chained windows lose rows,
    while a single operator only drops more of them.
    """
    monkeypatch.setattr(
        hard_queries,
        "SPECS",
        [spec for spec in hard_queries.SPECS if spec.query in ("chained_windows", "deduplication")],
    )
    monkeypatch.setattr(stage, "run_hard", partial(hard_queries.run_hard, batches=5))
    benchmark, store = parse(Benchmark, RAW, "here"), Store(tmp_path)
    ingest.run(Forked(), benchmark, store)
    generate.run(Forked(), benchmark, store, benchmark.experiments[0])
    run = store.run("mine")
    with pytest.raises(UserError, match="late: 1 of 6 answers: q18 in streaming is unsupported"):
        stage.run(spark, benchmark, store, benchmark.experiments[0], run)
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
    assert (record["system"], len(record["example"])) == ("hdfs", 3)
