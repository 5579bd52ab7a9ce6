"""spark-submit application: compares a candidate with a baseline.

It only controls; both systems are processes of their own.
"""

from streamgauge import index
from streamgauge.judge import release_check
from streamgauge.report.release_page import build
from streamgauge.spark.job import job

if __name__ == "__main__":
    with job("release") as j:
        found = release_check.run(j.benchmark, j.store, j.args.baseline, j.args.candidate, j.run.path)
        j.outcome |= {"verdict": found["line"], "page": str(build(j.run.path))}
        j.outcome |= {"index": index.index_run(j.store.root, j.run_id)}
