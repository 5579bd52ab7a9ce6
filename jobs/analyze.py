"""spark-submit application: measures the disorder of events and writes their profile."""

from streamgauge.app.stage_job import job
from streamgauge.streams.stages import analyze

if __name__ == "__main__":
    with job("analyze") as j:
        j.done(analyze.run(j.workers, j.benchmark, j.store))
