"""Times one query of the suite once more, for the rerun of a suspect."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.answers.finite_stream import read_events
from streamgauge.bench.answers.nexmark_suite import chosen, run_suite
from streamgauge.bench.answers.systems import asked, conf
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark
from streamgauge.records.answers import MODES
from streamgauge.streams.keys import stream_key


def seconds(
    spark: SparkSession, benchmark: Benchmark, store: Store, experiment: str, query: str, system: str, mode: str
) -> dict[str, float]:
    """Runs one query and returns its seconds by metric; an empty dict if the answer is not correct."""
    stream = store.need("stream", stream_key(store, benchmark, benchmark.experiment(experiment)), "generate")
    events = read_events(stream, benchmark.source.tick)
    (settings,) = (conf(one) for one in asked(benchmark) if one.name == system)
    (wanted,) = (one for one in MODES if one == mode)
    with tempfile.TemporaryDirectory(prefix="streamgauge-nexmark-") as work:
        given = {**settings, "spark.sql.shuffle.partitions": "2"}
        (record,) = run_suite(spark, events, chosen(query), wanted, Path(work) / "w", conf=given)
    return {SECONDS: record.seconds} if record.status == "correct" and record.seconds else {}
