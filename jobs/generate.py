"""spark-submit application: makes the stream of one experiment from the events."""

from streamgauge.app.stage_job import job
from streamgauge.streams.stages import generate

if __name__ == "__main__":
    with job("generate") as j:
        j.done(generate.run(j.workers, j.benchmark, j.store, j.experiment))
