"""The first screen: rate, lateness, answers, limit, and one plain sentence a cell."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.records.comparison import Comparison
from streamgauge.results.report import headline, overview
from streamgauge.results.report.blocks import Hole, Note, Tiles
from streamgauge.results.report.page import render
from streamgauge.results.report.run_records import Records
from tests.example_disorder import made_benchmark, record_degrees
from tests.example_run import RUN
from tests.report.test_report_search import plain, rewrite


def shown(records: Records) -> dict[str, tuple[list[tuple[str, str, str]], str]]:
    """Maps the name of a cell to its tiles and its sentence."""
    blocks = headline.section(records).blocks[len(first(records)) :]
    found = {}
    for tiles, note in zip(blocks[::2], blocks[1::2], strict=False):
        assert isinstance(tiles, Tiles)
        assert isinstance(note, Note)
        rows = [(plain(label), plain(value), plain(remark)) for label, value, remark in tiles.tiles]
        found[rows[0][0]] = (rows, plain(note.text))
    return found


def first(records: Records) -> list[tuple[str, str | None]]:
    """The sentences above the tiles, and where they lead."""
    blocks = headline.section(records).blocks
    above = takewhile(lambda block: isinstance(block, Note), blocks)
    return [(plain(note.text), note.href) for note in above if isinstance(note, Note)]


def test_a_cell_that_is_proved(records: Records) -> None:
    rows, said = shown(records)["ordered, sum, rocksdb"]
    assert rows == [
        ("ordered, sum, rocksdb", "40 000 events/s", "90 %: 38 416 – 41 649"),
        ("p99 latency", "2.4 s", "at 100 % of that rate"),
        ("answers", "right", "equal to an independent answer"),
        (
            "limited by",
            "batch cap",
            "the engine takes no larger batch than its cap of 30 000 rows; raise the system's batch_rows to see more",
        ),
    ]
    assert said == "With events in order, rocksdb takes 40 000 events a second without falling ever further behind."


def test_what_disorder_costs_stands_first(records: Records) -> None:
    assert first(records) == [("late20.sum.rocksdb: against ordered it costs 7.0% (5.1% to 8.8%).", None)]
    assert headline.section(records).lead == ""
    told = shown(records)
    late = next(said for name, (_, said) in told.items() if name.startswith("late") and "rocksdb" in name)
    assert late.endswith("% of the events out of order, rocksdb takes 13 333 events a second without falling ever "
                         "further behind.")  # fmt: skip
    tiles, alone = told["ordered, sum, hdfs"]
    assert tiles[0][1] == "20 000 events/s (one process)"
    assert alone.endswith("how much fresh processes differ: set search.processes to 3 to measure that.")
    apart = next(said for name, (_, said) in told.items() if name.startswith("late20") and "hdfs" in name)
    assert "; how that compares with ordered is not known, as fresh processes differ by 3 to 8 %" in apart


def test_of_many_comparisons_the_highest_degree_of_each_system_stands_first(tmp_path: Path) -> None:
    made, store = made_benchmark(tmp_path / "source.csv"), Store(tmp_path / "artifacts")
    record_degrees(store, made)
    six = first(records := Records(made, store, RUN))
    assert [sentence.split(":")[0] for sentence, _ in six] == [
        f"{degree}.sum.{system}" for system in ("micro", "rows") for degree in ("late20", "late50", "near20")
    ]

    def add_latency(search: dict[str, Any]) -> None:
        search["compared"].append(search["compared"][0] | {"metric": "p99"})

    assert first(rewrite(records, "late20.sum.rows/search.json", add_latency)) == [
        ("late50.sum.micro: against ordered it costs 25.0% (22.7% to 27.2%).", None),
        ("late50.sum.rows: against ordered it costs 50.0% (48.5% to 51.5%).", None),
        ("The table below has 5 more comparisons.", "#summary"),
    ]
    for name in ("late50.sum.micro", "late50.sum.rows", "near20.sum.rows"):
        records = rewrite(records, f"{name}/search.json", lambda s: s["compared"][0].update(ratio=None, reason="noise"))
    named = [sentence.split(":")[0] for sentence, _ in first(records)]
    assert named[:2] == ["late20.sum.micro", "late20.sum.rows"], "one that is known, and of one degree the file's first"


def test_a_comparison_that_fails_costs_neither_the_first_screen_nor_the_summary(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Comparison, "among", lambda *_: 1 / 0)
    hole, tiles, *_ = headline.section(records).blocks
    assert hole == Hole("Comparisons", "the record is incomplete or damaged: ZeroDivisionError division by zero")
    assert isinstance(tiles, Tiles)
    assert overview.summary(records).blocks[-1] == hole


def test_a_rate_that_is_not_proved_or_void_or_missing(records: Records) -> None:
    name = "ordered, sum, hdfs"
    unproven = rewrite(
        records, "ordered.sum.hdfs/search.json", lambda s: s.update(outcome="unproven", reason="too noisy")
    )
    assert "The rate is only estimated: too noisy. Give the trials more time" in shown(unproven)[name][1]
    void = rewrite(records, "ordered.sum.hdfs/search.json", lambda s: s.update(correct=False))
    assert shown(void)[name][1] == "The answers are wrong, so the rate does not count."
    none = rewrite(
        records, "ordered.sum.hdfs/search.json", lambda s: s.update(correct=None, sustainable_rate_events_per_s=None)
    )
    assert shown(none)[name][1].startswith("No rate was found: ")


def test_it_comes_first(records: Records) -> None:
    page = render(records)
    assert page.index("it costs 7.0%") < page.index("<dl") < page.index('id="verdict"') < page.index('id="summary"')
