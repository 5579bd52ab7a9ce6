"""spark-submit application: says how long one workload shall wait for late events of the source.

Usage: spark-submit jobs/advice.py --config FILE --run-id ID --workload NAME
"""

from streamgauge.app.stage_job import job
from streamgauge.bench.measure import advice

if __name__ == "__main__":
    with job("advice") as j:
        j.done(advice.run(j.workers, j.benchmark, j.store, j.benchmark.workload(j.args.workload)))
