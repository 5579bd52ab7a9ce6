"""The stage nexmark: the whole suite on an experiment's stream, in batch and in streaming."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from streamgauge.artifacts import Store
from streamgauge.config import Benchmark, Experiment
from streamgauge.errors import UserError
from streamgauge.suite.events import read_events
from streamgauge.suite.nexmark import run_suite
from streamgauge.suite.record import keep
from streamgauge.suite.systems import system
from streamgauge.workloads.nexmark import QUERIES

log = logging.getLogger("streamgauge")
SYSTEM = "spark"
MODES: tuple[Literal["batch", "streaming"], ...] = ("batch", "streaming")


def run(
    spark: SparkSession, benchmark: Benchmark, store: Store, experiment: Experiment, directory: Path
) -> dict[str, int]:
    """Rows go to the run's directory as they come. How many there are of each status; UserError unless all are correct."""
    stream = store.need("stream", store.stream_key(benchmark, experiment), "generate")
    events = read_events(stream, benchmark.source.tick)
    about = {"system": SYSTEM, "disorder_percent": experiment.target_percent, "events": events.rows.num_rows}
    conf = {**system(SYSTEM), "spark.sql.shuffle.partitions": "2"}
    found: Counter[str] = Counter()
    bad: list[str] = []
    with tempfile.TemporaryDirectory(prefix="streamgauge-nexmark-") as work:
        for mode in MODES:
            for record in run_suite(spark, events, QUERIES, mode, Path(work) / mode, conf=conf):
                log.info("%s in %s: %s %s", record.query, mode, record.status, record.why or "")
                keep(directory, {**record.to_dict(), **about})
                found[record.status] += 1
                bad += [f"{record.query} in {mode} is {record.status}"] if record.status != "correct" else []
    if bad:
        raise UserError(f"{experiment.name}: {len(bad)} of {sum(found.values())} answers: {', '.join(bad)}")
    return dict(found)
