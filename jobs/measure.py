"""spark-submit application: runs a measurement of one cell. It only controls; the system is a process of its own."""

from streamgauge.app.stage_job import job
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measurements import MEASUREMENTS

if __name__ == "__main__":
    with job() as j:
        j.require("validate")
        if MEASUREMENTS.outside(j.args.stage):  # the stage turns ends well for some cells though it fails for others
            j.require("search")
        j.outcome |= measure(j.args.stage, CellRun(j.benchmark, j.store, j.cell, j.run.path))
