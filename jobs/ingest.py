"""spark-submit application: reads the source into events."""

from streamgauge.spark import ingest
from streamgauge.spark.job import job
from streamgauge.store import retention

with job("ingest") as j:
    retention.require_budget(j.store, j.benchmark.retention.disk_budget, keep_runs=j.benchmark.retention.keep_runs)
    j.done(ingest.run(j.spark, j.benchmark, j.store))
