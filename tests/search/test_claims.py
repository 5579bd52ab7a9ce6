"""Claims about a rate, by everything that decides them; no page or summary says more."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from streamgauge.app.airflow import summary
from streamgauge.base.console import Console
from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.bench.search.claims import claim_of
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.results.report import headline, overview
from streamgauge.results.report.blocks import Tiles
from streamgauge.results.report.run_records import Records
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example

INTERVALS = {"narrow": (38_000.0, 42_000.0), "wide": (15_000.0, 90_000.0)}
BOUNDS = ((38_500.0, 41_500.0), (38_500.0, None), (None, 41_500.0), (None, None))
LOADS = {"none": None, "sustained": (20_000.0, "sustainable"), "near": (39_000.0, "unsustainable"),
         "far": (10_000.0, "unsustainable")}  # fmt: skip


def test_every_combination_of_proof_width_contradiction_latency_and_output() -> None:
    for bounds, width, outcome, load, correct in product(
        BOUNDS, INTERVALS, ("found", "contradicted"), LOADS, (True, None, False)
    ):
        told = {"sustainable_rate_events_per_s": 40_000.0, "interval": INTERVALS[width], "proven": bounds,
                "outcome": outcome, "reason": "why", "correct": correct}  # fmt: skip
        search = SearchAnswer.of(told, "search.json")
        run = LOADS[load]
        runs = []
        if run is not None:
            run_of = {"fraction": 0.5, "rate_events_per_s": run[0], "valid": True, "outcome": run[1]}
            runs = [LatencyRun.of(run_of, "latency.json")]
        claim = claim_of(search, runs)
        if correct is False:
            wanted = "wrong"
        elif outcome == "contradicted" or load == "far":
            wanted = "contradicted"
        elif None in bounds or width == "wide" or load == "near":
            wanted = "estimated"
        else:
            wanted = "proven"
        assert claim.kind == wanted, (search, runs)
        has_figure = wanted in ("proven", "estimated")
        assert (claim.rate_events_per_s, claim.interval) == (
            (40_000.0, INTERVALS[width]) if has_figure else (None, None)
        )
        assert claim.is_too_wide is (has_figure and width == "wide")


@pytest.mark.parametrize(
    ("search", "kind"),
    [
        (None, "none"),
        ({"sustainable_rate_events_per_s": 0.0, "outcome": "inconclusive"}, "none"),
        ({"sustainable_rate_events_per_s": 9.0, "outcome": "inconclusive"}, "none"),
        ({"sustainable_rate_events_per_s": 9.0, "outcome": "all_sustained", "proven": (8.0, None)}, "at least"),
        ({"sustainable_rate_events_per_s": 9.0, "outcome": "all_sustained"}, "estimated"),
        ({"sustainable_rate_events_per_s": 9.0, "outcome": "unproven", "proven": (8.0, None)}, "estimated"),
    ],
)
def test_a_rate_that_is_missing_or_a_bound(search: dict[str, object] | None, kind: str) -> None:
    assert claim_of(None if search is None else SearchAnswer.of(search, "search.json")).kind == kind


@pytest.mark.parametrize(
    ("change", "kind", "has_figure"),
    [
        ({}, "proven", True),
        ({"outcome": "unproven", "proven": [None, None]}, "estimated", True),
        ({"interval": [10_000.0, 90_000.0]}, "estimated", True),
        ({"outcome": "contradicted"}, "contradicted", False),
        ({"correct": False}, "wrong", False),
        ({"outcome": "inconclusive"}, "none", False),
    ],
)
def test_first_screen_and_summaries_say_no_more_than_the_claim(
    tmp_path: Path, change: dict[str, object], kind: str, has_figure: bool
) -> None:
    made = benchmark(tmp_path / "source.csv", **{**CELLS, "systems": [{"name": "rocksdb"}]})
    store = Store(tmp_path / "artifacts")
    record_cells(record_example(store, made))
    cell = made.all_cells()[0].name
    file = store.run(RUN) / "cells" / cell / "search.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    records = Records(made, store, RUN)
    record = next(one for one in records.cells if one.cell.name == cell)
    assert record.claim.kind == kind
    blocks = headline.section(records).blocks
    at = next(n for n, block in enumerate(blocks) if isinstance(block, Tiles))  # behind the comparisons
    tiles, sentence = blocks[at : at + 2]
    assert ("against ordered it costs" in f"{blocks[:at]}") is has_figure
    console = Console(width=200, record=True, file=(tmp_path / "out").open("w"))
    summary.show(made, store, RunLog(store.run(RUN)), console)
    line = next(row for row in console.export_text().splitlines() if row.startswith(f"│ {cell.replace('.', ' ')}"))
    row = overview._cells([record]).rows[0]
    for shown in (f"{tiles}{sentence}", str(row), line):
        plain = shown.replace("\u202f", "").replace("\\u202f", "").replace(",", "")
        assert ("40000" in plain) is has_figure, shown
        assert "confirmed" not in shown
    assert ("estimated" in f"{tiles}") is ("estimated" in f"{row}") is (kind == "estimated")
