"""The page in headless Chromium: draws its charts, asks nobody for anything, fits a phone."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import axe_core_python
import pytest
from selenium.webdriver.support.wait import WebDriverWait

from streamgauge.app.nights.series import looks
from streamgauge.catalog.artifacts import Store
from streamgauge.config import of_run
from streamgauge.results.index import Index
from streamgauge.results.report import build, bundle, dashboard, release_page, runs_page
from streamgauge.results.report.blocks import Block, Chart, Outcome, Section, Table
from streamgauge.results.report.charts import axis, figure, line
from streamgauge.results.report.layout import fill
from tests.cli.test_advise import FLIGHTS, READ
from tests.command import Call, run
from tests.e2e.browser import chromium
from tests.example_disorder import made_benchmark, record_degrees
from tests.example_operations import OPERATIONS, record_operations
from tests.example_release import record_release
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example
from tests.index.nights import thirty_nights

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    made = benchmark(place / "source.csv", **CELLS, **OPERATIONS)
    store = Store(place / "artifacts")
    recorder = record_example(store, made)
    record_cells(recorder)
    record_operations(recorder, "rocksdb")
    return build(made, store, RUN)


def show(browser: Any, page: Path, width: int, height: int = 900) -> None:
    """Opens the page in a viewport of that width and waits until every chart is drawn."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())
    WebDriverWait(browser, 60).until(lambda b: b.execute_script("return document.body.dataset.charts") == "drawn")


def test_a_phone_answers_on_its_first_screen_and_opens_what_is_not_good_and_what_a_link_names(
    browser: Any, page: Path
) -> None:
    show(browser, page, 390, 844)
    the_first_screen_answers(browser, 844)
    state = (
        "return [...document.querySelectorAll('.fold')].map(f => [f.closest('section').id, f.open])"
        ".filter(([id, open]) => open).map(([id]) => id)"
    )
    assert browser.execute_script(state) == ["verdict"], "an experiment failed"
    cell = browser.execute_script("return document.querySelector('.part > .fold').parentElement.id")
    browser.execute_script("location.hash = arguments[0]", cell)
    WebDriverWait(browser, 5).until(lambda b: b.execute_script(state) == ["verdict", cell])
    charts = f"[...document.querySelectorAll('#{cell} .fold .chart .main-svg')]"
    WebDriverWait(browser, 5).until(
        lambda b: b.execute_script(f"return {charts}.every(c => c.getBoundingClientRect().right <= innerWidth)")
    )


def test_draws_every_chart_with_its_table_without_a_word_on_the_console_and_asks_nobody(
    browser: Any, page: Path
) -> None:
    show(browser, page, 1400, 1000)
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('.chart')]"
        ".map(c => c.querySelectorAll('.scatterlayer path, .barlayer path').length)"
    )
    assert len(drawn) == CHARTS["run"]
    assert all(drawn)
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert {url.split("#")[0] for url in asked if not url.startswith(("data:", "blob:"))} == {page.as_uri()}
    assert browser.execute_script("return performance.getEntriesByType('resource').map(r => r.name)") == []
    rows = "return [...document.querySelectorAll('figure')].map(f => f.querySelectorAll('details tbody tr').length)"
    assert all(browser.execute_script(rows))
    assert browser.execute_script("return [...document.querySelectorAll('figure')].every("
                                  "f => f.querySelectorAll('.save').length === 2)")  # fmt: skip
    the_first_screen_answers(browser, 1000)
    browser.get(browser.execute_script("return document.querySelector('a[href*=validation]').href"))
    assert browser.title == "Data Docs"


def the_first_screen_answers(browser: Any, height: int) -> None:
    words = browser.execute_script(
        "return [...document.querySelectorAll('#answer dd, #answer dt')]"
        ".filter(e => e.getBoundingClientRect().bottom < arguments[0])"
        ".map(e => e.textContent).join(' ')",
        height,
    )
    for part in ("events/s", "90\u202f%", "p99 latency", "right", "limited by"):
        assert part in words


def fits_with_all_tables_open(browser: Any, width: int) -> None:
    opened = "document.querySelectorAll('details').forEach(d => d.open = arguments[0])"
    browser.execute_script(opened, True)
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
    browser.execute_script(opened, False)


#: axe, which finds what keeps people from a page: contrast, names, keyboard, order of headings
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()


def faults(browser: Any, *rules: str) -> list[str]:
    """Lists what axe finds serious or critical on the page, of which it leaves out what takes long and is alike.

    The marks of charts go, and all rows of a table but three. rules: those of axe to look for; all without any.
    """
    browser.execute_script(
        "document.querySelectorAll('.main-svg').forEach(marks => marks.remove());"
        "document.querySelectorAll('tbody').forEach(body => [...body.rows].slice(3).forEach(row => row.remove()))"
    )
    browser.execute_script(AXE)
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    script = "axe.run(arguments[0]).then(arguments[1])"
    found = browser.execute_async_script(script, options)
    return [
        f"{one['id']} {node['target']}: {node['failureSummary']}"
        for one in found["violations"] if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]  # fmt: skip


def dress(browser: Any, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, page: Path) -> dict[str, Path]:
    """Writes a page of each kind; maps the kind to its path."""
    place = tmp_path_factory.mktemp("pages")
    made, store = made_benchmark(place / "source.csv"), Store(place / "artifacts")
    record_degrees(store, made)
    thirty_nights(place)
    index = Index(f"sqlite:///{place / 'results.db'}")
    index.rebuild((place / "runs").iterdir())
    dashboard.build(index, place / "dashboard.html", looks(index))
    runs = page.parents[2] / "runs.html"
    runs.write_text(runs_page.render(Store(page.parents[2])))
    advice = place / "advice.html"
    asked = ["--window", "1h", "--lost", "1%", "--delay", "2h", "--by", "origin"]
    assert run(Call(["advise", FLIGHTS, *READ, *asked, "--page", str(advice)])).code == 0
    return {
        "run": page,
        "advice": advice,
        "disorder": build(made, store, RUN).with_name("disorder.html"),
        "nights": place / "dashboard.html",
        "release": release_page.build(record_release(place / "release")),
        "runs": runs,
    }


def test_the_nights_mark_the_one_change(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["nights"], 1280)
    marked = "return [...document.querySelectorAll('.chart .textpoint')].map(t => t.textContent)"
    assert [text.strip()[:3] for text in browser.execute_script(marked)] == ["+11"]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_legend_of_many_lines_takes_nothing_of_the_plot_nor_of_its_titles(
    browser: Any, tmp_path: Path, width: int
) -> None:
    lines = [line(f"restart, checkpoints every {nth}s", [0, 1], [nth, 0], nth) for nth in range(24)]
    charts: list[Block] = [
        Chart(f"{many} lines", figure(lines[:many], axis("seconds since"), axis("age (s)")), Table(["none"], []))
        for many in (2, 9, 16, 24)
    ]
    page = tmp_path / "page.html"
    page.write_text(fill("lines", "", [], Outcome("good", "", []), [Section("lines", "Lines", blocks=charts)]))
    show(browser, page, width)
    places = browser.execute_script(
        "return [...document.querySelectorAll('.chart')].map(chart => {"
        "const of = (name) => chart.querySelector(name).getBoundingClientRect(), all = of('.main-svg');"
        "return [of('.nsewdrag').height, of('.legend').bottom <= of('.nsewdrag').top + 1,"
        "of('.xtitle').bottom <= all.bottom, of('.ytitle').top >= all.top];})"
    )
    heights = [height for height, *_ in places]
    assert max(heights) - min(heights) <= 1
    assert [rest for _, *rest in places] == [[True, True, True]] * 4


def test_a_release_page_of_long_names_is_not_cut_off(browser: Any, tmp_path: Path) -> None:
    name = ".".join(f"{part}_of_a_rather_long_name_for_a_benchmark" for part in ("experiment", "workload", "system"))
    show(browser, release_page.build(record_release(tmp_path / "release", name)), 1400)
    cut = "return [...document.querySelectorAll('.scroll')].map(s => s.scrollWidth - s.clientWidth)"
    assert set(browser.execute_script(cut)) == {0}


CHARTS = {"run": 47, "advice": 3, "disorder": 12, "nights": 12, "release": 2, "runs": 0}


@pytest.mark.parametrize("kind", CHARTS)
def test_a_page_of_each_kind_is_sound_on_a_screen_and_the_smallest_phone_by_day_and_by_night(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 30)"}
    tick = {"light": "rgb(58, 69, 83)", "dark": "rgb(197, 205, 216)"}
    for width, loaded, then in ((1400, "light", "dark"), (320, "dark", "light")):
        dress(browser, loaded)
        show(browser, pages[kind], width)
        drawn = browser.execute_script(
            "return [...document.querySelectorAll('.chart')]"
            ".map(c => c.querySelectorAll('.scatterlayer path, .barlayer path').length)"
        )
        assert (len(drawn), all(drawn)) == (CHARTS[kind], True)
        for scheme in (loaded, then):
            dress(browser, scheme)
            assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == ground[scheme]
            ticks = "return [...document.querySelectorAll('.chart .xtick text')].map(t => getComputedStyle(t).fill)"
            WebDriverWait(browser, 30).until(lambda b, t=ticks, s=scheme: set(b.execute_script(t)) <= {tick[s]})
            assert browser.get_log("browser") == []
        fits_with_all_tables_open(browser, width)
        dress(browser, loaded)
        # by night only colours differ
        assert faults(browser, *(["color-contrast"] if loaded == "dark" else [])) == []
    dress(browser, "")


def test_axe_finds_what_is_hard_to_read(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["runs"], 1400)
    faint = '<p style="color: #888; background: #999">faint</p>'
    browser.execute_script("document.querySelector('main').insertAdjacentHTML('beforeend', arguments[0])", faint)
    assert [fault.split()[0] for fault in faults(browser)] == ["color-contrast"]


def test_a_chart_can_be_saved(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    show(browser, pages["release"], 1280)
    first = "document.querySelector('figure')"
    browser.execute_script(f"{first}.querySelectorAll('.save').forEach(b => b.click())")
    deadline = time.monotonic() + 20
    while len(names := sorted(p.suffix for p in tmp_path.iterdir())) < 2 or names != [".csv", ".svg"]:
        assert time.monotonic() < deadline, names
        time.sleep(0.1)
    [table] = tmp_path.glob("*.csv")
    head, *rows = csv.reader(table.read_text().splitlines())
    shown = browser.execute_script(f"return [...{first}.querySelectorAll('tbody tr')].length")
    assert (len(rows), {len(row) for row in rows}) == (shown, {len(head)})


@pytest.mark.usefixtures("browser")
def test_the_figures_of_an_export_are_drawn(page: Path, tmp_path: Path) -> None:
    drawn = bundle.export(of_run(page.parent), Store(page.parents[2]), RUN, tmp_path / "paper")
    svgs = [file for file in drawn if file.suffix == ".svg"]
    assert len(svgs) == CHARTS["run"]
    for file in svgs:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")
        assert file.with_suffix(".csv") in drawn
