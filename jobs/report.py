"""spark-submit application: puts a run on one HTML page. It only reads records, so no session is ever started."""

from __future__ import annotations

import logging

from streamgauge.app.stage_job import job
from streamgauge.results import index
from streamgauge.results.report import build

if __name__ == "__main__":
    with job("report") as j:
        page = build(j.benchmark, j.store, j.run_id)
        logging.getLogger("streamgauge").info("page: %s", page)
        j.outcome |= {"page": str(page), "index": index.index_run(j.store.root, j.run_id)}
