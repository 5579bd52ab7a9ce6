"""spark-submit application: compares a candidate with a baseline.

It only controls; both systems are processes of their own.
"""

from streamgauge.app.nights import release_check
from streamgauge.app.stage_job import job
from streamgauge.results import index
from streamgauge.results.report.release_page import build

if __name__ == "__main__":
    with job("release") as j:
        check = release_check.run(j.benchmark, j.store, j.args.baseline, j.args.candidate, j.run.path)
        j.outcome |= {"verdict": check.line, "page": str(build(j.run.path))}
        j.outcome |= {"index": index.index_run(j.store.root, j.run_id)}
