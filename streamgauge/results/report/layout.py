"""Lays out a page from its sections by the one template, and writes it, whole or not at all."""

from __future__ import annotations

import base64
import gzip
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from streamgauge.base.places import as_user_error, write_whole
from streamgauge.base.secrets import without_known
from streamgauge.results.report import glossary
from streamgauge.results.report.blocks import Chart, Outcome, Section, Spark, blocks_in, linked, plain

_TEMPLATES = Path(__file__).with_name("templates")


def publish(path: Path, page: str) -> None:
    """Writes the page, whole or not at all. Raises UserError if it cannot be written."""
    try:
        write_whole(path, without_known(page).encode())
    except OSError as problem:
        raise as_user_error(problem, path) from None


def fill(title: str, lead: str, meta: list[str], outcome: Outcome, sections: list[Section], footer: str = "") -> str:
    """Renders the page's template."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["file"] = lambda name: Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
    environment.filters |= {"terms": glossary.linked, "plain": plain}
    environment.tests |= {"sparkline": lambda cell: isinstance(cell, Spark), "linked": linked}
    words = glossary.section(sections)
    return environment.get_template("page.html").render(
        title=title,
        lead=lead,
        meta=[*meta, datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC")],
        verdict=outcome,
        sections=[*sections, *([words] if words else [])],
        footer=footer,
        plotly=_plotly() if any(isinstance(block, Chart) for _, block in blocks_in(sections)) else "",
    )


@cache
def _plotly() -> str:
    """plotly.js as gzip in base64, which the browser unpacks: the page takes 2 MB instead of 5."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
