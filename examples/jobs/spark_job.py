"""An ordinary PySpark Structured Streaming job: flights per carrier and hour, from one Kafka topic to another.

It knows nothing of Streamgauge. Start it with spark-submit, and Spark's Kafka connector on its class path.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bootstrap", required=True)
parser.add_argument("--input", required=True)
parser.add_argument("--output", required=True)
parser.add_argument("--checkpoint", required=True)
parser.add_argument("--watermark", default="2 hours")
parser.add_argument("--most", default="20000", help="records of a micro-batch")
options = parser.parse_args()

spark = SparkSession.builder.appName("flights").getOrCreate()
records = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", options.bootstrap)
    .option("subscribe", options.input)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", options.most)
    .load()
)
flight = F.from_json(F.col("value").cast("string"), "event_ts timestamp, carrier string, flight long").alias("flight")
counts = (
    records.select(flight)
    .select("flight.*")
    .withWatermark("event_ts", options.watermark)
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
