"""Tests the page's account of a search: cost of a batch, proof trials, predicted ages, cost of disorder."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.measurements.search.record import Constraint, SearchAnswer
from streamgauge.bench.search.verdict import settled_age
from streamgauge.catalog.artifacts import Store
from streamgauge.records.measurement import Sample, TrialObservation
from streamgauge.results.report import cells_section, overview, sweep
from streamgauge.results.report.blocks import Block, Chart, Hole, Note, Section, Table, Text, Tiles
from streamgauge.results.report.model import limited_by
from streamgauge.results.report.run_records import Records
from tests.example_run import RUN

Change = Callable[[dict[str, Any]], object]


def part(records: Records, name: str) -> Section:
    return next(one for one in cells_section.section(records).parts if one.id == f"cell-{name}")


def chart(section: Section, title: str) -> Chart:
    return next(block for block in section.blocks if isinstance(block, Chart) and block.title == title)


def table(section: Section, first: str) -> Table:
    return next(
        block for block in section.blocks if isinstance(block, Table) and first in (block.caption, block.folded)
    )


def tiles(section: Section) -> dict[str, tuple[str, str]]:
    [found] = [block for block in section.blocks if isinstance(block, Tiles)]
    return {plain(label): (plain(value), plain(remark)) for label, value, remark in found.tiles}


def plain(value: object) -> str:
    text = value.text if isinstance(value, Text) else str(value)
    return text.replace("\u2060", "").replace("\u202f", " ").replace("\u00a0", " ")


def rewrite(records: Records, file: str, change: Change) -> Records:
    """The same run, every record of that file changed."""
    path = records.directory / "cells" / file
    if path.suffix == ".jsonl":
        lines = read_jsonl(path)
        for line in lines:
            change(line)
        path.write_text("\n".join(map(json.dumps, lines)))
    else:
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found))
    return Records(records.benchmark, Store(records.directory.parents[1]), RUN)


def test_tiles_tell_the_rate_what_limits_it_what_a_batch_costs_and_what_was_proved(records: Records) -> None:
    shown = tiles(part(records, "ordered.sum.rocksdb"))
    assert {label: value for label, (value, _) in shown.items()} == {
        "sustainable rate": "40 000", "90 % interval": "38 416 – 41 649", "limited by": "batch cap",
        "batch cost": "450.1 ms", "cost of a row": "10 µs", "fixed share": "60 %",
        "caught up at": "36 000", "fell behind at": "44 000", "driver's ceiling": "900 000",
        "machine's own noise": "2.6 %",
    }  # fmt: skip
    assert (
        shown["limited by"][1]
        == "the engine takes no larger batch than its cap of 30 000 rows; raise the system's batch_rows to see more"
    )
    assert shown["caught up at"][1] == "events/s, 90 % of the rate"
    assert shown["90 % interval"][1].startswith("events/s, of 2 processes")
    assert shown["machine's own noise"][1].endswith("stolen CPU time at most 0.4 %")


def test_tiles_of_one_process_say_that_the_interval_is_of_the_fit(records: Records) -> None:
    shown = tiles(part(records, "ordered.sum.hdfs"))
    assert "of the fit of one process" in shown["90 % interval"][1]
    assert shown["limited by"] == (
        "allowed age", "at a higher rate events would wait for longer than the allowed 10 s",
    )  # fmt: skip
    assert shown["fixed share"] == ("10 %", "of a batch of 200 000 rows, at which the limit lies, is its batch cost")


def test_without_proof_the_tiles_say_so(records: Records) -> None:
    reason = "no proof trial was clear below and above the estimate"
    unproven = {"proven": [None, None], "outcome": "unproven", "reason": reason}
    shown = tiles(
        part(rewrite(records, "ordered.sum.hdfs/search.json", lambda s: s.update(unproven)), "ordered.sum.hdfs")
    )
    assert shown["caught up at"] == shown["fell behind at"] == ("—", "no proof trial was clear")
    assert shown["sustainable rate"][1] == f"events/s. The rate is only estimated: {reason}."


def test_windows_are_points_over_their_rows_with_the_fitted_line_and_the_limit(records: Records) -> None:
    found = chart(part(records, "ordered.sum.hdfs"), "What a batch costs")
    warm, ladder, fit, limit, left_out = found.figure["data"]
    assert (len(warm["x"]), warm["opacity"], ladder["opacity"]) == (5, 0.4, 1)
    assert ladder["x"] == [20_000, 33_333, 88_889]
    assert ladder["y"] == pytest.approx([1.9, 2.5, 5.0], rel=0.01)
    # batches of 1.04, 0.97, 1.01 and 0.98 of their mean: Student's t of 3 degrees of freedom is 2.353
    deviation = math.sqrt(sum((x - 1) ** 2 for x in (1.04, 0.97, 1.01, 0.98)) / 3)
    assert ladder["error_y"]["array"][2] == pytest.approx(5.0 * deviation / 2 * 2.353, rel=0.01)
    assert (fit["x"], fit["y"]) == ([0, pytest.approx(200_000)], [1.0, pytest.approx(10.0)])
    assert (limit["x"], limit["y"]) == ([pytest.approx(200_000)], [pytest.approx(10.0)])
    assert (left_out["name"], left_out["x"]) == ("left out of the fit", [20_000])
    assert [plain(row[9]) for row in found.table.rows] == ["counts"] * 8 + ["left out"]
    assert found.table.rows[-1][-1] == "the machine's speed changed from 310 to 150 units/s during the window"


def test_each_process_has_its_colour_and_its_own_line(records: Records) -> None:
    data = chart(part(records, "ordered.sum.rocksdb"), "What a batch costs").figure["data"]
    lines = [trace for trace in data if trace["name"] == "fit"]
    assert [trace["y"][0] for trace in lines] == pytest.approx([0.45 * 0.98, 0.45 / 0.98])
    assert len({trace["line"]["color"] for trace in lines}) == 2
    shown = [trace["name"] for trace in data if trace.get("showlegend") is not False]
    assert shown == ["process 1", "process 2", "left out of the fit"]


def test_windows_of_a_process_that_was_lost_are_left_out(records: Records) -> None:
    def lose(line: dict[str, Any]) -> None:
        line["window"]["life"] = 1 if line["number"] <= 2 else 2

    again = rewrite(records, "ordered.sum.hdfs/windows.jsonl", lose)
    found = chart(part(again, "ordered.sum.hdfs"), "What a batch costs")
    assert [row[-1] for row in found.table.rows][:3] == [
        *["the process was lost and measured again from its warm-up"] * 2, "",
    ]  # fmt: skip
    assert len(found.figure["data"][0]["x"]) == 3


def test_warm_up_is_shown_relative_to_the_fit_and_in_microseconds_without_one(records: Records) -> None:
    trace, left_out = chart(part(records, "ordered.sum.hdfs"), "Warm-up and ladder over time").figure["data"]
    assert trace["y"][0] > 120
    assert trace["y"][-1] == pytest.approx(100, abs=0.1)
    assert trace["marker"]["symbol"] == ["circle-open"] * 5 + ["circle"] * 3
    assert len(left_out["x"]) == 1
    (records.directory / "cells" / "ordered.sum.hdfs" / "search.json").unlink()
    running = Records(records.benchmark, Store(records.directory.parents[1]), RUN)
    bare = chart(part(running, "ordered.sum.hdfs"), "Warm-up and ladder over time")
    assert bare.table.columns[4] == "µs per row"
    assert bare.figure["data"][0]["y"][-1] == pytest.approx(5e6 / 88_889, rel=0.01)


def test_an_engine_without_micro_batches_shows_what_it_carries(records: Records) -> None:
    def continuous(line: dict[str, Any]) -> None:
        line["limits"]["continuous"] = True

    def no_batches(search: dict[str, Any]) -> None:
        search["processes"][0] |= {"batch_cost_s": None, "constraint": "system", "row_cost_s": 5e-5}

    rewrite(records, "ordered.sum.hdfs/windows.jsonl", continuous)
    section = part(rewrite(records, "ordered.sum.hdfs/search.json", no_batches), "ordered.sum.hdfs")
    _, ladder, fit, _ = chart(section, "What the engine carries").figure["data"]
    assert ladder["y"][-1] == pytest.approx(88_889 / 5.0, rel=0.01)
    assert fit["y"] == pytest.approx([20_000, 20_000])
    shown = tiles(section)
    assert shown["cost of a row"][0] == "50 µs"
    assert "fixed share" not in shown
    ages = table(section, "Age of the oldest waiting event in the latency runs")
    assert "predicted age (s)" not in ages.columns, "without batches, nothing is predicted"


def test_a_run_of_an_engine_without_micro_batches_is_split_and_counted_by_what_it_tells(records: Records) -> None:
    def rows(line: dict[str, Any]) -> None:
        system = line["details"]["system"]
        del system["batches"]
        system |= {"stretches": [], "state_bytes": 3 * 2**20}
        line["common"] = line["fraction"] == 0.5

    section = part(rewrite(records, "ordered.sum.hdfs/latency-trials.jsonl", rows), "ordered.sum.hdfs")
    split = chart(section, "Where the latency goes")
    assert [trace["name"] for trace in split.figure["data"]] == ["disorder", "queue wait", "engine"]
    assert plain(split.table.rows[0][0]) == "10 000 /s"
    assert split.table.columns[1:] == ["disorder (ms)", "queue wait (ms)", "engine (ms)"]
    spent = table(section, "Cost of each trial: batches, state, CPU, memory")
    assert [plain(row[spent.columns.index("state (MiB)")]) for row in spent.rows[2:]] == ["3"] * 4


def test_proof_trials_are_drawn_from_their_first_sample_by_the_clock(records: Records) -> None:
    below, above = chart(part(records, "ordered.sum.hdfs"), "Proof trials: age of the oldest waiting event").figure[
        "data"
    ]
    assert plain(below["name"]) == "proof 1, below 18 000/s: caught up"
    assert plain(above["name"]) == "proof 2, above 22 000/s: fell behind"
    assert (below["x"][0], len(below["x"])) == (0, 200)
    assert below["x"][-1] == pytest.approx(19.9)
    assert below["y"][0] == above["y"][0] == 10
    assert below["y"][-1] < 8 < 11 < above["y"][-1]


def test_without_a_clock_the_samples_of_batches_are_drawn(records: Records) -> None:
    again = rewrite(records, "ordered.sum.hdfs/trials.jsonl", lambda line: line["observation"].update(clock=[]))
    found = chart(part(again, "ordered.sum.hdfs"), "Proof trials: age of the oldest waiting event")
    assert found.figure["data"][0]["x"] == list(range(20))


def test_recovery_table_marks_a_trial_that_contradicts_the_estimate(records: Records) -> None:
    rows = table(part(records, "ordered.sum.hdfs"), "Proof trials").rows
    assert [(plain(row[1]), plain(row[3]), row[5]) for row in rows] == [
        ("below the estimate", "90 %", Text("caught up", "good", hint="as the estimate says")),
        ("above the estimate", "110 %", Text("fell behind", "good", hint="as the estimate says")),
    ]

    def turn(line: dict[str, Any]) -> None:
        line["outcome"], line["correct"] = "sustainable", False

    again = rewrite(records, "ordered.sum.hdfs/trials.jsonl", turn)
    above = table(part(again, "ordered.sum.hdfs"), "Proof trials").rows[1]
    assert above[5] == Text("caught up", "bad", hint="the estimate says otherwise")
    assert isinstance(above[7], Text)
    assert (above[7].text, above[7].state) == ("wrong", "bad")


def test_latency_runs_have_the_age_that_the_model_predicts_beside_the_measured_one(records: Records) -> None:
    section = part(records, "ordered.sum.hdfs")
    ages = table(section, "Age of the oldest waiting event in the latency runs: predicted, and measured")
    # a/(1 − b·r) with a = 1 s and b·r = 0.9 of the fraction; that and 0.1 s more alternate
    assert [(plain(row[0]), row[2], row[3]) for row in ages.rows] == [
        ("50 %", "1.818", "1.868"), ("80 %", "3.571", "3.621"), ("90 %", "5.263", "5.313"),
        ("100 %", "does not settle", "10.05"),
    ]  # fmt: skip


def test_settled_age_is_the_median_of_the_second_half() -> None:
    def age(samples: list[tuple[float, float]], clock: list[tuple[float, float]]) -> float | None:
        seen = [tuple(Sample(at, age, 0, 0) for at, age in some) for some in (samples, clock)]
        return settled_age(TrialObservation(1.0, 1.0, seen[0], 0, 0, clock=seen[1]))

    samples = [(0.0, 9.0), (1.0, 9.0), (2.0, 9.0), (3.0, 1.0), (4.0, 2.0), (6.0, 5.0)]
    assert (age(samples, []), age([], samples[:1]), age([], [])) == (2, 9, None)


def test_what_disorder_costs_is_a_ratio_of_windows_in_turns_and_else_not_compared(records: Records) -> None:
    shown = sweep.section(records).blocks
    assert next(one.title for one in shown if isinstance(one, Chart)) == "Rate over the rate in order"
    rows = [[plain(cell) for cell in row] for row in table_of(shown, "Rate over the rate in order").rows]
    assert rows == [
        ["ordered", "0", "sum", "rocksdb", "1", "—", "—", "—"],
        ["late20", "20", "sum", "rocksdb", "0.93", "0.9116 – 0.9488", "6", "1"],
    ]
    holes = {one.what: one.why for one in shown if isinstance(one, Hole)}
    assert holes["Not compared: late20.sum.hdfs"].startswith("no process measured it in turns with ordered")
    assert holes["Not compared: late99.sum.hdfs"] == "not run: see generate late99"


def table_of(blocks: Sequence[Block], title: str) -> Table:
    return next(block.table for block in blocks if isinstance(block, Chart) and block.title == title)


def comparisons(records: Records) -> list[list[str]]:
    tables = [
        one for one in overview.summary(records).blocks if isinstance(one, Table) and one.caption == "Comparisons"
    ]
    return [[plain(cell) for cell in row] for table in tables for row in table.rows]


def test_a_comparison_is_of_windows_in_turns_and_void_with_either_rate(records: Records) -> None:
    about = ["late20", "ordered", "sum", "rocksdb", "sustainable rate"]
    assert comparisons(records) == [[*about, "0.9300", "0.9116", "0.9488", "6", "1", "—"]]
    void = rewrite(records, "ordered.sum.rocksdb/search.json", lambda search: search.update(correct=False))
    assert comparisons(void) == [[*about, "—", "—", "—", "6", "1", "ordered has no rate that counts"]]
    bound = rewrite(
        records, "ordered.sum.rocksdb/search.json", lambda s: s.update(correct=True, outcome="all_sustained")
    )
    assert comparisons(bound)[0][-1] == "ordered may carry more than was offered"
    damaged = rewrite(
        records, "late20.sum.rocksdb/search.json", lambda search: search.update(compared=[{"ratio": "x"}])
    )
    assert comparisons(damaged) == []


@pytest.mark.parametrize("constraint", ["age", "batch cap", "queue memory", "system", "driver's ceiling"])
def test_every_limit_has_words(constraint: Constraint) -> None:
    short, meaning = limited_by(SearchAnswer(outcome="found", constraint=constraint, allowed_age_s=10.0))
    assert short
    assert meaning


def test_no_limit_has_none() -> None:
    assert limited_by(SearchAnswer(outcome="inconclusive")) == limited_by(None) == ("", "")


@pytest.mark.parametrize("lost", ["window", "limits", "number", "process", "asked"])
def test_a_window_without_a_key_is_left_out_and_named(records: Records, lost: str) -> None:
    again = rewrite(records, "ordered.sum.hdfs/windows.jsonl", lambda line: line.pop(lost))
    titles = {block.title for block in part(again, "ordered.sum.hdfs").blocks if isinstance(block, Chart)}
    assert titles.isdisjoint({"What a batch costs", "Warm-up and ladder over time"})
    with pytest.raises(UserError, match=rf"windows.jsonl: damaged, {lost}: field required; run its stage again"):
        again.require_sound()


@pytest.mark.parametrize("lost", ["processes", "proven", "interval", "constraint", "allowed_age_s", "yardstick_spread"])
def test_a_search_without_a_key_leaves_a_gap_not_a_crash(records: Records, lost: str) -> None:
    again = rewrite(records, "ordered.sum.hdfs/search.json", lambda search: search.pop(lost))
    assert tiles(part(again, "ordered.sum.hdfs"))["sustainable rate"][0] == "20 000"


def test_a_cost_without_end_draws_no_line(records: Records) -> None:
    """An engine whose batches do not grow has an infinite rate; JSON of a page has no such number."""

    def endless(search: dict[str, Any]) -> None:
        search["processes"][0] |= {"rate_events_per_s": math.inf, "backlog_rows": math.inf, "row_cost_s": 0.0}

    section = part(rewrite(records, "ordered.sum.hdfs/search.json", endless), "ordered.sum.hdfs")
    assert "fit" not in [trace["name"] for trace in chart(section, "What a batch costs").figure["data"]]
    blocks: list[Block] = [block for block in section.blocks if isinstance(block, Chart)]
    json.dumps([dataclasses.asdict(block) for block in blocks], allow_nan=False)


def test_what_is_lost_at_the_streams_own_speed_stands_beside_what_the_runs_lost_at_theirs(records: Records) -> None:
    cell = part(records, "late20.sum.rocksdb")
    notes = [block.text for block in cell.blocks if isinstance(block, Note)]
    assert (
        "At the stream's own speed the query loses 2,712 of 90,000 events (3.0 %) in 14 windows, with a micro-batch "
        "every 1 s."
    ) in notes
    counted = table(cell, "Correctness and work")
    at = counted.columns.index("events lost")
    assert counted.columns[at + 1] == "stream s per s"
    assert {tuple(row[at : at + 2]) for row in counted.rows} == {("0", "4\u202f200")}
