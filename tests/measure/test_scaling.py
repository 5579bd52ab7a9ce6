"""The measurement scaling with the known system, whose law is known; and what it says where there is no law."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scalability import IN_TURNS, LAWS, row
from streamgauge.base.errors import Outage, UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.driver.system import Capabilities, Share
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measure.checks import check_names
from streamgauge.bench.measure.lock import FENCE
from streamgauge.bench.measurements import LONGEST, USUAL
from streamgauge.bench.measurements.scaling import stage
from streamgauge.bench.measurements.scaling.record import Carried, Checked, ScalingRun, disorder_in_cpus, need_of
from streamgauge.bench.measurements.scaling.section import Cost, Scaling
from streamgauge.bench.measurements.scaling.stage import carried_of, record_of, sentence_of
from streamgauge.bench.measurements.search.record import Estimate, ProcessEstimate, SearchAnswer
from streamgauge.bench.measurements.search.stage import publish
from streamgauge.bench.search.parts import GIVE_UP, Point, Visit, measure_parts, order, steps
from streamgauge.bench.search.steps import Hold
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import BY_NAME, stages_of
from streamgauge.config import Cell, Search
from streamgauge.config.benchmark import Overrides
from streamgauge.config.changing import with_setting
from streamgauge.records.measurement import Batch, Limits, Window
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Chart, Hole, Note, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from streamgauge.stats.scalability import Refused, carried, fit
from tests.command import Call
from tests.command import run as run_command
from tests.measure.benches import CELL, Bench, write_bench
from tests.measure.killed import killed_and_measured_again

ONE_CPU, CONTENTION, COHERENCY = 10_000, 0.1, 0.02
QUICK = {"max_age": "600ms", "warmup_seconds": 0, "window_seconds": 0.2, "yardstick": False}
#: a batch of n rows takes 10 ms and n times 100 µs
WHOLE = Estimate(9900.0, 9800.0, 10_000.0, "age", 9900.0, 0.01, 1e-4, None, 0.01, 0.0, 0.0, 0.0)


def bench_of(place: Path, *, pipeline: str = "", **section: Any) -> Bench:
    """pipeline: time of a row through a system without batches."""
    known = {
        "name": "known", "engine": "known", "capacity": ONE_CPU, "batch_cost": "10ms", "contention": CONTENTION,
        "coherency": COHERENCY,
    }  # fmt: skip
    known |= {"continuous": True, "pipeline": pipeline} if pipeline else {}
    return write_bench(place, systems=[known], search=QUICK, scaling=section)


def searched(bench: Bench) -> CellRun:
    """A run whose search has ended."""
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    cell_run.directory.mkdir(parents=True, exist_ok=True)
    rate = carried(1, ONE_CPU, CONTENTION, COHERENCY) * 0.99
    is_continuous = bench.benchmark.system("known").model_dump()["continuous"]
    one = ProcessEstimate(**{**vars(WHOLE), **({"batch_cost_s": None} if is_continuous else {})}, process=1)
    answer = SearchAnswer(
        sustainable_rate_events_per_s=rate, interval=(rate, rate), outcome="found", correct=True, processes=(one,),
        plan=cell_run.plan_key, proven=(0.9 * rate, 1.1 * rate),
    )  # fmt: skip
    publish(cell_run, answer)
    return cell_run


def measured(bench: Bench) -> ScalingRun:
    cell_run = searched(bench)
    measure("scaling", cell_run)
    return ScalingRun.read(cell_run.directory / "scaling.json")


def follow_the_law(run: ScalingRun, rel: float) -> None:
    """Asserts that each point is that of the known law."""
    for one in run.points:
        truth = carried(one.cpus, ONE_CPU, CONTENTION, COHERENCY)
        assert len(one.blocks) == run.blocks
        assert one.rate_events_per_s == pytest.approx(truth * 0.99, rel=rel)
        assert one.efficiency == pytest.approx(truth / one.cpus / ONE_CPU, rel=rel)


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


def test_each_value_of_a_setting_has_fresh_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "CHECK_S", 1.0)
    # with as many rows waiting as on one CPU, the pipeline carries 15,000 events/s at most
    bench = bench_of(tmp_path, setting="parallelism", values=[4, 1], blocks=2, demand=15_000, pipeline="200ms")
    starts, start = list[int](), KnownSystem.start

    tokens = set[str]()

    def started(system: KnownSystem) -> None:
        starts.append(system._wired.parallelism)
        tokens.add(os.environ[FENCE])
        start(system)

    monkeypatch.setattr(KnownSystem, "start", started)
    run = measured(bench)
    visits = [value for block in range(2) for value in order([1, 4], block, 1)]
    assert starts == [*visits, 4], "the last one answers"
    assert len(tokens) == 1, "no other measurement comes in between"
    assert (run.kind, run.setting, [one.cpus for one in run.points]) == ("setting", "parallelism", [1, 4])
    follow_the_law(run, rel=0.2)
    assert run.refused == "2 sizes were measured, at least 4 are needed"
    assert run.need is not None
    assert (run.need.by, run.need.cpus) == ("points", 4)
    assert run.checked is not None
    assert (run.checked.outcome, run.checked.at) == ("sustainable", "with parallelism 4"), run.checked.reason
    assert disorder_in_cpus([run, run]) == {}, "parallelism is no CPU"
    lines = {one["metric"]: one["value"] for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    assert {name: value for name, value in lines.items() if name.startswith("scaling_")} == {
        "scaling_rate_at_parallelism_1": run.points[0].rate_events_per_s,
        "scaling_efficiency_at_parallelism_1": 1.0,
        "scaling_rate_at_parallelism_4": run.points[1].rate_events_per_s,
        "scaling_efficiency_at_parallelism_4": run.points[1].efficiency,
        "scaling_parallelism_for_15000_per_s": 4,
    }
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    [tiles] = [block for block in shown if isinstance(block, Tiles) and "parallelism" in block.tiles[0][0]]
    assert [label for label, *_ in tiles.tiles] == [
        "rate with parallelism 4", "efficiency with parallelism 4", "parallelism for 15\u202f000\u00a0events/s",
        "answers",
    ]  # fmt: skip
    [table] = [block for block in shown if isinstance(block, Table) and block.caption.startswith("Values")]
    assert (table.columns[0], [plain(line[0]) for line in table.rows]) == ("parallelism", ["1", "4"])
    [chart] = [block for block in shown if isinstance(block, Chart) and block.title == "Rate over parallelism"]
    assert [trace["name"] for trace in chart.figure["data"]] == ["measured", "in proportion"]


FLINK: dict[str, Any] = {"name": "known", "engine": "flink"}
SPARK: dict[str, Any] = {"name": "known", "engine": "spark"}
JOB: dict[str, Any] = {
    "name": "known", "engine": "job", "bootstrap": "b:1", "command": ["r"],
    "environment": {"WORKERS": "2", "PLACE": "x"},
}  # fmt: skip
ALLOWED = "scaling.setting: found {!r}, allowed: {}"
OF_A_JOB = "environment.WORKERS, replay.partitions"


@pytest.mark.parametrize(
    ("system", "setting", "value", "replay", "why"),
    [
        (FLINK, "paralelism", 2, {}, ALLOWED.format("paralelism", "parallelism, replay.partitions")),
        (FLINK, "memory", 2, {}, ALLOWED.format("memory", "parallelism, replay.partitions")),
        (SPARK, "conf.a", 2, {}, ALLOWED.format("conf.a", "master, replay.partitions")),
        (SPARK | {"master": "spark://10.0.0.1:7077"}, "master", 2, {}, ALLOWED.format("master", "replay.partitions")),
        (JOB, "environment.PLACE", 2, {}, ALLOWED.format("environment.PLACE", OF_A_JOB)),
        (JOB, "environment.WORKER", 2, {}, ALLOWED.format("environment.WORKER", OF_A_JOB)),
        (FLINK, "replay.partitions", 2, {"remote": ["h:1"]}, ALLOWED.format("replay.partitions", "parallelism")),
        (FLINK, "parallelism", 101, {}, "scaling.values: found 101, allowed: at most 100"),
        (JOB, "replay.partitions", 5000, {}, "scaling.values: found 5000, allowed: at most 1024"),
        (
            JOB, "replay.partitions", 2, {"processes": 2},
            "scaling.values: found 1, allowed: at least replay.processes: 2",
        ),
        (
            FLINK, "parallelism", 4, {"partitions": 2},
            "scaling.values: found 4, allowed: no more workers of systems.known than replay.partitions: 2",
        ),
        (
            SPARK | {"cpus": [0]}, "master", 2, {"partitions": 2},
            "scaling.values: found 2, allowed: no more workers of systems.known than its cpus: 1",
        ),
        (
            SPARK | {"master": "local-cluster[1,2,1024]"}, "master", 2, {"partitions": 3},
            "scaling.values: found 2, allowed: no more workers of systems.known than replay.partitions: 3",
        ),
        (
            SPARK | {"master": "local[4]"}, "replay.partitions", 4, {},
            "scaling.values: found 1, allowed: at least the workers of systems.known: 4",
        ),
    ],
)  # fmt: skip
def test_a_setting_that_no_system_has_or_a_value_without_effect_is_one_line(
    tmp_path: Path, system: dict[str, Any], setting: str, value: int, replay: dict[str, Any], why: str
) -> None:
    scaling = {"setting": setting, "values": [1, value]}
    benchmark = write_bench(tmp_path, systems=[system], replay=replay, scaling=scaling).benchmark
    with pytest.raises(UserError) as caught:
        check_names(benchmark)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("system", "setting", "changed"),
    [
        (FLINK, "parallelism", {"parallelism": 3}),
        (SPARK, "master", {"master": "local[3]"}),
        (SPARK | {"master": "local-cluster[2,1,1024]"}, "master", {"master": "local-cluster[3,1,1024]"}),
        (JOB, "environment.WORKERS", {"environment": {"WORKERS": "3", "PLACE": "x"}}),
        ({"name": "known", "engine": "a.b:C", "parallelism": 2}, "parallelism", {"parallelism": 3}),
        (JOB, "replay.partitions", {}),
        (SPARK, "replay.partitions", {}),
        (FLINK, "replay.partitions", {}),
    ],
)
def test_a_number_is_changed_where_a_setting_has_one(
    tmp_path: Path, system: dict[str, Any], setting: str, changed: dict[str, Any]
) -> None:
    benchmark = write_bench(tmp_path, systems=[system], replay={"partitions": 4}).benchmark
    new = with_setting(benchmark, "known", setting, 3)
    assert new.system("known") == benchmark.system("known").model_copy(update=changed)
    assert new.replay.partitions == (4 if changed else 3)


def test_a_system_without_the_setting_is_not_measurable_beside_one_that_has_it(tmp_path: Path) -> None:
    known = {"name": "known", "engine": "known", "capacity": ONE_CPU}
    scaling = {"setting": "parallelism", "values": [1, 2]}
    check_names(write_bench(tmp_path, systems=[SPARK | {"name": "spark"}, known], scaling=scaling).benchmark)
    run = measured(bench_of(tmp_path, setting="master", values=[1, 2]))
    assert {one.reason for one in run.points} == {"it is not measurable: systems.known has no number in master"}


def test_a_value_is_refused_only_if_no_system_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scaling = {"setting": "replay.partitions", "values": [1, 4]}
    spark = SPARK | {"name": "spark", "master": "local[2]"}
    check_names(write_bench(tmp_path, systems=[spark, JOB], scaling=scaling).benchmark)

    def measures(_: object, __: CellRun, section: Scaling, ___: Estimate) -> tuple[list[Carried], None, dict[str, str]]:
        return [Carried(cpus=value, rate_events_per_s=5.0, blocks=(5.0,)) for value in section.parts], None, {}

    monkeypatch.setattr(stage, "_measured", measures)
    monkeypatch.setattr(KnownSettings, "workers", 2)
    few, many = measured(bench_of(tmp_path, setting="replay.partitions", values=[4, 1])).points
    why = "it is not measurable: scaling.values: found 1, allowed: at least the workers of systems.known: 2"
    assert (few.cpus, few.reason, few.blocks) == (1, why, ())
    assert (many.cpus, many.reason, many.blocks) == (4, "", (5.0,))


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


def visits(window: Callable[[float, Hold], Window]) -> Visit:
    """Visits that only carry windows out."""
    return lambda cpus: nullcontext(partial(window, cpus))


def window(cpus: float, step: Hold) -> Window:
    """A window of a system whose batches take as long as WHOLE says on one CPU."""
    seconds = (0.01 + 1e-4 * step.rows) / cpus
    batches = tuple(Batch(n * seconds, step.rows, seconds) for n in range(max(4, step.least_batches)))
    return Window(1, "ladder", step.rows, batches)


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


def test_a_value_that_does_not_start_has_its_reason_and_the_others_their_rates() -> None:
    @contextmanager
    def visit(value: float) -> Iterator[Callable[[Hold], Window]]:
        if value == 64:
            raise UserError("no 64 executors")
        yield partial(window, value)

    points = measure_parts((1, 64), 2, 1, Search(), Limits(), WHOLE, visit, in_proportion=False)
    assert sorted((one.block, one.cpus, one.reason, one.estimate is None) for one in points) == [
        (block, value, reason, bool(reason)) for block in (0, 1) for value, reason in ((1, ""), (64, "no 64 executors"))
    ]
    with pytest.raises(UserError):
        measure_parts((1, 64), 2, 1, Search(), Limits(), WHOLE, visit)


@pytest.mark.parametrize("blocks", [1, 3])
def test_an_outage_that_leaves_no_point_is_one_of_the_stage_and_is_tried_again(blocks: int) -> None:
    visited = list[float]()

    @contextmanager
    def visit(value: float) -> Iterator[Callable[[Hold], Window]]:
        visited.append(value)
        if len(visited) < 4:
            raise Outage("no broker")
        yield partial(window, value)

    with pytest.raises(Outage, match="no broker"):
        measure_parts((1, 2), blocks, 1, Search(), Limits(), WHOLE, visit, in_proportion=False)
    later = measure_parts((1, 2), 2, 1, Search(), Limits(), WHOLE, visit, in_proportion=False)
    assert later[-1].estimate is not None


@pytest.mark.parametrize(
    ("batch_cost", "row_cost", "growth", "cap", "truth", "close"),
    [
        (1.0, 2e-5, 0.0, 60_000, 60_000 / 2.2, 1e-6),  # a cap between the answer and half of it
        (0.3, 1e-6, 2e-8, 10**9, 2_568_097 / 3, 0.01),  # a row costs 2 % more with each million of its batch
        (0.125, 2.5e-6, 0.0, 600_000, 600_000 / 1.625, 1e-6),  # a cap where eight times the expected rate is carried
    ],
)
def test_a_fresh_process_is_also_measured_just_beyond_the_answer(
    batch_cost: float, row_cost: float, growth: float, cap: int, truth: float, close: float
) -> None:
    expected = Estimate(**{**vars(WHOLE), "batch_cost_s": 1.0, "row_cost_s": min(2e-5, 8 * row_cost)})

    def taken(_: float, step: Hold) -> Window:
        rows = min(step.rows, cap)
        seconds = batch_cost + row_cost * rows * (1 + growth * rows)
        batches = tuple(Batch(n * seconds, rows, seconds) for n in range(max(4, step.least_batches)))
        return Window(1, "ladder", step.rows, batches)

    settings = Search.model_validate({"max_age": "3s"})
    [one, _] = measure_parts((1, 2), 1, 1, settings, Limits(), expected, visits(taken), in_proportion=False)
    assert one.estimate is not None
    assert one.estimate.rate_events_per_s == pytest.approx(truth, rel=close)


def test_a_process_with_another_setting_need_not_have_the_cap_of_a_batch_that_the_searched_one_had() -> None:
    capped = Estimate(**{**vars(WHOLE), "cap_rows": 500, "constraint": "batch cap"})
    points = measure_parts((1, 2), 2, 1, Search(), Limits(), capped, visits(window), in_proportion=False)
    for one in points:
        assert one.estimate is not None
        assert one.estimate.rate_events_per_s == pytest.approx((1 - 0.01 / one.cpus / 10) * 1e4 * one.cpus, rel=1e-6)


def test_no_law_is_fitted_to_what_counts_no_workers_and_values_have_all_their_digits() -> None:
    values = (1048576, 1048577, 4194304, 8388608)
    carried_by = [carried_of([*point(one, one, one)], one, values) for one in values]
    run = record_of("p", Scaling(setting="environment.ROWS", values=values, blocks=2), carried_by, 0.0)
    assert run.refused == "it is one of workers, and environment.ROWS is no number of these"
    assert run.at(values[1]) == "with environment.ROWS 1048577"


def point(cpus: float, *rates: float) -> list[Point]:
    made = [Estimate(**{**vars(WHOLE), "rate_events_per_s": rate}) for rate in rates]
    return [Point(block, cpus, estimate) for block, estimate in enumerate(made)]


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


def scaled(bench: Bench, cell: Cell, percent: float, *points: Sequence[Point]) -> ScalingRun:
    """Writes the record of a cell whose parts carry this."""
    parts = tuple(own[0].cpus for own in points)
    carried_by = [carried_of(own, own[0].cpus, parts) for own in points]
    run = record_of("p", Scaling(quotas=parts, demand=80.0, blocks=2), carried_by, 0.02)
    run = run.model_copy(update={"cell": cell, "target_percent": percent})
    place = bench.store.run("r") / "cells" / cell.name
    place.mkdir(parents=True, exist_ok=True)
    run.write(place / "scaling.json")
    return run


def test_page_and_runs_show_say_what_a_late_stream_costs_in_cpus(tmp_path: Path) -> None:
    streams = [{"name": "late", "target_percent": 20, "delay": {"max": "1s"}}, {"name": "e", "target_percent": 0}]
    bench = write_bench(tmp_path, experiments=streams, scaling={})
    late = CELL.model_copy(update={"experiment": "late"})
    ordered_run = scaled(bench, CELL, 0, point(0.5, 50, 51), point(1.0, 100, 102))
    late_run = scaled(bench, late, 20, point(0.5, 40, 41), point(1.0, 80, 82))
    [(name, cost)] = disorder_in_cpus([late_run, ordered_run]).items()
    assert (name, cost.against, cost.rate_events_per_s) == (late.name, "e", 80)
    assert cost.cpus == pytest.approx(0.99, abs=0.01)
    assert cost.of_against == pytest.approx(0.79, abs=0.01)
    said = r"of two processes, at 80 events/s it needs 0\.2 CPUs more than e \(0\.1\d* to 0\.2\d*\)"
    assert re.fullmatch(said, cost.sentence)
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r"))
    notes = {part.title: [one.text for one in part.blocks if isinstance(one, Note)] for part in shown.parts}
    assert f"O{cost.sentence[1:]}." in notes["late × all × known"]
    assert not any(" CPUs more than " in text for text in notes["e × all × known"])
    with RunLog(bench.store.run("r")).stage("scaling", late.model_dump()):
        pass
    told = run_command(Call(["runs", "show", "r", "--artifacts", str(bench.store.root)]))
    assert f"{late.name}: {cost.sentence}" in told.out.splitlines()


def test_what_is_not_known_of_the_cpus_has_its_reason(tmp_path: Path) -> None:
    bench = write_bench(tmp_path)
    late = CELL.model_copy(update={"experiment": "late"})
    fast = scaled(bench, CELL, 0, point(0.5, 500, 510), point(1.0, 1000, 1020))
    slow = scaled(bench, late, 20, point(0.5, 40, 41), point(1.0, 80, 82))
    assert disorder_in_cpus([fast, slow])[late.name].sentence == (
        "what it costs in CPUs against e is not known: the parts carry no common rate: 41 to 80 events/s of the one, "
        "510 to 1,000 of the other"
    )
    wrong = Checked(rate_events_per_s=1, outcome="sustainable", correct=False)
    for bad in (slow.model_copy(update={"checked": wrong}), scaled(bench, late, 20, point(0.5, 40), point(1.0, 80))):
        assert disorder_in_cpus([fast, bad])[late.name].reason == (
            "answers were wrong, or a part has no rate in some block"
        )
    alike = disorder_in_cpus([fast, fast.model_copy(update={"cell": late})])[late.name]
    assert alike.sentence.startswith(
        "of two processes, at 714 events/s it needs no more CPUs than e that show: between -0.0"
    )


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
