"""Thirty simulated nights in headless Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.index import Index
from streamgauge.report import dashboard
from tests.e2e.test_page import browser, show
from tests.index.nights import thirty_nights

__all__ = ["browser"]
pytestmark = pytest.mark.e2e


def test_loads_draws_and_marks_the_one_change(browser: Any, tmp_path: Path) -> None:
    thirty_nights(tmp_path)
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    index.rebuild((tmp_path / "runs").iterdir())
    page = tmp_path / "page.html"
    dashboard.build(index, page)
    show(browser, page, 1280)
    marked = "return [...document.querySelectorAll('.chart .textpoint')].map(t => t.textContent)"
    assert [text.strip()[:3] for text in browser.execute_script(marked)] == ["+11"]
