"""spark-submit application: runs the batch stages once, so that its JVM loads the classes that they need."""

import tempfile
from pathlib import Path

from streamgauge.catalog.artifacts import Store
from streamgauge.config import Overrides, load
from streamgauge.streams.stages import analyze, generate, ingest, validate
from streamgauge.streams.stages.session import batch_session
from streamgauge.streams.stages.tasks import OnSpark

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
    spark.stop()
