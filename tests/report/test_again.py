"""Tests the page's section on the run itself, and the words that a page explains."""

from __future__ import annotations

import html
from pathlib import Path

from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import load
from streamgauge.results.report import again, build, glossary
from streamgauge.results.report.blocks import Chart, Code, Hole, Section, Table, plain
from streamgauge.results.report.run_records import Records
from tests.example_run import CELLS, benchmark
from tests.index.example import result


def recorded(store: Store, name: str, value: float, **more: str) -> None:
    run = store.run(name)
    with RunLog(run).stage("ingest", {}):
        pass
    results.append(run, result(name, value, **more))
    results.append(run, result(name, 7.0, metric="void_ms", valid=False))


def test_the_figures_stand_beside_those_of_the_newest_run_before(tmp_path: Path) -> None:
    made, store = benchmark(tmp_path / "source.csv", **CELLS), Store(tmp_path / "artifacts")
    for name, value in (("oldest", 50.0), ("before", 80.0)):
        recorded(store, name, value)
    recorded(store, "of-others", 1.0, benchmark="other")
    recorded(store, "now", 100.0)
    recorded(store, "later", 3.0)
    [part] = again.section(Records(made, store, "now")).parts
    [table] = part.blocks
    assert isinstance(table, Table)
    assert table.caption.startswith("before was the run before.")
    [row] = table.rows
    assert [plain(cell) for cell in row] == [
        "late20, sums, spark", "p99 event-time latency", "80\u00a0ms", "—", "100\u00a0ms", "—",
    ]  # fmt: skip
    [part] = again.section(Records(made, store, "oldest")).parts
    assert isinstance(part.blocks[0], Hole)


def test_a_figure_in_doubt_says_so_beside_the_other(tmp_path: Path) -> None:
    made, store = benchmark(tmp_path / "source.csv", **CELLS), Store(tmp_path / "artifacts")
    recorded(store, "before", 80.0, claim="estimated")
    recorded(store, "now", 100.0, claim="at least")
    [table] = again.section(Records(made, store, "now")).parts[0].blocks
    assert isinstance(table, Table)
    assert [plain(cell) for cell in table.rows[0]][2::2] == ["estimated 80\u00a0ms", "at least 100\u00a0ms"]


def test_a_run_can_be_repeated_from_its_page(tmp_path: Path) -> None:
    made, store = benchmark(tmp_path / "source.csv", **CELLS), Store(tmp_path / "artifacts")
    page = build(made, store, "now")
    section = again.section(Records(made, store, "now"))
    command, *_, settings = [block for block in section.blocks if isinstance(block, Code)]
    assert command.text == "streamgauge run runs/now/benchmark.json"
    assert load(store.root / command.text.split()[-1]) == made
    (tmp_path / "again.yaml").write_text(settings.text)
    assert load(tmp_path / "again.yaml") == made
    assert html.escape(command.text) in page.read_text()


def test_a_word_has_its_meaning_as_a_hint_where_it_stands_and_once_in_the_list() -> None:
    meaning = glossary.TERMS["watermark"]
    link = f'<a class="term" href="#word-watermark" title="{meaning}">Watermarks</a>'
    assert glossary.linked("late beyond Watermarks & more") == f"late beyond {link} &amp; more"
    assert glossary.linked("90\u202f% interval").startswith('<a class="term" href="#word-90-interval"')
    assert glossary.linked("<b>pages</b>") == "&lt;b&gt;pages&lt;/b&gt;", "age is no part of it"
    chart = Chart("t", {}, Table(["p99", "void because"], []))
    section = glossary.section([Section("a", "A", "What a cell does.", parts=[Section("b", "B", blocks=[chart])])])
    assert section is not None
    [table] = section.blocks
    assert isinstance(table, Table)
    assert [plain(row[0]) for row in table.rows] == ["cell", "p99", "void"]
    assert glossary.section([Section("a", "A")]) is None
