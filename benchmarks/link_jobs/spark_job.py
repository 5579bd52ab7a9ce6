"""Flights per carrier and hour in PySpark, from a Kafka topic or from a socket of lines, to a Kafka topic.

The query is that of examples/jobs/spark_job.py; benchmarks/links.py compares its two sources.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

parser = argparse.ArgumentParser(description=__doc__)
for name in ("source", "bootstrap", "input", "output", "checkpoint"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--most", default="100000", help="records of a micro-batch; the socket source takes all that came")
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
    host, port = options.input.split(":")
    records = spark.readStream.format("socket").option("host", host).option("port", port)
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
