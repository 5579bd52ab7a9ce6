"""Compares the Nexmark generator with Spark's rate source, and with Spark's speed on the fastest queries.

    python -m benchmarks.nexmark [--events 2000000] [--json]

The figures are events per CPU second, all on one core, of:

- the generator, as Arrow batches, with all columns and with those of single queries;
- Spark's rate source with as many columns of the same types, into the no-op sink;
- queries over Parquet files of the events, into the no-op sink.

Goal: a query's columns are made at least 4 times faster than Spark takes them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamgauge.base.schemas import NEXMARK
from streamgauge.bench import workloads
from streamgauge.bench.driver.replay import make_stream, offered_rows
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.engine import checkpoint_manager
from streamgauge.bench.engines.spark.progress import ran
from streamgauge.bench.workloads.nexmark.standard import standard
from streamgauge.config import Nexmark
from streamgauge.streams.nexmark.generator import Generator, rows
from streamgauge.streams.stages.workers import keep_pages

BATCH, RATE_BATCH, REPEATS = 100_000, 500_000, 3
QUERIES = ("q0", "q2", "q5")
#: per type, what the rate source makes of its counter: texts of 30 to 40 characters, many different
RATE = {
    "string": "concat('some text of a common length ', cast(value % 10000 as string))",
    "int64": "value * 7919 % 1000000",
}


def generated(events: int, columns: tuple[str, ...]) -> float:
    keep_pages()  # as the tasks of ingest do
    generator = Generator(Nexmark())
    generator.events(0, BATCH, columns)
    began = time.process_time()
    for first in range(0, events, BATCH):
        generator.events(first, min(BATCH, events - first), columns)
    return events / (time.process_time() - began)


def rate_source(spark: SparkSession, columns: tuple[str, ...]) -> float:
    """Events per CPU second of a few micro-batches, after a few to warm up."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", RATE_BATCH).load()
    frame = source.select("timestamp", *(F.expr(RATE[NEXMARK[name]]).alias(name) for name in columns))
    with tempfile.TemporaryDirectory() as place:
        query = frame.writeStream.format("noop").option("checkpointLocation", place).start()

        def after(batches: int) -> tuple[int, float]:
            while True:
                done = sum(ran(json.loads(progress.json)) for progress in query.recentProgress)
                if done >= batches:
                    return done, cpu_seconds()
                time.sleep(0.02)

        warm, before = after(REPEATS)
        done, used = after(warm + 2 * REPEATS)
        query.stop()
    return (done - warm) * RATE_BATCH / (used - before)


def taken(spark: SparkSession, events: int, name: str, file: str) -> float:
    """Events per CPU second in the best of a few runs, after one to warm up."""
    query, rates = workloads.find(f"nexmark.{name}"), []
    for _ in range(REPEATS + 1):
        before = cpu_seconds()
        queries.run([spark.read.parquet(file)], standard(query, 0)).write.format("noop").mode("overwrite").save()
        rates.append(events / (cpu_seconds() - before))
    return max(rates[1:])


def cpu_seconds() -> float:
    """CPU seconds of Spark: of all processes that this one has started."""
    return float(sum(sum(child.cpu_times()[:4]) for child in psutil.Process().children(recursive=True)))


def compare(events: int) -> dict[str, Any]:
    pa.set_cpu_count(1)
    columns = {"all columns": tuple(NEXMARK)}
    columns |= {f"columns of {name}": workloads.find(f"nexmark.{name}").columns for name in QUERIES}
    making = {what: generated(events, names) for what, names in columns.items()}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", checkpoint_manager(spark))
    rate = {what: rate_source(spark, names) for what, names in columns.items()}
    with tempfile.TemporaryDirectory() as place:
        table = rows(Generator(Nexmark()), 0, events, tuple(NEXMARK)).drop_columns("line")
        table = table.add_column(0, "ingestion_time", table["event_time"])
        file = str(Path(place, "events.parquet"))
        pq.write_table(offered_rows(make_stream(table, "ns", dict(NEXMARK)), [[events]]), file, compression="lz4")
        taking = {name: taken(spark, events, name, file) for name in QUERIES}
    spark.stop()
    return {"events": events, "generator": making, "rate source": rate, "spark takes": taking}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures = compare(args.events)
    if args.json:
        print(json.dumps(figures))
        return

    def show(rate: float) -> str:
        return f"{rate / 1e6:6.2f} M"

    print(f"{'events per CPU second':24}{'generator':>12}{'rate source':>14}{'Spark takes':>14}{'ratio':>8}")
    for what, made in figures["generator"].items():
        name = what.rpartition(" ")[2]
        takes = figures["spark takes"].get(name)
        beside = f"{show(takes):>14}{made / takes:8.1f}" if takes else ""
        print(f"{what:24}{show(made):>12}{show(figures['rate source'][what]):>14}{beside}")


if __name__ == "__main__":
    main()
