"""The page of what disorder costs: ratios of windows in turns, both axes, what is lost, what is unknown."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.jsonl import write_json
from streamgauge.catalog.artifacts import Store
from streamgauge.results.report import build, degrees, disorder, semantics, sweep
from streamgauge.results.report.blocks import Chart, Hole, Table, Text
from streamgauge.results.report.costs import Costs
from streamgauge.results.report.run_records import Records
from tests.example_disorder import made_benchmark, record_degrees
from tests.example_run import RUN


@pytest.fixture
def records(tmp_path: Path) -> Records:
    made, store = made_benchmark(tmp_path / "source.csv"), Store(tmp_path / "artifacts")
    record_degrees(store, made)
    return Records(made, store, RUN)


def plain(value: Any) -> str:
    text = value.text if isinstance(value, Text) else str(value)
    return text.replace("\u2060", "").replace("\u202f", " ").replace("\u00a0", " ")


def charts(section: Any) -> dict[str, Chart]:
    return {plain(block.title): block for block in section.blocks if isinstance(block, Chart)}


def test_a_ratio_is_of_windows_in_turns_and_never_of_two_rates(records: Records) -> None:
    found = charts(disorder._rates(Costs(records)))["Rate over the rate in order"]
    assert [trace["name"] for trace in found.figure["data"]] == ["sum, micro", "sum, rows"]
    micro, rows = found.figure["data"]
    assert micro["x"] == rows["x"] == pytest.approx([0, 20, 50], abs=0.01)
    assert micro["y"] == [1, 0.9, 0.75]
    assert micro["error_y"]["array"] == pytest.approx([0, 0.9 * (math.exp(0.03) - 1), 0.75 * (math.exp(0.03) - 1)])
    assert micro["error_y"]["arrayminus"][1] == pytest.approx(0.9 * (1 - math.exp(-0.03)))
    assert rows["y"] == [1, 0.8, 0.5]
    table = [[plain(cell) for cell in row] for row in found.table.rows]
    assert [(row[0], *row[-3:]) for row in table[:2]] == [
        ("ordered", "—", "—", "—"),
        ("late20", "0.8734 – 0.9274", "6", "1"),
    ]


def test_a_base_that_is_not_in_order_is_named_by_its_disorder(records: Records) -> None:
    [ordered] = [one for one in records.streams if one.experiment.name == "ordered"]
    assert ordered.manifest is not None
    some = ordered.manifest.model_copy(update={"achieved_out_of_order": 265})
    records.streams[records.streams.index(ordered)] = replace(ordered, manifest=some)
    costs = Costs(records)
    section = disorder._rates(costs)
    assert "on the stream at 1.001\u202f% out of order, so 1 means" in section.lead
    drawn = charts(section)["Rate over the rate at 1.001 % out of order"]
    assert plain(drawn.table.columns[4]) == "rate / rate at 1.001 % out of order"
    page = " ".join(plain(name) for make in (disorder._latency, disorder._delays) for name in charts(make(costs)))
    assert "in order" not in page


def test_a_run_s_page_has_each_ratio_also_that_of_another_longest_delay(records: Records) -> None:
    found = charts(sweep.section(records))["Rate over the rate in order"]
    assert {(row[0], row[3]): plain(row[4]) for row in found.table.rows if row[3] == "micro"} == {
        ("ordered", "micro"): "1", ("late20", "micro"): "0.9", ("near20", "micro"): "0.99", ("late50", "micro"): "0.75"
    }  # fmt: skip


def test_latencies_in_turns_have_a_chart_of_their_ratio(records: Records) -> None:
    file = records.directory / "cells" / "late20.sum.micro" / "search.json"
    search = json.loads(file.read_text())
    [rate] = search["compared"]
    search["compared"] = [rate, rate | {"metric": "p99", "ratio": 1.25, "interval": [1.2, 1.3], "blocks": 6}]
    write_json(file, search)
    made = charts(disorder._latency(Costs(Records(records.benchmark, records.store, RUN))))
    assert "p50 latency over that in order" not in made
    [trace] = made["p99 latency over that in order"].figure["data"]
    assert (trace["name"], trace["x"], trace["y"]) == ("sum, micro", pytest.approx([0, 20], abs=0.01), [1, 1.25])
    assert trace["error_y"]["arrayminus"] == pytest.approx([0, 0.05])


def test_without_windows_in_turns_there_are_rates_and_no_ratio(records: Records) -> None:
    for file in records.directory.glob("cells/*/search.json"):
        write_json(file, {key: value for key, value in json.loads(file.read_text()).items() if key != "compared"})
    records = Records(records.benchmark, records.store, RUN)
    section = disorder._rates(Costs(records))
    assert list(charts(section)) == ["Sustainable rate"]
    holes = {block.what: block.why for block in section.blocks if isinstance(block, Hole)}
    assert (
        holes["Not compared: late20.sum.micro"]
        == "no process measured it in turns with ordered; list that experiment first"
    )
    assert "Not compared: ordered.sum.rows" not in holes
    assert "What 50 % of disorder costs is not known" in plain(disorder.render(records))


def test_experiments_are_sorted_into_degrees_and_delays(records: Records) -> None:
    found = degrees.axes(records)
    assert (found.base, found.degrees) == ("ordered", ("ordered", "late20", "late50"))
    assert found.delays == ("near20", "late20")
    far = charts(disorder._delays(Costs(records)))
    lost, rate = far["Events lost by the longest delay"], far["Rate kept by the longest delay"]
    assert (lost.figure["data"][0]["x"], lost.figure["data"][0]["y"]) == ([0.5, 4], [0, 3])
    assert rate.figure["data"][1]["y"] == [0.8, 0.8]


def test_loads_lost_events_and_state_are_told_and_what_is_unknown_is_called_so(records: Records) -> None:
    costs = Costs(records)
    assert list(charts(disorder._latency(costs))) == [
        f"{q} latency at {load}" for load in ("80 % of its own rate", "10 000 events/s") for q in ("p50", "p99")
    ]  # fmt: skip
    lost = charts(disorder._lost(costs))["Events lost"]
    assert lost.figure["data"][0]["y"] == [0, 3, 9]
    assert [plain(cell) for cell in lost.table.rows[2]][5:] == ["900", "10 000", "42 rows", "never", "right"]
    state = disorder._state(costs).blocks
    assert isinstance(state[0], Chart)
    assert [trace["name"] for trace in state[0].figure["data"]] == ["sum, micro"]
    [hole] = [block for block in state if isinstance(block, Hole)]
    assert (hole.what, hole.why) == ("State of sum, rows", "unknown: the engine tells no size")


def test_a_chart_holds_one_load(records: Records) -> None:
    file = records.directory / "cells" / "late20.sum.micro" / "latency.json"
    runs = json.loads(file.read_text())
    own = next(run for run in runs if not run.get("common"))
    runs = [{**own, "fraction": 0.5}, {**own, "outcome": "inconclusive"}, *(run for run in runs if run is not own)]
    file.write_text(json.dumps(runs))
    costs = Costs(Records(records.benchmark, records.store, RUN))
    shown = charts(disorder._latency(costs))["p99 latency at 80 % of its own rate"].table.rows
    assert ("late20", "micro") not in [(row[0], row[3]) for row in shown]
    [hole] = [block for block in disorder._latency(costs).blocks if isinstance(block, Hole)]
    assert "it did not settle" in hole.why


def test_rules_stand_above_with_the_ceiling_of_the_link(records: Records) -> None:
    [table] = [block for block in semantics.section(records).blocks if isinstance(block, Table)]
    assert table.columns == ["", "micro", "rows"]
    told = {fact: cells for fact, *cells in ([plain(cell) for cell in row] for row in table.rows)}
    assert told["an event is late"][0] == "when its window has ended"
    assert told["engine"][0] == "spark 4.3.0"
    micro, rows = told["link's ceiling (events/s)"]
    assert micro.startswith("estimated 63 640 (")
    assert rows == "not measured"


def test_a_void_rate_and_a_driver_s_ceiling_are_no_ratio_but_the_page_stands(records: Records) -> None:
    for name, change in (("late20.sum.micro", {"correct": False}), ("late50.sum.rows", {"outcome": "all_sustained"})):
        file = records.directory / "cells" / name / "search.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
    (records.directory / "cells" / "late50.sum.micro" / "search.json").write_text("torn")
    records = Records(records.benchmark, Store(records.directory.parents[1]), RUN)
    section = disorder._rates(Costs(records))
    ratio = charts(section)["Rate over the rate in order"]
    assert [(row[0], row[3]) for row in ratio.table.rows] == [
        ("ordered", "micro"), ("ordered", "rows"), ("late20", "rows")
    ]  # fmt: skip
    assert {block.what: block.why for block in section.blocks if isinstance(block, Hole)} == {
        "Not compared: late20.sum.micro": "The answers are wrong, so the rate does not count.",
        "Not compared: late50.sum.micro": "not found",
        "Not compared: late50.sum.rows": "The system sustained all that was offered, so it may carry more.",
    }
    page = disorder.render(records)
    assert "Not shown" not in page


def test_the_page_is_reached_from_the_run_s(records: Records) -> None:
    index = build(records.benchmark, Store(records.directory.parents[1]), RUN)
    assert 'href="disorder.html"' in index.read_text()
    page = (index.parent / "disorder.html").read_text()
    assert "sum, micro: against ordered it costs 25.0% (22.7% to 27.2%); sum, rows: against ordered" in page
    assert "This machine has 2 cores" in page


def test_a_run_that_measured_nothing_has_no_such_page(tmp_path: Path) -> None:
    index = build(made_benchmark(tmp_path / "source.csv"), Store(tmp_path / "artifacts"), RUN)
    assert [page.name for page in index.parent.glob("*.html")] == ["index.html"]
    assert "disorder.html" not in index.read_text()
