"""spark-submit application: validates the stream of one experiment.

Usage: spark-submit jobs/validate.py --config FILE --run-id ID --experiment NAME
"""

from pathlib import Path

from streamgauge.spark import validate
from streamgauge.spark.job import job

#: where Spark unpacks the submitted suites, in deploy mode cluster
UNPACKED = Path("expectations")
BESIDE = Path(__file__).resolve().parents[1] / "expectations"

if __name__ == "__main__":
    with job("validate") as j:
        validate.import_expectations()
        suites = BESIDE if BESIDE.is_dir() else UNPACKED
        j.done(validate.run(j.spark, j.benchmark, j.store, j.experiment, suites, j.run.path))
