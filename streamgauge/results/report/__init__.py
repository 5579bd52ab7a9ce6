"""Builds self-contained HTML pages from records and artifacts, without Spark: `build` makes the pages of one run."""

from streamgauge.results.report.page import build

__all__ = ["build"]
