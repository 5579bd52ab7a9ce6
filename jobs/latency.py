"""spark-submit application: measures the latency of one cell at fractions of its sustainable rate."""

from streamgauge.bench.measure import latency
from streamgauge.streams.stages.job import job

if __name__ == "__main__":
    with job("latency") as j:
        runs = latency.run(j.benchmark, j.store, j.cell, j.run.path)
        j.outcome |= {"runs": len(runs), "valid": sum(f.valid for f in runs)}
        j.outcome["system"] = next((f.application for f in reversed(runs)), {})
