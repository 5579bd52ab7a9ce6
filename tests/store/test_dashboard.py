"""The page over time shows the known change and no other, whether read as text or in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge import results
from streamgauge.report import dashboard
from streamgauge.results import Judgement
from streamgauge.store import Index
from tests.cli import Call, run
from tests.store import example
from tests.store.nights import thirty_nights


@pytest.fixture
def index(tmp_path: Path) -> Index:
    thirty_nights(tmp_path)
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    index.rebuild((tmp_path / "runs").iterdir())
    return index


CHANGED = "flights late20 q0 spark-4.3 micro-batch event_latency_ms_p99_at_80pct: +"


def test_the_known_change_and_no_other(index: Index, tmp_path: Path) -> None:
    (said,) = dashboard.build(index, tmp_path / "page.html")
    assert said.startswith(CHANGED)
    assert "since 2026-04-21" in said
    assert "suspect: not rerun" in said
    page = (tmp_path / "page.html").read_text()
    assert "1 change in 24 series" in page
    assert "the driver slipped" in page


def test_what_a_rerun_said_and_an_output_that_changed(index: Index, tmp_path: Path) -> None:
    (key,) = [s["key"] for s in index.series(workload="q0", system="spark-4.3", metric="event_latency_ms_p99_at_80pct")]
    last = example.run(tmp_path, "night-30", example.result(
        "night-30", 12_344.0, workload="q2", system="spark-4.3", mode="micro-batch", metric="output_rows", unit="rows",
        at="2026-05-01T02:00:00+00:00",
    ))  # fmt: skip
    results.judge(last, Judgement("night-30", key, "2026-04-21T02:00:00+00:00", "regression", 0.12, {}))
    index.add_run(last)
    changed, wrong = dashboard.build(index, tmp_path / "page.html")
    assert changed.endswith("; regression")
    assert (
        wrong
        == "flights late20 q2 spark-4.3 micro-batch output_rows: output changed from 12\u202f345 to 12\u202f344 on 2026-05-01"
    )


def test_an_empty_index_is_a_page_too(tmp_path: Path) -> None:
    answer = run(Call(["dashboard", "--out", str(tmp_path / "p.html"), "--artifacts", str(tmp_path)]))
    assert answer.out == f"page: {tmp_path / 'p.html'}\n"
    assert "The index holds no results yet." in (tmp_path / "p.html").read_text()
    run(Call(["dashboard", "--out", str(tmp_path / "no" / "p.html"), "--artifacts", str(tmp_path)])).refused(
        "cannot be written"
    )
