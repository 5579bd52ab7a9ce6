"""spark-submit application: measures the disorder of events and writes their profile."""

from streamgauge.spark import analyze
from streamgauge.spark.job import job

if __name__ == "__main__":
    with job("analyze") as j:
        j.done(analyze.run(j.workers, j.benchmark, j.store))
