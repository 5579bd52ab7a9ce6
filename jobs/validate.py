"""spark-submit application: validates the stream of one experiment.

Usage: spark-submit jobs/validate.py --config FILE --run-id ID --experiment NAME
"""

from streamgauge.app.stage_job import job
from streamgauge.base.shipped import shipped
from streamgauge.streams.stages import validate

if __name__ == "__main__":
    with job("validate") as j:
        validate.import_expectations()
        suites = shipped("expectations")
        j.done(validate.run(j.spark, j.benchmark, j.store, j.experiment, suites, j.run.path))
