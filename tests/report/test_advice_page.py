"""The page of an advice."""

from __future__ import annotations

import html
from pathlib import Path

from tests.cli.test_advise import FLIGHTS, READ
from tests.command import Call, run


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


def test_a_page_that_would_overwrite_the_source_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "events.csv"
    source.write_text("ts\n1000\n2000\n")
    answer = run(Call(["advise", str(source), "--time", "ts", "--unit", "ms", "--event", "--page", str(source)]))
    assert answer.code == 2
    assert "is a source file, which would be lost" in answer.err
