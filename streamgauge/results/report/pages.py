"""The pages of one run: index.html, and disorder.html where cells were measured that may differ in their disorder."""

from __future__ import annotations

from pathlib import Path

from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, keep
from streamgauge.results.report import disorder, layout, page, sweep
from streamgauge.results.report.run_records import Records


def build(benchmark: Benchmark, store: Store, run_id: str) -> Path:
    """Writes the pages and the benchmark into the run's directory; returns the path of index.html.

    Raises UserError if that fails, and after writing if a record is damaged: the page leaves it out and shows the rest.
    """
    records = Records(benchmark, store, run_id)
    if sweep.is_known(records):
        layout.publish(records.directory / sweep.PAGE, disorder.render(records))
    path = records.directory / "index.html"
    layout.publish(path, page.render(records))
    keep(benchmark, records.directory)
    records.require_sound()
    return path
