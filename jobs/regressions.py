"""spark-submit application: judges a night against earlier nights, and draws the page of all nights."""

from streamgauge.app.nights.night import BAD, Night
from streamgauge.app.nights.series import looks
from streamgauge.app.stage_job import job
from streamgauge.base.errors import UserError
from streamgauge.results.index import Index, default_url
from streamgauge.results.report import dashboard
from streamgauge.results.report.overview import expected
from streamgauge.results.report.run_records import Records

with job("regressions") as j:
    index = Index(default_url(j.store.root))
    missing = [one.what for one in expected(Records(j.benchmark, j.store, j.run_id)) if one.outcome == "missing"]
    lines = Night(j.benchmark, j.store, j.run_id, index, lambda: j.spark, missing).judge()
    page = j.store.root / "dashboard.html"
    dashboard.build(index, page, looks(index))
    bad = [str(line) for line in lines if line.state in BAD]
    j.outcome |= {"lines": [str(line) for line in lines], "page": str(page)}
    if bad:
        raise UserError(f"{len(bad)} problems: {'; '.join(bad)[:1500]}")
