"""The pages of one run: index.html, and disorder.html where cells were measured that may differ in their disorder."""

from __future__ import annotations

from pathlib import Path

from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, keep
from streamgauge.results.report import (
    advice_page,
    again,
    cells_section,
    disorder,
    experiments,
    hard_section,
    headline,
    layout,
    machine,
    nexmark_section,
    overview,
    source_section,
    sweep,
)
from streamgauge.results.report.blocks import Section
from streamgauge.results.report.run_records import Records


def build(benchmark: Benchmark, store: Store, run_id: str) -> Path:
    """Writes the pages and the benchmark into the run's directory; returns the path of index.html.

    Raises UserError if that fails, and after writing if a record is damaged: the page leaves it out and shows the rest.
    """
    records = Records(benchmark, store, run_id)
    if sweep.is_known(records):
        layout.publish(records.directory / sweep.PAGE, disorder.render(records))
    path = records.directory / "index.html"
    layout.publish(path, render(records))
    keep(benchmark, records.directory)
    records.require_sound()
    return path


def sections(records: Records) -> list[Section]:
    """Builds the sections of the page, in their order."""
    return [
        *([headline.section(records)] if records.cells else []),
        overview.summary(records),
        *([sweep.section(records)] if sweep.is_known(records) else []),
        source_section.section(records),
        *([advice_page.section(records)] if records.benchmark.advice is not None else []),
        experiments.section(records),
        *([cells_section.section(records)] if records.cells else []),
        *(
            [nexmark_section.section(records.nexmark, nexmark_section.expected(records))]
            if records.nexmark or records.suites
            else []
        ),
        *([hard_section.section(records.hard)] if records.hard else []),
        machine.section(records),
        machine.timings(records),
        again.section(records),
    ]


def render(records: Records) -> str:
    benchmark = records.benchmark
    words = "An event is out of order if its time lies before the running maximum. Its delay is the difference."
    return layout.fill(
        benchmark.name,
        benchmark.description,
        [f"run {records.run_id}"],
        overview.outcome(records),
        sections(records),
        words,
    )
