"""The page in headless Chromium: draws its charts, asks nobody for anything, fits a phone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.report import build
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example

pytestmark = pytest.mark.e2e
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--allow-file-access-from-files",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        reason = f"needs a browser and its driver: chromium {chromium}, chromedriver {driver}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    made = benchmark(place / "source.csv", **CELLS)
    store = Store(place / "artifacts")
    record_cells(record_example(store, made))
    return build(made, store, RUN)


def show(browser: Any, page: Path, width: int, height: int = 900) -> None:
    """Opens the page in a viewport of that width and waits until every chart is drawn."""
    from selenium.webdriver.support.wait import WebDriverWait

    for kind in ("browser", "performance"):
        browser.get_log(kind)
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())
    WebDriverWait(browser, 60).until(lambda b: b.execute_script("return document.body.dataset.charts") == "drawn")


def test_draws_every_chart_without_a_word_on_the_console(browser: Any, page: Path) -> None:
    show(browser, page, 1280)
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('.chart')]"
        ".map(c => c.querySelectorAll('.scatterlayer path, .barlayer path').length)"
    )
    assert len(drawn) == 39
    assert all(drawn)
    assert browser.get_log("browser") == []


def test_asks_nobody_for_anything(browser: Any, page: Path) -> None:
    show(browser, page, 1280)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert {url.split("#")[0] for url in asked if not url.startswith(("data:", "blob:"))} == {page.as_uri()}
    assert browser.execute_script("return performance.getEntriesByType('resource').map(r => r.name)") == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_fits_the_width_with_all_tables_open(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    wider = (
        "return [...document.querySelectorAll('.chart')]"
        ".filter(c => c.getBoundingClientRect().right > innerWidth).length"
    )
    assert browser.execute_script(wider) == 0
    cards = "[...document.querySelectorAll('.scroll')].filter(s => s.querySelector('.cards'))"
    assert (
        browser.execute_script(f"return {cards}.filter(s => s.scrollWidth > s.clientWidth).length") == 0 or width > 640
    )


def test_each_chart_has_its_table_and_the_data_docs_open(browser: Any, page: Path) -> None:
    show(browser, page, 1280)
    rows = "return [...document.querySelectorAll('figure')].map(f => f.querySelectorAll('details tbody tr').length)"
    assert all(browser.execute_script(rows))
    browser.get(browser.execute_script("return document.querySelector('a[href*=validation]').href"))
    assert browser.title == "Data Docs"
