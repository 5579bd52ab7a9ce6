"""One self-contained HTML page about one run; reads records and artifacts, never Spark."""

from streamgauge.report.page import build

__all__ = ["build"]
