"""spark-submit application: runs the Nexmark suite on one experiment's stream and checks every answer."""

from streamgauge.answers import stage
from streamgauge.spark.job import job

if __name__ == "__main__":
    with job("nexmark") as j:
        j.outcome |= stage.run(j.spark, j.benchmark, j.store, j.experiment, j.run.path)
