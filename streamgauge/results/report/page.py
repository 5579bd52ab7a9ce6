"""Assembles the sections of a run's page."""

from __future__ import annotations

from streamgauge.results.report import (
    advice_section,
    again,
    cells_section,
    experiments,
    hard_section,
    headline,
    machine,
    nexmark_section,
    overview,
    source_section,
    sweep,
)
from streamgauge.results.report.blocks import Section
from streamgauge.results.report.layout import fill
from streamgauge.results.report.run_records import Records


def sections(records: Records) -> list[Section]:
    """Builds the sections of the page, in their order."""
    return [
        *([headline.section(records)] if records.cells else []),
        overview.summary(records),
        *([sweep.section(records)] if sweep.is_known(records) else []),
        source_section.section(records),
        *([advice_section.section(records)] if records.benchmark.advice is not None else []),
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
    return fill(
        benchmark.name,
        benchmark.description,
        [f"run {records.run_id}"],
        overview.outcome(records),
        sections(records),
        words,
    )
