"""spark-submit application: makes the stream of one experiment from the events."""

from streamgauge.streams.stages import generate
from streamgauge.streams.stages.job import job

if __name__ == "__main__":
    with job("generate") as j:
        j.done(generate.run(j.workers, j.benchmark, j.store, j.experiment))
