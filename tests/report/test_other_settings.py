"""Tests that figures of other settings are not taken for those of a run, or say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.latency import stage
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.measurement import Batch, Limits, Window
from streamgauge.records.trial import WINDOWS, MeasuredWindow
from streamgauge.results.report import again
from streamgauge.results.report.blocks import Table
from streamgauge.results.report.run_records import Records
from tests.command import Call, run
from tests.index import example
from tests.measure.benches import CELL, write_bench


def test_a_search_is_not_shown_whose_settings_are_not_those_of_the_one_that_has_not_ended(tmp_path: Path) -> None:
    bench = write_bench(tmp_path)
    log, directory = RunLog(bench.store.run("r")), bench.store.run("r") / "cells" / CELL.name
    directory.mkdir(parents=True)
    SearchAnswer(outcome="found", sustainable_rate_events_per_s=1000.0, plan="a").write(directory / "search.json")
    windows = [Window(1, "ladder", rows, (Batch(0.1, rows, 0.1),)) for rows in (10, 20)]
    for number, (plan, window) in enumerate(zip("ab", windows, strict=True), 1):
        line = MeasuredWindow(number=number, plan=plan, process=1, limits=Limits(), window=window, asked="")
        line.append(directory / WINDOWS)
    with pytest.raises(OSError, match="it died"), log.stage("search", CELL.model_dump()):
        raise OSError("it died")
    (shown,) = Records(bench.benchmark, bench.store, "r").cells
    assert (shown.search, [line.plan for line in shown.windows]) == (None, ["b"])
    with log.stage("search", CELL.model_dump()):  # with the settings of before, of which nothing was left to measure
        pass
    (shown,) = Records(bench.benchmark, bench.store, "r").cells
    assert shown.search
    assert (shown.search.plan, [line.plan for line in shown.windows]) == ("a", ["a"])


def test_latencies_at_fractions_of_an_earlier_rate_are_not_shown(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, latency={"fractions": [0.5], "rates": [300], "seconds": 0.3})
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    cell_run.directory.mkdir(parents=True)
    answer = SearchAnswer(outcome="found", sustainable_rate_events_per_s=1000.0, plan=cell_run.plan_key)
    answer.write(cell_run.directory / "search.json")
    assert [run.rate_events_per_s for run in stage.run(cell_run)] == [500.0, 300.0]
    again_found = answer.model_copy(update={"sustainable_rate_events_per_s": 2000.0})
    again_found.write(cell_run.directory / "search.json")  # and the second attempt at the stage latency died
    (shown,) = Records(bench.benchmark, bench.store, "r").cells
    for runs in (shown.latency, shown.latency_trials):
        assert [(run.common, run.rate_events_per_s) for run in runs] == [(True, 300.0)]


def test_a_figure_beside_one_of_other_settings_says_so(tmp_path: Path) -> None:
    bench = write_bench(tmp_path)
    for name, config_hash in (("one", "c"), ("two", "d")):
        for metric in ("m", "n"):
            made = replace(example.result(name, 1.0, metric=metric), config_hash=config_hash if metric == "m" else "c")
            results.append(bench.store.run(name), made)
        with RunLog(bench.store.run(name)).stage("search", CELL.model_dump()):
            pass
    lines = run(Call(["runs", "compare", "one", "two", "--artifacts", str(bench.store.root)])).out.splitlines()
    assert [line.endswith("  (other settings)") for line in lines] == [True, False]
    blocks = again.section(Records(bench.benchmark, bench.store, "two")).parts[0].blocks
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert "Of its figures here, 1 had other settings." in table.caption
