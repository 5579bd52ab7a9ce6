"""spark-submit application: searches cells with proven streams in turns, and measures latency. It only controls."""

from streamgauge.app.stage_job import job
from streamgauge.bench.measure import turns

if __name__ == "__main__":
    with job("turns") as j:
        proved = [e.name for e in j.benchmark.experiments if j.succeeded("validate", experiment=e.name)]
        cells = [cell for cell in j.benchmark.all_cells() if cell.experiment in proved]
        j.outcome |= {"cells": turns.run(j.benchmark, j.store, j.run, cells)}
