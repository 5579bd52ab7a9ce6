"""What 20 metrics updated per Arrow batch cost: the same Spark job with and without them, side by side.

    .venv/bin/python benchmarks/metrics.py [--rows 20000000] [--repeats 5] [--cores 2] [--json]

The job parses lines with mapInArrow, 10,000 rows a batch. CPU seconds (user + system) of the whole process tree, JVM and
workers and this process with its pusher, which posts to an HTTP server in a process of its own. Both sides take turns,
each warmed up before it is measured; Spark's start-up is apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from batch import Meter
from rich.console import Console
from rich.table import Table

from streamgauge import metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 10_000
SCHEMA = "id long, value long"
SERVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Backend(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"])); self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
server = HTTPServer(("127.0.0.1", 0), Backend)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The work: two fields of each line as whole numbers, bad and odd lines left out."""
    fields = pc.split_pattern(batch.column(0), ",", max_splits=3)
    ids = pc.cast(pc.list_element(fields, 0), pa.int64())
    values = pc.cast(pc.list_element(fields, 1), pa.int64())
    kept = pc.equal(pc.bit_wise_and(values, 1), 0)
    return pa.RecordBatch.from_arrays([ids, values], names=["id", "value"]).filter(kept)


def plain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield parse(batch)


COUNTERS = [metrics.counter("parse", f"count_{number}") for number in range(12)]
DISTRIBUTIONS = [metrics.distribution("parse", f"size_{number}") for number in range(4)]
GAUGES = [metrics.gauge("parse", f"latest_{number}") for number in range(4)]


def update(batch: pa.RecordBatch, done: pa.RecordBatch) -> None:
    """20 metrics, an update each; two of the distributions see every value of a column."""
    for counter in COUNTERS:
        counter.inc(batch.num_rows)
    for distribution in DISTRIBUTIONS[:2]:
        distribution.update(done.num_rows)
    DISTRIBUTIONS[2].update_many(done.column(0))
    DISTRIBUTIONS[3].update_many(done.column(1))
    for gauge in GAUGES:
        gauge.set(done.num_rows)


@metrics.step("parse")
def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        done = parse(batch)
        update(batch, done)
        yield done


def job(spark: SparkSession, rows: int, work: Callable[..., Any]) -> DataFrame:
    line = "concat_ws(',', id, id * 7919 % 1000003, 'some-channel', 'https://example.org/item', id % 97) as line"
    return spark.range(0, rows, 1, 8).selectExpr(line).mapInArrow(work, SCHEMA)


def run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("append").save()


def compare(spark: SparkSession, rows: int, repeats: int, url: str) -> dict[str, list[float]]:
    """CPU seconds of each run, by side."""
    meter, found = Meter(), dict[str, list[float]](without=[], with_metrics=[])

    def measured(work: Callable[..., Any]) -> float:
        run(job(spark, rows // 8, work))
        return meter.run(lambda: run(job(spark, rows, work)))[0]

    for _ in range(repeats + 1):
        found["without"].append(measured(plain))
        with metrics.start(spark, sinks=[{"type": "http", "url": url}], name="benchmark") as pipeline:
            found["with_metrics"].append(measured(counted))
            [seen] = pipeline.query(name="count_0")
            assert seen.committed == {"value": rows + rows // 8}, seen
    return {side: runs[1:] for side, runs in found.items()}  # the first of each compiles


def microseconds_per_batch() -> float:
    """Of the updates alone, in this process."""
    column = pa.array(np.arange(BATCH_ROWS) * 7919 % 1000003)
    batch = pa.RecordBatch.from_arrays([column, column], names=["id", "value"])
    with metrics.start(name="alone"):
        return min(timeit.repeat(lambda: update(batch, batch), number=500, repeat=7)) / 500 * 1e6


@contextmanager
def backend() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
    finally:
        server.kill()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="What metrics cost")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from streamgauge.spark.session import batch_session

    alone = microseconds_per_batch()
    conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS)}
    spark = batch_session("metrics", f"local[{args.cores}]", conf)
    began = time.monotonic()
    with backend() as url:
        found = compare(spark, args.rows, args.repeats, url)
    spark.stop()
    middle = {side: statistics.median(runs) for side, runs in found.items()}
    ratios = sorted(w / o for o, w in zip(found["without"], found["with_metrics"], strict=True))
    figures = {
        "rows": args.rows,
        "cpu_s": found,
        "cpu_s_median": middle,
        "more_percent": 100 * (statistics.median(ratios) - 1),
        "more_percent_of_each_pair": [round(100 * (ratio - 1), 2) for ratio in ratios],
        "updates_us_per_batch": alone,
        "updates_percent_of_the_job": 100 * alone * 1e-6 * args.rows / BATCH_ROWS / middle["without"],
        "seconds": time.monotonic() - began,
    }
    if args.json:
        print(json.dumps(figures))
        return
    table = Table(title=f"{args.rows:,} rows, {BATCH_ROWS:,} a batch, 20 metrics, {args.cores} cores: CPU seconds")
    for name in ("side", "median", "least", "most"):
        table.add_column(name, justify="right")
    for side, runs in found.items():
        table.add_row(side.replace("_", " "), *(f"{value:.2f}" for value in (middle[side], min(runs), max(runs))))
    console = Console(width=120)
    console.print(table)
    console.print(f"more, median of the pairs: {figures['more_percent']:+.2f} % {figures['more_percent_of_each_pair']}")
    console.print(
        f"the updates alone: {alone:.0f} us a batch, {figures['updates_percent_of_the_job']:.2f} % of the job's CPU"
    )


if __name__ == "__main__":
    main()
