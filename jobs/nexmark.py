"""spark-submit application: runs the Nexmark suite on one experiment's stream, and the hard queries; checks answers."""

from streamgauge.app.stage_job import job
from streamgauge.bench.answers import stage
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.timing import stage_seconds
from streamgauge.catalog.stages import BY_NAME

if __name__ == "__main__":
    with job("nexmark") as j:
        spark = j.spark  # before the lock: the lock's next holder kills what was started within it
        longest_s = stage_seconds(BY_NAME["nexmark"], j.benchmark)
        with measuring(f"{j.run_id} nexmark {j.experiment.name}", expected_s=longest_s):
            j.outcome |= stage.run(spark, j.benchmark, j.store, j.experiment, j.run.path)
