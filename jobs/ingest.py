"""spark-submit application: reads the source into events."""

from streamgauge.spark import ingest
from streamgauge.spark.job import job

with job("ingest") as j:
    j.done(ingest.run(j.spark, j.benchmark, j.store))
