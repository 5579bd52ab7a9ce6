"""The spark-submit application that asks a system the suite's queries; it may run in another Spark's environment.

Its one argument is JSON: events (a Parquet file), out (JSON lines to append to), work, queries, modes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder: its modules may only be imported as parts of the package

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamgauge.bench.answers.finite_stream import Events
from streamgauge.bench.answers.nexmark_suite import chosen, run_suite
from streamgauge.bench.engines.spark.engine import versions
from streamgauge.records.answers import ForeignAnswer


def main() -> None:
    given = json.loads(sys.argv[1])
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    events, queries = Events(pq.read_table(given["events"])), chosen(",".join(given["queries"]))
    for mode in given["modes"]:
        for answer in run_suite(spark, events, queries, mode, Path(given["work"]) / mode):
            ForeignAnswer(**answer.fields, versions=versions(spark)).append(Path(given["out"]))
    spark.stop()


if __name__ == "__main__":
    main()
