"""The measurement scaling over parts of a machine, with a known law; and what it says where there is no law.

Values of a setting: test_scaling_settings.py. The cost of disorder in CPUs: test_scaling_disorder.py.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.scalability import IN_TURNS, LAWS, row
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.base.units import Duration
from streamgauge.bench.driver.system import Capabilities, Share
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measurements import LONGEST, USUAL
from streamgauge.bench.measurements.scaling import stage
from streamgauge.bench.measurements.scaling.record import Carried, Checked, ScalingRun, need_of
from streamgauge.bench.measurements.scaling.section import Cost, Scaling
from streamgauge.bench.measurements.scaling.stage import _Turns, carried_of, keep, record_of, sentence_of
from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.parts import GIVE_UP, measure_parts, order, steps
from streamgauge.bench.search.steps import Hold
from streamgauge.catalog.stages import BY_NAME, stages_of
from streamgauge.config import Search
from streamgauge.config.benchmark import Overrides
from streamgauge.records.measurement import Batch, Limits, Window
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Chart, Hole, Note, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from streamgauge.stats.scalability import Refused, fit
from tests.measure.benches import CELL, write_bench
from tests.measure.killed import killed_and_measured_again
from tests.measure.scaled import (
    COHERENCY,
    CONTENTION,
    WHOLE,
    bench_of,
    follow_the_law,
    measured,
    point,
    searched,
    visits,
    window,
)


def test_the_cpus_of_a_running_process_change_between_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "CHECK_S", 1.0)
    bench = bench_of(tmp_path, cores=[4, 1], blocks=2, demand=15_000)
    run = measured(bench)
    assert [one.cpus for one in run.points] == [1, 4]
    follow_the_law(run, rel=0.2)
    assert run.refused == "2 sizes were measured, at least 4 are needed"
    assert run.need is not None
    assert (run.need.by, run.need.cpus) == ("points", 4)
    lines = {one["metric"]: one["value"] for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    assert lines["scaling_rate_at_4"] == run.points[-1].rate_events_per_s
    assert lines["scaling_efficiency_at_1"] == 1.0


@pytest.mark.prove
def test_a_known_law_is_found_by_turns_over_the_real_wire(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, cores=[8, 1, 2, 4], blocks=2, demand=20_000, cost={"core_hour": 0.045})
    run = measured(bench)
    assert [one.cpus for one in run.points] == [1, 2, 4, 8]
    follow_the_law(run, rel=0.1)
    assert run.law is not None, run.refused
    assert run.law.contention.low - 0.03 <= CONTENTION <= run.law.contention.high + 0.03
    assert run.law.coherency.low - 0.01 <= COHERENCY <= run.law.coherency.high + 0.01
    assert run.need is not None
    assert (run.need.by, run.need.cpus) == ("law", 3)
    assert run.need.cost_per_billion == pytest.approx(3 * 0.045 / 3600 / 20_000 * 1e9)
    assert run.checked is not None
    assert (run.checked.correct, run.checked.outcome) == (None, "sustainable"), run.checked.reason
    lines = {one["metric"]: one for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    kept = lines["scaling_rate_at_8"]
    assert (kept["value"], kept["valid"], kept["low"] <= kept["value"] <= kept["high"]) == (
        run.points[-1].rate_events_per_s, True, True,
    )  # fmt: skip
    assert lines["scaling_efficiency_at_1"]["value"] == 1.0
    contention = lines["scaling_contention"]
    assert (contention["value"], contention["samples"]) == (run.law.contention.value, 8)
    assert lines["scaling_cores_for_20000_per_s"]["value"] == 3
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    [tiles] = [block for block in shown if isinstance(block, Tiles) and block.tiles[0][0] == "rate on 8 CPUs"]
    values = {label: value for label, value, _ in tiles.tiles}
    assert values["CPUs for 20\u202f000\u00a0events/s"] == "3"
    assert values["answers"] == "not compared"
    [table] = [block for block in shown if isinstance(block, Table) and block.caption.startswith("Parts")]
    assert [plain(line[0]) for line in table.rows] == ["1", "2", "4", "8"]
    [chart] = [block for block in shown if isinstance(block, Chart) and block.title.startswith("Rate on parts")]
    assert [trace["name"] for trace in chart.figure["data"]] == ["measured", "as one CPU each", "the law"]


@pytest.mark.prove
def test_a_run_that_was_killed_leaves_nothing_and_is_measured_again(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, quotas=[0.5, 1], blocks=2)
    searched(bench)

    def on_half_a_cpu(cell: Path) -> bool:
        share = cell / "work" / "system" / "cpus"
        return share.exists() and share.read_text() == "0.5"

    cell, _ = killed_and_measured_again(bench, "scaling", on_half_a_cpu)
    run = ScalingRun.read(cell / "scaling.json")
    assert [len(one.blocks) for one in run.points] == [2, 2]
    assert run.refused == "2 sizes were measured, at least 4 are needed"


def test_what_cannot_be_given_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path)
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    with pytest.raises(UserError, match=r"^e\.all\.known: no sustainable rate of this run; run the stage search first"):
        measure("scaling", cell_run)
    searched(bench)

    def refuses(_: KnownSystem, share: Share | None) -> None:
        raise UserError(f"no {share}" if share is None else f"found {share.cpus:g}, allowed: none")

    monkeypatch.setattr(KnownSystem, "give", refuses)
    monkeypatch.setattr(KnownSystem, "begin_trial", lambda *_: pytest.fail("it was started"))
    with pytest.raises(UserError, match=r"^scaling\.quotas: found 1, allowed: none$"):
        measure("scaling", cell_run)
    original = KnownSystem.__init__

    def without(system: KnownSystem, *given: Any) -> None:
        original(system, *given)
        system.capabilities = Capabilities()

    monkeypatch.setattr(KnownSystem, "__init__", without)
    with pytest.raises(UserError, match=r"^scaling: systems\.known takes no part of the CPUs: its adapter declares no"):
        measure("scaling", cell_run)
    holes = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    assert "No scaling" in [block.what for block in holes if isinstance(block, Hole)]


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"quotas": [0.5, 1], "cores": [1, 2]}, "scaling: found both quotas and cores, allowed: one of them"),
        ({"cores": [1, 2, 1]}, "scaling: cores: found a number twice, allowed: each once"),
        ({"quotas": [1]}, "scaling.quotas"),
        ({"quotas": [0, 1]}, "scaling.quotas"),
        ({"quotas": [1e-7, 1]}, "scaling.quotas.0: found 1e-07, allowed: at least 0.01"),
        ({"cost": {"core_hour": -1}}, "scaling.cost.core_hour"),
        ({"values": [1, 2]}, "scaling: give setting and values, both of them or none"),
        ({"setting": "a", "values": [1, 2], "cores": [1, 2]}, "scaling: found both cores and values, allowed: one"),
        ({"setting": "a", "values": [1, 1]}, "scaling: values: found a number twice, allowed: each once"),
        (
            {"setting": "a", "values": [1, 2], "cost": {"core_hour": 1}},
            "scaling: cost: found with setting, allowed",
        ),
    ],
)
def test_a_section_that_makes_no_sense_is_refused(tmp_path: Path, section: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why.replace(".", r"\.")):
        bench_of(tmp_path, **section)


@pytest.mark.parametrize("section", [{}, {"cores": [1, 2]}, {"setting": "parallelism", "values": [1, 2]}])
def test_a_run_reads_its_copy_of_the_section_again(section: dict[str, Any]) -> None:
    scaling = Scaling.model_validate(section)
    assert Scaling.model_validate(scaling.model_dump(mode="json")) == scaling


def test_four_points_fit_into_ten_minutes_and_a_first_look_has_two_blocks(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, scaling={}, search={"warmup_seconds": 75})
    benchmark = bench.benchmark
    assert [stage.name for stage in stages_of(benchmark)][-3:] == ["latency", "scaling", "report"]
    assert timing.stage_seconds(BY_NAME["scaling"], benchmark, USUAL) < 600
    afresh = write_bench(tmp_path, scaling={"setting": "parallelism", "values": [1, 2]}, search={"warmup_seconds": 75})
    visit_s = 2 * USUAL.start_s + 0.8 * 75
    longest_s = timing.stage_seconds(BY_NAME["scaling"], afresh.benchmark)
    assert 7 * visit_s < timing.stage_seconds(BY_NAME["scaling"], afresh.benchmark, USUAL) < longest_s
    four = 4 * 2 * afresh.benchmark.search.window_seconds  # a faster value takes so many windows
    assert longest_s > 7 * (2 * LONGEST.start_s + 75) + 6 * four
    quick = Overrides(quick=True).apply(benchmark)
    assert quick.scaling is not None
    assert quick.scaling.blocks == 2
    assert benchmark.scaling == Scaling()


def test_each_block_has_all_parts_once_in_an_order_of_its_own() -> None:
    parts = (0.25, 0.5, 0.75, 1.0)
    orders = [order(parts, block, 1) for block in range(6)]
    assert all(sorted(one) == list(parts) for one in orders)
    assert len({tuple(one) for one in orders}) > 3
    assert orders == [order(parts, block, 1) for block in range(6)] != [order(parts, block, 2) for block in range(6)]


def test_a_point_is_fitted_to_small_and_large_batches_of_the_rate_that_is_expected_there() -> None:
    settings, asked = Search(), list[tuple[float, int]]()

    def noted(cpus: float, step: Hold) -> Window:
        asked.append((cpus, step.rows))
        return window(cpus, step)

    points = measure_parts((0.5, 1.0), 2, 1, settings, Limits(), WHOLE, visits(noted))
    assert sorted({(one.block, one.cpus) for one in points}) == [(0, 0.5), (0, 1.0), (1, 0.5), (1, 1.0)]
    for one in points:
        assert one.estimate is not None
        assert one.estimate.rate_events_per_s == pytest.approx((1 - 0.01 / one.cpus / 10) * 1e4 * one.cpus, rel=1e-6)
    rows = {cpus: sorted(held for at, held in asked if at == cpus) for cpus in (0.5, 1.0)}
    for smallest, small, large, largest in rows.values():  # alike in both blocks
        assert max(small - smallest, largest - large) <= 1
        assert large == pytest.approx(8 * small, rel=0.01)
    assert rows[1.0][-1] == pytest.approx(2 * rows[0.5][-1], rel=0.01)


def test_a_limit_far_beyond_the_windows_is_measured_and_not_read_from_batches_that_took_as_long() -> None:
    asked = list[int]()

    def noisy(_: float, step: Hold) -> Window:
        """Returns a window in which a batch costs seconds, whose noise hides what a few rows cost."""
        asked.append(step.rows)
        batch_s = 2.6 + 1e-6 * step.rows + (0.5 if "small" in step.reason else 0.0)
        return Window(1, "ladder", step.rows, tuple(Batch(n * batch_s, step.rows, batch_s) for n in range(4)))

    settings = Search().model_copy(update={"max_age": Duration.parse("4s")})
    [point] = measure_parts((0.25,), 1, 1, settings, Limits(), WHOLE, visits(noisy))
    assert len(asked) > 2
    assert asked == sorted(asked)
    assert point.estimate is not None
    assert point.estimate.rate_events_per_s < 2 * (4 - 2.6) / 1e-6 / 4
    assert point.estimate.backlog_rows <= 4 * asked[-1]


def test_windows_have_rows_also_where_a_batch_is_expected_to_take_all_of_the_allowed_age() -> None:
    slow = Estimate(**{**vars(WHOLE), "batch_cost_s": 12.0})
    small, large = steps(Search(), Limits(), slow, WHOLE)
    assert (small.rows, large.rows) == (1250, 10_000), "0.1 of ten seconds, at 0.1 ms a row, and an eighth of them"


def test_a_rate_on_which_the_trial_of_answers_falls_behind_is_contradicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = Checked(rate_events_per_s=6000.0, outcome="unsustainable", reason="an event waited 27.7 s, more than 3 s")
    monkeypatch.setattr(stage, "CHECK_S", 1.0)
    monkeypatch.setattr(stage, "checked_of", lambda *_: (checked, {}))
    run = measured(bench_of(tmp_path, cores=[4, 1], blocks=2))
    one, four = run.points
    assert one.rate_events_per_s is None
    assert re.fullmatch(r"contradicted: at 60% of the estimate, \S+ events/s, an event waited .* than 3 s", one.reason)
    assert (four.rate_events_per_s is not None, four.efficiency) == (True, None), "against one CPU"
    lines = {line["metric"]: line for line in read_jsonl(tmp_path / "artifacts" / "runs" / "r" / "results.jsonl")}
    assert (lines["scaling_rate_at_1"]["value"], lines["scaling_rate_at_1"]["valid"]) == (None, False)


def test_a_known_cap_of_a_batch_bounds_the_rate_and_without_batches_one_window_is_enough() -> None:
    capped = Estimate(**{**vars(WHOLE), "cap_rows": 500, "constraint": "batch cap"})
    small, large = steps(Search(), Limits(), capped, capped)
    assert (small.rows, large.rows) == (166, 1000)
    flowing = Estimate(**{**vars(WHOLE), "batch_cost_s": None})
    [one] = steps(Search(), Limits(continuous=True, most_rows=30_000), flowing, flowing)
    assert one.rows == 30_000


def test_invalid_windows_are_measured_again_and_end_the_turns_where_nothing_is_valid() -> None:
    asked = list[float]()

    def broken(cpus: float, step: Hold) -> Window:
        asked.append(cpus)
        return Window(1, "ladder", step.rows, (), "the system died")

    points = measure_parts((0.5, 1.0), 9, 1, Search(), Limits(), WHOLE, visits(broken))
    assert [one.reason for one in points] == ["the system died"] * GIVE_UP
    assert len(asked) == 2 * GIVE_UP
    parts = [carried_of(points, cpus, (0.5, 1.0)) for cpus in (0.5, 1.0)]
    assert all(one == Carried(cpus=one.cpus, reason="the system died") for one in parts)
    run = record_of("p", Scaling(quotas=(0.5, 1.0), demand=10.0), parts, 0.0)
    assert sentence_of(run) == "events/s: nothing; no law: 0 sizes were measured, at least 4 are needed"
    assert run.need is not None
    assert run.need.cpus is None


def test_efficiency_is_of_the_same_block_and_real_quotas_carry_no_law() -> None:
    parts = (0.25, 0.5, 0.75, 1.0)
    points = [*point(0.25, 20, 40), *point(0.5, 45, 90), *point(0.75, 70, 140), *point(1.0, 100, 200)]
    carried_by = [carried_of(points, one, parts) for one in parts]
    run = record_of("p", Scaling(demand=60.0, cost=Cost(core_hour=0.36)), carried_by, 0.0)
    assert [one.efficiency for one in run.points] == pytest.approx([0.8, 0.9, 70 / 75, 1.0])
    assert run.points[0].efficiency_interval == pytest.approx((0.8, 0.8))
    assert run.points[3].efficiency_interval is None
    assert run.points[0].rate_events_per_s == pytest.approx(math.sqrt(20 * 40))
    assert run.law is None
    assert run.refused == "0.25 of a core: a quota below one core measures throttling, not scaling"
    assert run.need is not None
    assert (run.need.by, run.need.cpus, run.need.low) == ("points", 0.5, 0.25)
    assert run.cost_of(run.points[3]) == pytest.approx(0.36 / 3600 / math.sqrt(100 * 200) * 1e9)


def test_a_part_that_lacks_a_block_says_so(tmp_path: Path) -> None:
    bench, parts = bench_of(tmp_path, cores=[1, 2], blocks=2), (1.0, 2.0)
    cell_run, points = searched(bench), [*point(1.0, 100, 100), *point(2.0, 180)]
    run = record_of("p", Scaling(cores=(1, 2), blocks=2), [carried_of(points, one, parts) for one in parts], 0.0)
    assert sentence_of(run).startswith("events/s: 100 on 1 CPU, 180 on 2 CPUs (1 of 2 blocks counts); no law: ")
    run.write(cell_run.directory / "scaling.json")
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    [table] = [block for block in shown if isinstance(block, Table) and block.caption.startswith("Parts")]
    assert [plain(line[table.columns.index("blocks")]) for line in table.rows] == ["2 of 2", "1 of 2"]


def test_without_a_law_a_demand_is_the_least_part_that_carries_it_for_sure_or_perhaps() -> None:
    points = tuple(
        Carried(cpus=cpus, rate_events_per_s=rate, interval=(0.8 * rate, 1.2 * rate), blocks=(rate,))
        for cpus, rate in ((1, 100.0), (2, 180.0), (3, 250.0))
    )
    refused = fit([(one.cpus, rate) for one in points for rate in one.blocks])
    assert isinstance(refused, Refused)
    ends = {rate: need_of(rate, points, refused, None, 0.0) for rate in (90.0, 150.0, 230.0, 400.0)}
    assert [(one.low, one.cpus, one.high) for one in ends.values()] == [(1, 1, 2), (2, 2, 3), (3, 3, None), (None,) * 3]
    fresh = need_of(150.0, points, refused, None, 0.4)  # 180 may be as little as 114, and 100 as much as 155
    assert (fresh.low, fresh.cpus, fresh.high) == (1, 2, 3)


def test_intervals_from_turns_hold_a_known_law_nine_times_in_ten() -> None:
    """`python -m benchmarks.scalability` has 100 of each kind."""
    _, _, _, _, fitted, contention, coherency, *_ = row(LAWS[4], IN_TURNS[0], 20)
    assert int(fitted) >= 17
    assert all(float(one.rstrip(" %")) >= 75 for one in (contention, coherency))


def test_a_process_whose_warm_up_failed_measures_no_point() -> None:
    def window(step: Hold, **_: Any) -> Window:
        return Window(step.process, step.purpose, step.rows, (), "it ended with 137")

    stopped: list[bool] = []
    bench: Any = SimpleNamespace(
        running=False, continuous=False, window=window, give=lambda _: None, stop=lambda: stopped.append(True),
        plan=SimpleNamespace(search=Search()), limits=Limits(), pause=lambda: None,
    )  # fmt: skip
    with _Turns(bench, 1, whole=False).visit(0.5) as measure_on:
        measured = measure_on(Hold(1, "ladder", 1000, "", 1.0, 1.0, 1.0, 1))
    assert (measured.invalid, measured.batches, stopped) == ("its warm-up failed: it ended with 137", (), [True])


def test_a_demand_is_that_of_a_fresh_process_which_differs_from_the_measured_one() -> None:
    points, parts = [*point(0.5, 45, 47), *point(1.0, 100, 104)], (0.5, 1.0)
    carried = tuple(carried_of(points, one, parts) for one in parts)
    run = record_of("p", Scaling(quotas=parts, demand=55.0), carried, 0.1)
    assert run.need == need_of(55.0, carried, Refused(run.refused), None, 0.1 * math.sqrt(2))
    assert run.need != need_of(55.0, carried, Refused(run.refused), None, 0.1), "it is wider"


def test_a_note_says_why_there_is_no_law(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    cell_run = searched(bench)
    parts = (0.5, 1.0)
    points = [*point(0.5, 45, 47), *point(1.0, 100, 104)]
    record_of("p", Scaling(quotas=parts), [carried_of(points, one, parts) for one in parts], 0.0).write(
        cell_run.directory / "scaling.json"
    )
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    notes = [block.text for block in shown if isinstance(block, Note)]
    assert any(text.startswith("The points carry no scalability law: 2 sizes") for text in notes)


def test_no_figure_is_shown_or_kept_where_answers_were_wrong(tmp_path: Path) -> None:
    bench, parts = bench_of(tmp_path), (0.5, 1.0)
    cell_run, points = searched(bench), [*point(0.5, 45, 47), *point(1.0, 100, 104)]
    wrong = Checked(rate_events_per_s=30, outcome="sustainable", correct=False, reason="2 of 9 rows differ")
    about = Scaling(quotas=parts, demand=40, cost=Cost(core_hour=1))
    run = record_of("p", about, [carried_of(points, one, parts) for one in parts], 0.0)
    run = run.model_copy(update={"checked": wrong})
    assert sentence_of(run) == "void: answers were wrong on the smallest part"
    run.write(cell_run.directory / "scaling.json")
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    tiles = [[label for label, *_ in block.tiles] for block in shown if isinstance(block, Tiles)]
    assert tiles[-1] == ["answers"]
    assert [block.text for block in shown if isinstance(block, Note)][-1] == (
        "No figure counts: answers were wrong on the smallest part. 2 of 9 rows differ"
    )
    assert not [block for block in shown if isinstance(block, Table) and block.caption.startswith("Parts")]
    keep(cell_run, run)
    lines = [one for one in read_jsonl(cell_run.run_directory / "results.jsonl") if one["metric"].startswith("scaling")]
    assert len(lines) == 8
    assert {(one["valid"], one["reason"]) for one in lines} == {(False, "answers were wrong on the smallest part")}
