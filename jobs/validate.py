"""spark-submit jobs/validate.py --config FILE --run-id ID --experiment NAME"""

from pathlib import Path

from streamgauge.spark import validate
from streamgauge.spark.job import job

SUITES = Path(__file__).resolve().parents[1] / "expectations"

if __name__ == "__main__":
    with job("validate") as j:
        j.done(validate.run(j.spark, j.benchmark, j.store, j.experiment, SUITES, j.run.path))
