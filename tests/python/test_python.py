"""The Python interface: its page's code runs, and its objects hold what the records hold."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamgauge
from streamgauge.app.python.run import Latency, Rate, Rows
from streamgauge.base.errors import UserError
from streamgauge.base.places import copy, place
from streamgauge.catalog.artifacts import Store
from streamgauge.config import keep
from streamgauge.records.comparison import RATE
from streamgauge.records.profile import Profile
from tests.command import Call, run
from tests.example_run import CELLS, RUN, benchmark, profile, record_cells, record_example
from tests.stores import object_store

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    made, store = benchmark(tmp_path / "source.csv", **CELLS), Store(tmp_path / "artifacts")
    record_cells(record_example(store, made))
    keep(made, store.run(RUN))
    return store.run(RUN)


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    """200 events, a second apart, of which every tenth comes 5 s late."""
    times = sorted(range(1000, 1200), key=lambda time: time + 5.5 * (time % 10 == 0))
    file = tmp_path / "flights.csv"
    file.write_text("time,key\n" + "".join(f"{time},{time % 7}\n" for time in times))
    return file


@pytest.mark.usefixtures("measured")
def test_the_code_of_the_page_runs(flights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(flights.parent)
    named: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(code, named)
    assert (named["profile"].events, named["profile"].out_of_order) == (200, 20)
    assert named["profile"].delay.max == 5 * 10**9
    assert next((trade.delay, trade.lost) for trade in named["advice"].curve) == (0, 0)
    assert named["stream"].achieved_out_of_order == 40
    assert [Path(file).exists() for file in named["stream"].files] == [True]
    assert list(named["frame"]["claim"]) == [rate.claim for rate in named["run"].rates]
    assert named["table"].num_rows == len(named["run"].latencies)


def test_the_notebook_runs_and_its_stream_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    named: dict[str, Any] = {}
    for cell in json.loads((ROOT / "examples" / "notebook.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), named)
    stream, events = named["stream"], named["profile"].events
    assert (stream.events, stream.achieved_out_of_order) == (events, round(0.2 * events))
    assert (events, named["profile"].out_of_order) == (26_475, 14_878), "the figures of the README"


def test_a_stream_is_that_of_the_command(flights: Path) -> None:
    reading = streamgauge.Reading(time="time", unit="s")
    stream = streamgauge.generate(
        flights, reading, target_percent=20, seed=42, out=flights.parent / "a", delay={"max": "2s"}
    )
    told = run(Call(["generate", str(flights), "--time", "time", "--unit", "s", "--target", "20", "--seed", "42",
                     "--max", "2s", "--out", str(flights.parent / "b"), "--json"])).json  # fmt: skip
    assert (stream.sha256, stream.events) == (told["sha256"], told["events"])


def test_rates_latencies_and_comparisons_are_those_of_the_records(measured: Path) -> None:
    found = streamgauge.Run(measured)
    rate = next(one for one in found.rates if (one.experiment, one.system) == ("ordered", "rocksdb"))
    assert rate.rate_events_per_s == pytest.approx(40_000)
    assert (rate.claim, rate.constraint, rate.interval_of) == ("proven", "batch cap", "2 processes")
    assert rate.low is not None
    assert rate.low < 40_000
    of_late = [one for one in found.latencies if (one.experiment, one.system) == ("late20", "rocksdb")]
    assert [(one.fraction, one.is_sound) for one in of_late] == [(0.5, True), (0.8, True), (0.9, True), (1.0, False)]
    [cost] = found.comparisons.pandas().to_dict("records")
    assert cost.pop("low") == pytest.approx(0.93 * math.exp(-0.02))
    assert cost.pop("high") == pytest.approx(0.93 * math.exp(0.02))
    assert cost == {
        "experiment": "late20", "against": "ordered", "workload": "sum", "system": "rocksdb", "metric": RATE,
        "ratio": 0.93, "blocks": 6, "processes": 1, "reason": "",
        "sentence": "against ordered it costs 7.0% (5.1% to 8.8%)",
    }  # fmt: skip
    frame = found.latencies.pandas()
    assert frame["p99_ms"].max() == pytest.approx(3 * 120 / 0.15)
    assert found.profile is not None
    assert found.profile.out_of_order == profile()["out_of_order"]


def test_a_stream_of_parquet_has_its_columns_as_that_of_the_command_has(tmp_path: Path) -> None:
    times = [1000 + n - 5 * (n % 10 == 9) for n in range(100)]
    pq.write_table(pa.table({"t": times, "k": [f"k{n % 3}" for n in range(100)]}), tmp_path / "e.parquet")
    reading = streamgauge.Reading(time="t", unit="us")
    stream = streamgauge.generate(
        [tmp_path / "e.parquet"], reading, target_percent=20, seed=1, out=tmp_path / "out", delay={"max": "9us"}
    )
    assert {"t", "k"} <= set(pq.read_schema(stream.files[0]).names)
    with pytest.raises(UserError, match="found none, allowed: one or more event files"):
        streamgauge.analyze([], reading)


def test_a_frame_without_rows_has_its_columns() -> None:
    frame = Rows.of(Latency, []).pandas()
    assert list(frame.columns) == [one.name for one in fields(Latency)]


def test_a_frame_is_of_pandas_or_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = Rate("late", "sum", "spark", 100.0, 90.0, None, "one process", "proven", None)
    rows = Rows.of(Rate, [rate])
    assert rows.polars().to_dicts() == rows.pandas().replace({float("nan"): None}).to_dict("records") == [vars(rate)]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UserError, match="polars is not installed here; install it, or take the table of Arrow"):
        rows.polars()


def test_a_run_on_a_store_is_read_as_one_here(measured: Path) -> None:
    with object_store() as (root, _):
        copy(measured.parents[1], place(root))
        assert streamgauge.Run(f"{root}/runs/{RUN}").latencies == streamgauge.Run(measured).latencies
        with pytest.raises(UserError, match=rf"{root}/runs/none: this run has no readable benchmark"):
            streamgauge.Run(f"{root}/runs/none")
        with pytest.raises(UserError, match=r"s3://none: no such bucket"):
            streamgauge.Run("s3://none/runs/one")


def test_doubts_about_the_source_come_with_what_is_made_of_it(tmp_path: Path) -> None:
    file = tmp_path / "no-year.csv"
    file.write_text("time\n" + "".join(f"03-01 10:00:{second:02}\n" for second in range(60)))
    reading = streamgauge.Reading(time="time", format="%m-%d %H:%M:%S")
    profile = streamgauge.analyze(file, reading)
    stream = streamgauge.generate(file, reading, target_percent=10, seed=1, out=tmp_path / "out", delay={"max": "9s"})
    [doubt] = profile.doubts
    assert doubt == "warning: --format has no year: the first time is taken for one of 1970; give --year"
    assert doubt in stream.doubts
    profile.write(tmp_path / "profile.json")
    assert Profile.read(tmp_path / "profile.json").events == 60, "the record has no doubts"


def test_what_is_no_run_or_damaged_is_told_in_one_line(measured: Path) -> None:
    with pytest.raises(UserError, match=r"found no run, allowed: a folder in artifacts/runs"):
        streamgauge.Run(measured.parent)
    file = measured / "cells" / "ordered.sum.hdfs" / "search.json"
    file.write_text("torn")
    with pytest.raises(UserError, match=rf"{re.escape(str(file))}: damaged, no JSON"):
        _ = streamgauge.Run(measured).rates


def test_the_names_are_loaded_when_they_are_used() -> None:
    code = "import streamgauge, sys; print('streamgauge.app.cli' in sys.modules, streamgauge.Run.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False Run\n"
    with pytest.raises(AttributeError, match="nothing"):
        _ = streamgauge.nothing
