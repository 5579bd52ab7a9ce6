"""The last words of a run: cells, from the example's records."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from streamgauge.app.airflow import dag_run, stage_runs, summary
from streamgauge.app.airflow.stage_runs import BenchmarkRun
from streamgauge.base.console import Console
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.result import Result
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example


def printed(store: Store, place: Path, **sections: object) -> str:
    made = benchmark(place / "source.csv", **CELLS | sections)
    console = Console(width=200, record=True, file=(place / "out").open("w"))
    summary.show(made, store, RunLog(store.run(RUN)), console)
    return console.export_text()


def shown(store: Store, place: Path, title: str, **sections: object) -> list[list[str]]:
    """The rows of that table."""
    table = takewhile(lambda line: "└" not in line, printed(store, place, **sections).partition(title)[2].splitlines())
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in table if line.startswith("│")]


def test_stages_are_those_that_the_benchmark_has(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    record_example(store, benchmark(tmp_path / "source.csv", **CELLS))
    stages = list(dict.fromkeys(row[0] for row in shown(store, tmp_path, "Stages") if row[0]))
    assert stages == ["ingest", "analyze", "generate", "validate", "turns", "report"]


def test_each_cell_has_rate_interval_latency_by_fraction_and_whether_its_output_was_right(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    record_cells(record_example(store, benchmark(tmp_path / "source.csv", **CELLS)))
    file = store.run(RUN) / "cells" / "late20.sum.rocksdb" / "latency.json"
    runs = json.loads(file.read_text())
    runs[0]["valid"], runs[1]["correct"], runs[2]["event_latency"]["p99_ms"] = False, None, None
    file.write_text(json.dumps(runs[:3]))
    rows = {row[0]: row[1:] for row in shown(store, tmp_path, "Cells")}
    assert rows["ordered sum rocksdb"] == [
        "40,000", "38,416 to 41,649", "batch cap", "185 / 554 ms", "343 / 1,029 ms", "480 / 1,440 ms",
        "800 / 2,400 ms", "right",
    ]  # fmt: skip
    assert rows["late20 sum rocksdb"][3:] == ["invalid", "343 / 1,029 ms", "no row", "", "partly compared"]
    assert rows["late20 sum hdfs"][-1] == "wrong"
    assert rows["late99 sum hdfs"] == ["not measured", "", "", "", "", "", "", "not compared"]


def test_a_rate_that_all_cells_share_has_a_column_beside_the_fraction_that_it_equals(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    record_cells(record_example(store, benchmark(tmp_path / "source.csv", **CELLS)))
    file = store.run(RUN) / "cells" / "ordered.sum.rocksdb" / "latency.json"
    half, *_, whole = json.loads(file.read_text())
    file.write_text(json.dumps([half, {**whole, "common": True, "fraction": 0.5, "rate_events_per_s": 20_000.0}]))
    latency = {"fractions": [0.5, 0.8], "rates": [20_000, 0.5]}
    assert "at 50 %" in (text := printed(store, tmp_path, latency=latency))
    assert "at 20,000/s" in text
    rows = {row[0]: row[4:] for row in shown(store, tmp_path, "Cells", latency=latency)}
    assert rows["ordered sum rocksdb"] == ["185 / 554 ms", "", "800 / 2,400 ms", "", "right"]


@pytest.mark.parametrize("only", [None, "latency"])
def test_a_run_whose_answers_were_wrong_ends_with_1_also_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], only: str | None
) -> None:
    store, made = Store(tmp_path / "artifacts"), benchmark(tmp_path / "source.csv", **CELLS)
    record_cells(record_example(store, made))
    monkeypatch.setattr(stage_runs, "run", lambda *_: 0)  # all of its stages are done
    one = BenchmarkRun(tmp_path / "b.yaml", made, store, {}, RUN)
    assert [dag_run.run(one, only=only, alone=only is None) for _ in range(2)] == [1, 1]
    said = capsys.readouterr().out
    assert "late20.sum.hdfs: answers were wrong in latency (100\u202f%)" in said
    assert "done, with wrong answers, in " in said or only
    file = store.run(RUN) / "cells" / "late20.sum.hdfs" / "latency.json"
    file.write_text(file.read_text().replace('"correct": false', '"correct": true'))
    assert dag_run.run(one, only=only, alone=only is None) == 0


def test_a_rate_or_latency_in_doubt_says_so_and_an_interval_what_it_covers(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    record_cells(record_example(store, benchmark(tmp_path / "source.csv", **CELLS)))
    file = store.run(RUN) / "cells" / "late20.sum.rocksdb" / "search.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"outcome": "unproven"}))
    rows = shown(store, tmp_path, "Cells")
    below = {row[0]: after for row, after in pairwise(rows)}
    assert below["ordered sum rocksdb"][2] == "of 2 processes"
    assert below["ordered sum hdfs"][2] == "of one process"
    assert (below["late20 sum rocksdb"][1], below["late20 sum rocksdb"][7]) == ("estimated", "not settled")


def test_the_last_words_begin_with_what_disorder_costs(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    record_cells(record_example(store, benchmark(tmp_path / "source.csv", **CELLS)))
    lines = printed(store, tmp_path).splitlines()
    told = "at the stream's own speed the query loses 2,712 of 90,000 events (3.0 %) in 14 windows, with a micro-batch"
    assert f"late20.sum.rocksdb: {told} every 1 s" in lines
    assert next(line for line in lines if line.startswith(("late", "limited"))) == (
        "late20.sum.rocksdb: against ordered it costs 7.0% (5.1% to 8.8%)"
    )
    limits = [line.split(":")[0] for line in lines if line.startswith("limited by ")]
    assert limits == ["limited by batch cap", "limited by allowed age"], "once for all cells"
    file = store.run(RUN) / "cells" / "late20.sum.rocksdb" / "search.json"
    found = json.loads(file.read_text())
    found["lost_at_own_speed"]["rule"] = "never"
    file.write_text(json.dumps(found))
    of_cell = [line for line in printed(store, tmp_path).splitlines() if line.startswith("late20.sum.rocksdb: ")]
    assert of_cell == ["late20.sum.rocksdb: against ordered it costs 7.0% (5.1% to 8.8%)"]


def test_figures_of_other_measurements_have_a_line_each_and_those_that_were_replaced_have_none(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    made = benchmark(tmp_path / "source.csv", **CELLS, catchup={"minutes": 1})
    record_cells(record_example(store, made))
    names = ("b", "late20", "sum", "hdfs", "streaming")
    for value in (20.0, 10.0):
        figure = Result(*names, "catchup_seconds", "s", value, RUN, "c", low=9.0, high=21.0, machine={}, software={})
        results.append(store.run(RUN), replace(figure, replaces=True))
    for known, metric in ((None, "catchup_hour_seconds"), (3.0, "catchup_peak_state_rows")):
        figure = Result(*names, metric, "s", known, RUN, "c", reason="few", machine={}, software={})
        results.append(store.run(RUN), figure)
    console = Console(width=200, record=True, file=(tmp_path / "out").open("w"))
    summary.show_figures(made, store, RunLog(store.run(RUN)), console)
    told = [line.strip() for line in console.export_text().splitlines()]
    assert [line for line in told if "catchup_" in line] == [
        "late20.sum.hdfs: catchup_seconds 10 s (9 to 21)",
        "late20.sum.hdfs: catchup_hour_seconds —  few",
        "late20.sum.hdfs: catchup_peak_state_rows 3 s; few",
    ]
    assert any("late20 sum rocksdb" in line for line in told)
    assert not any("sha256" in line for line in told)
