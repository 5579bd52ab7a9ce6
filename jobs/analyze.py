"""spark-submit application: measures the disorder of events and writes their profile."""

from streamgauge.streams.stages import analyze
from streamgauge.streams.stages.job import job

if __name__ == "__main__":
    with job("analyze") as j:
        j.done(analyze.run(j.workers, j.benchmark, j.store))
