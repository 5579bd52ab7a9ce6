"""spark-submit application: reads the source into events."""

from streamgauge.index import garbage_collection
from streamgauge.spark import ingest
from streamgauge.spark.job import job

with job("ingest") as j:
    garbage_collection.require_budget(
        j.store, j.benchmark.retention.disk_budget, keep_runs=j.benchmark.retention.keep_runs
    )
    j.done(ingest.run(j.workers, j.benchmark, j.store))
