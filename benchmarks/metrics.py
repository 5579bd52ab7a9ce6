"""Measures the cost of 20 metrics updated per Arrow batch: the same Spark job with and without them, side by side.

    .venv/bin/python -m benchmarks.metrics [--rows 1000000] [--pairs 80] [--warmups 10] [--cores 2] [--json]

The job parses lines with mapInArrow, 10,000 rows a batch. The figure is the CPU time (user + system) of the whole
process tree: the JVM, the workers, and this process with its pusher, which posts to an HTTP server. Short runs take
turns in changing order in one warm Spark, so that a drift of the machine meets both. The JVM's heap is collected before
each run, outside the measured time.

The table has the Hodges-Lehmann estimate of the pairs' differences and its 95 % interval (the inverted signed-rank
test), which a few disturbed pairs do not move. Python's share is shown apart: it makes, sends, merges and pushes the
updates.
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
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from benchmarks.contest import Meter
from streamgauge import metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 10_000
PARTITIONS = 4
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
    """Does the work: reads two fields of each line as whole numbers, and leaves bad and odd lines out."""
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
    """Updates each of 20 metrics once; two of the distributions see every value of a column."""
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
    return spark.range(0, rows, 1, PARTITIONS).selectExpr(line).mapInArrow(work, SCHEMA)


def run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("append").save()


METER = Meter()


def cpu() -> tuple[float, float]:
    """CPU seconds so far of the whole tree and of its Python processes, including those that have ended."""
    java = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = child.cpu_times()
            java += times.user + times.system if "java" in child.name() else 0.0
    whole = METER.cpu()
    return whole, whole - java


Runs = list[tuple[float, float]]


def compare(spark: SparkSession, rows: int, pairs: int, warmups: int, url: str) -> tuple[Runs, Runs]:
    """CPU seconds (tree, Python) of each run without and with metrics, in pairs."""

    def measured(work: Callable[..., Any]) -> tuple[float, float]:
        frame = job(spark, rows, work)
        spark.sparkContext._jvm.System.gc()
        before = cpu()
        run(frame)
        after = cpu()
        return after[0] - before[0], after[1] - before[1]

    without, with_them = Runs(), Runs()
    with metrics.start(spark, sinks=[{"type": "http", "url": url}], name="benchmark") as pipeline:
        for number in range(warmups + pairs):
            sides = [(plain, without), (counted, with_them)]
            for work, times in sides if number % 2 else reversed(sides):
                times.append(measured(work))
        [seen] = pipeline.query(name="count_0")
        assert seen.committed == {"value": rows * (warmups + pairs)}, seen
    return without[warmups:], with_them[warmups:]


def shift(differences: list[float]) -> tuple[float, float, float]:
    """(low, estimate, high): the median of all means of two, and its 95 % interval."""
    d, n = np.array(differences), len(differences)
    means = np.sort([(d[i] + d[j]) / 2 for i in range(n) for j in range(i, n)])
    spread = 1.96 * (n * (n + 1) * (2 * n + 1) / 24) ** 0.5
    rank = max(0, int(n * (n + 1) / 4 - spread))
    return float(means[rank]), float(np.median(means)), float(means[-1 - rank])


def alone(url: str) -> tuple[float, float]:
    """Least time of the updates of a batch, in µs, and CPU of a push of the 20 metrics, in ms, both in this process."""
    column = pa.array(np.arange(BATCH_ROWS) * 7919 % 1000003)
    batch = pa.RecordBatch.from_arrays([column, column], names=["id", "value"])
    with metrics.start(name="alone", sinks=[{"type": "http", "url": url}], period="100ms"):
        updates = min(timeit.repeat(lambda: update(batch, batch), number=500, repeat=7)) / 500
        before = time.process_time()
        time.sleep(3)
        push = (time.process_time() - before) / 30
    return updates * 1e6, push * 1e3


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
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=80)
    parser.add_argument("--warmups", type=int, default=10, help="pairs that do not count")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from streamgauge.streams.stages.session import batch_session

    conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS)}
    with backend() as url:
        updates_us, push_ms = alone(url)
        spark = batch_session("metrics", f"local[{args.cores}]", conf)
        without, with_them = compare(spark, args.rows, args.pairs, args.warmups, url)
        spark.stop()
    base = statistics.median(tree for tree, _ in without)

    def more(part: int) -> list[float]:
        """Returns a difference in percent of the job's CPU: low, estimate and high."""
        return [100 * one / base for one in shift([w[part] - o[part] for o, w in zip(without, with_them, strict=True)])]

    figures = {
        "rows": args.rows,
        "cpu_s_tree_and_python": {"without": without, "with_metrics": with_them},
        "more_percent_tree": more(0),
        "more_percent_python": more(1),
        "updates_us_per_batch": updates_us,
        "updates_percent": 100 * updates_us * 1e-6 * args.rows / BATCH_ROWS / base,
        "push_cpu_ms": push_ms,
    }
    if args.json:
        print(json.dumps(figures))
        return
    table = Table(title=f"CPU seconds: {args.rows:,} rows, {BATCH_ROWS:,} a batch, 20 metrics, {args.pairs} pairs")
    for name in ("side", "tree, median", "quartiles", "Python, median", "quartiles"):
        table.add_column(name, justify="right")
    for side, runs in (("without", without), ("with metrics", with_them)):
        cells = []
        for part in (0, 1):
            low, middle, high = statistics.quantiles([r[part] for r in runs], n=4)
            cells += [f"{middle:.3f}", f"{low:.3f} to {high:.3f}"]
        table.add_row(side, *cells)
    console = Console(width=120)
    console.print(table)
    for name, part in (("whole tree", 0), ("Python processes", 1)):
        low, middle, high = more(part)
        console.print(f"more by the {name}: {middle:+.2f} % of the job (95 % interval {low:+.2f} to {high:+.2f})")
    console.print(f"the updates alone: {updates_us:.0f} us a batch, {figures['updates_percent']:.2f} % of the job")
    console.print(f"a push: {push_ms:.2f} ms of CPU, {push_ms / 50:.3f} % of a core at a push every 5 s")


if __name__ == "__main__":
    main()
