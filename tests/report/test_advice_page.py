"""The page of an advice."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from tests.cli.test_advise import FLIGHTS, READ
from tests.command import Call, run
from tests.report.page_reader import Page


def test_the_page_has_the_text_s_sentence_and_each_row(tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    answer = run(Call(["advise", FLIGHTS, *READ, "--window", "1h", "--lost", "1%", "--page", str(page)]))
    assert answer.code == 0, answer.err
    shown = html.unescape(page.read_text().split('id="plotly"')[0])
    (advice,) = [text for text in answer.out.splitlines() if text.startswith("advice ")]
    assert advice.removeprefix("advice").strip() in shown
    assert "None" not in shown
    rows = [text.split("  ") for text in answer.out.splitlines() if text.startswith("  ")]
    assert len(rows) > 10
    for cells in rows:
        assert all(cell.strip() in shown for cell in cells), cells
    assert all(f'<section id="{name}"' in shown for name in ("lines", "trade", "rules", "engines", "curve"))


def drawn(page: Path, *options: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Traces by their names, of each figure by its title, of the page that these options make."""
    answer = run(Call(["advise", *options, "--page", str(page)]))
    assert answer.code == 0, answer.err
    titles = re.findall(r"<figcaption><strong>(.*?)</strong>", page.read_text())
    figures = Page(page).figures
    return {title: {one["name"]: one for one in figure["data"]} for title, figure in zip(titles, figures, strict=True)}


def test_the_charts_show_what_was_asked_the_naive_choice_the_waits_and_each_test(tmp_path: Path) -> None:
    options = [FLIGHTS, *READ, "--window", "1h", "--lost", "1%", "--delay", "2h", "--delay", "5h"]
    charts = drawn(tmp_path / "advice.html", *options)
    made = json.loads(run(Call(["advise", *options, "--json"])).out)
    trade, waits, tests = charts.values()
    naive, *_ = made["rules"]
    assert trade["asked"]["x"] == [7200, 7200, None, 18000, 18000, None]
    assert trade["naive"]["x"][0] == naive["delay_ns"] / 1e9
    assert trade["advised"]["x"][0] == made["advised"]["delay_ns"] / 1e9
    rows = [one for one in made["curve"] if one["delay_ns"]]
    assert waits["half of the answers"]["y"] == [one["wait_ns"]["p50"] / 1e9 for one in rows]
    assert waits["99 of 100 answers"]["y"] == [one["wait_ns"]["p99"] / 1e9 for one in rows]
    of_rule = tests[made["advised"]["rule"]]
    assert (len(of_rule["x"]), max(of_rule["y"])) == (42, 100 * made["advised"]["realised_max"])
    assert len(tests["broken"]["x"]) == 3
    assert sum(loss > 1 for loss in tests["naive"]["y"]) == naive["tests"] - naive["held"]
    assert tests["promise"]["y"] == [1, 1]


def test_one_delay_above_0_is_drawn_from_0_on(tmp_path: Path) -> None:
    source = tmp_path / "events.csv"
    source.write_text("ts\n1000\n9000\n2000\n")
    (trade,) = drawn(tmp_path / "a.html", str(source), "--time", "ts", "--unit", "ms", "--event").values()
    assert (trade["events lost"]["x"], trade["events lost"]["y"]) == ([0, 7], [100 / 3, 0])


def test_a_page_that_would_overwrite_the_source_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "events.csv"
    source.write_text("ts\n1000\n2000\n")
    answer = run(Call(["advise", str(source), "--time", "ts", "--unit", "ms", "--event", "--page", str(source)]))
    assert answer.code == 2
    assert "is a source file, which would be lost" in answer.err
