"""spark-submit application: runs batch stages and streaming queries once, so that its JVM loads their classes."""

import tempfile
from pathlib import Path

from streamgauge.answers import finite_stream
from streamgauge.answers.nexmark_suite import chosen, run_suite
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Overrides, load
from streamgauge.engines.spark.engine import HDFS, PROVIDER, ROCKSDB
from streamgauge.spark import analyze, generate, ingest, validate
from streamgauge.spark.session import batch_session
from streamgauge.spark.tasks import OnSpark

root = Path(__file__).resolve().parents[1]
benchmark = load(root / "configs" / "flights.yaml", Overrides(scale=0.02))
late = benchmark.experiment("late20")
with tempfile.TemporaryDirectory() as place:
    store, spark = Store(place), batch_session("class archive", "local[2]")
    workers = OnSpark(spark)
    ingest.run(workers, benchmark, store)
    analyze.run(workers, benchmark, store)
    generate.run(workers, benchmark, store, late)
    validate.run(spark, benchmark, store, late, root / "expectations", store.run("archive"))
    # windows, joins and state in Python, in each of Spark's state stores
    events = finite_stream.make_events(store, finite_stream.benchmark(events=500, seed=1, disorder=20.0))
    for provider, names in ((ROCKSDB, "q5,q6,q8,q11,q16,q18,q23"), (HDFS, "q5,q20")):
        for record in run_suite(
            spark, events, chosen(names), "streaming", Path(place, names), conf={PROVIDER: provider}
        ):
            assert record.status == "correct", record.why
    spark.stop()
