"""spark-submit application: finds one cell's sustainable rate. It only controls; the system is a process of its own."""

from streamgauge.bench.measure import search_stage
from streamgauge.streams.stages.job import job

if __name__ == "__main__":
    with job("search") as j:
        j.require("validate")
        record = search_stage.run(j.benchmark, j.store, j.cell, j.run.path)
        j.outcome |= {"rate_events_per_s": record.sustainable_rate_events_per_s, "reason": record.reason}
        j.outcome["system"] = record.application
