"""Flights per carrier and hour in PySpark, from a Kafka topic or from a socket of lines, to a Kafka topic.

The query is that of examples/jobs/spark_job.py; benchmarks/links.py compares its two sources. Spark's own source
`socket` is for trying out: the cost of a row there grows with what waits (docs/driver.md). The one here takes a
micro-batch out of the socket when Spark asks for it, and leaves the rest there, so that TCP stops the generator.
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

MOST_BYTES = 8 * 2**20


class Lines(DataSource):  # type: ignore[misc]
    """The source of lines from a socket."""

    @classmethod
    def name(cls) -> str:
        return "lines"

    def schema(self) -> str:
        return "value string"

    def simpleStreamReader(self, schema: Any) -> LinesReader:  # noqa: ARG002
        return LinesReader(self.options["address"])


class LinesReader(SimpleDataSourceStreamReader):  # type: ignore[misc]
    """The reader of a micro-batch: all whole lines that have come, up to a size; its offset is their number."""

    def __init__(self, address: str) -> None:
        self._address, self._rest = address, b""
        self._socket: socket.socket | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[pa.RecordBatch], dict[str, int]]:
        lines = self._taken()
        batch = pa.RecordBatch.from_arrays([pa.array(lines, pa.binary()).cast(pa.string())], names=["value"])
        return iter([batch] if lines else []), {"row": start["row"] + len(lines)}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[pa.RecordBatch]:
        if start != end:
            raise ValueError(f"rows {start} to {end} are gone: nobody keeps them")
        return iter([])

    def _taken(self) -> list[bytes]:
        if self._socket is None:
            host, port = self._address.split(":")
            self._socket = socket.create_connection((host, int(port)))
            self._socket.setblocking(False)
        parts, size = [self._rest], 0
        try:
            while size < MOST_BYTES and (part := self._socket.recv(2**20)):
                parts.append(part)
                size += len(part)
        except BlockingIOError:
            pass  # no more has come
        whole, _, self._rest = b"".join(parts).rpartition(b"\n")
        return whole.split(b"\n") if whole else []


parser = argparse.ArgumentParser(description=__doc__)
for name in ("source", "bootstrap", "input", "output", "checkpoint"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--most", default="100000", help="records of a micro-batch from Kafka")
options = parser.parse_args()

spark = SparkSession.builder.appName("links").getOrCreate()
if options.source == "kafka":
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.bootstrap)
        .option("subscribe", options.input)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", options.most)
    )
else:
    spark.dataSource.register(Lines)
    records = spark.readStream.format("lines").option("address", options.input)
flight = F.from_json(F.col("value").cast("string"), "event_ts timestamp, carrier string, flight long").alias("flight")
counts = (
    records.load()
    .select(flight)
    .select("flight.*")
    .withWatermark("event_ts", "2 hours")
    .groupBy(F.window("event_ts", "1 hour"), "carrier")
    .agg(F.count("*").alias("flights"), F.sum("flight").alias("total"))
)
answers = counts.select(
    F.to_json(F.struct(F.col("window.start").alias("hour"), "carrier", "flights", "total")).alias("value")
)
(
    answers.writeStream.format("kafka")
    .option("kafka.bootstrap.servers", options.bootstrap)
    .option("topic", options.output)
    .option("checkpointLocation", options.checkpoint)
    .outputMode("append")
    .start()
    .awaitTermination()
)
