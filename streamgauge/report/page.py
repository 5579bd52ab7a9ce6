"""Assembles the sections of a page and writes it, whole or not at all."""

from __future__ import annotations

import base64
import gzip
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from streamgauge.base.places import as_user_error, write_whole
from streamgauge.report import (
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
from streamgauge.report.blocks import Section
from streamgauge.report.run_records import Records

_TEMPLATES = Path(__file__).with_name("templates")


def publish(path: Path, page: str) -> None:
    """Writes the page, whole or not at all. Raises UserError if it cannot be written."""
    try:
        write_whole(path, page.encode())
    except OSError as problem:
        raise as_user_error(problem, path) from None


def render(records: Records) -> str:
    sections = [
        *([headline.section(records)] if records.cells else []),
        overview.summary(records),
        *([sweep.section(records)] if len(records.streams) > 1 and records.cells else []),
        source_section.section(records),
        experiments.section(records),
        *([cells_section.section(records)] if records.cells else []),
        *(
            [nexmark_section.section(records.nexmark, nexmark_section.expected(records))]
            if records.nexmark or records.suites
            else []
        ),
        *([hard_section.section(records.hard)] if records.hard else []),
        machine.environment(records),
        machine.timings(records),
    ]
    benchmark = records.benchmark
    words = "An event is out of order if its time lies before the running maximum. Its delay is the difference."
    return fill(
        benchmark.name, benchmark.description, [f"run {records.run_id}"], overview.outcome(records), sections, words
    )


def fill(
    title: str, lead: str, meta: list[str], outcome: overview.Outcome, sections: list[Section], footer: str = ""
) -> str:
    """Renders the page's template."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["file"] = lambda name: Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
    return environment.get_template("page.html").render(
        title=title,
        lead=lead,
        meta=[*meta, datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC")],
        verdict=outcome,
        sections=sections,
        footer=footer,
        plotly=_plotly(),
    )


@cache
def _plotly() -> str:
    """plotly.js as gzip in base64, which the browser unpacks: the page takes 2 MB instead of 5."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
