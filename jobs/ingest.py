"""spark-submit application: reads the source into events."""

from streamgauge.app.stage_job import job
from streamgauge.bench.measure.checks import check_sections
from streamgauge.results.index import garbage_collection
from streamgauge.streams.stages import ingest

with job("ingest") as j:
    check_sections(j.benchmark)  # before anything that takes long
    garbage_collection.require_budget(
        j.store, j.benchmark.retention.disk_budget, keep_runs=j.benchmark.retention.keep_runs
    )
    j.done(ingest.run(j.workers, j.benchmark, j.store))
