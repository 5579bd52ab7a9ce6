"""Builds self-contained HTML pages from records and artifacts, without Spark: `build` makes the page of one run."""

from streamgauge.report.page import build

__all__ = ["build"]
