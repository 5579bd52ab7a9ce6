"""The measurement scaling over the values of a setting: each has fresh processes, and what it cannot be is one line.

Parts of a machine, and what both have in common: test_scaling.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import Outage, UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.checks import check_names
from streamgauge.bench.measure.lock import FENCE
from streamgauge.bench.measurements.scaling import stage
from streamgauge.bench.measurements.scaling.record import Carried, disorder_in_cpus
from streamgauge.bench.measurements.scaling.section import Scaling
from streamgauge.bench.measurements.scaling.stage import carried_of, record_of
from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.parts import measure_parts, order
from streamgauge.bench.search.steps import Hold
from streamgauge.config import Search
from streamgauge.config.changing import with_setting
from streamgauge.records.measurement import Batch, Limits, Window
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Chart, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from tests.measure.benches import write_bench
from tests.measure.scaled import ONE_CPU, WHOLE, bench_of, follow_the_law, measured, point, searched, visits, window

FLINK: dict[str, Any] = {"name": "known", "engine": "flink"}
SPARK: dict[str, Any] = {"name": "known", "engine": "spark"}
JOB: dict[str, Any] = {
    "name": "known", "engine": "job", "bootstrap": "b:1", "command": ["r"],
    "environment": {"WORKERS": "2", "PLACE": "x"},
}  # fmt: skip
ALLOWED = "scaling.setting: found {!r}, allowed: {}"
OF_A_JOB = "environment.WORKERS, replay.partitions"


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


@pytest.mark.parametrize(
    ("system", "setting", "value", "replay", "why"),
    [
        (FLINK, "paralelism", 2, {}, ALLOWED.format("paralelism", "parallelism, checkpoint_ms, replay.partitions")),
        (FLINK, "memory", 2, {}, ALLOWED.format("memory", "parallelism, checkpoint_ms, replay.partitions")),
        (SPARK, "conf.a", 2, {}, ALLOWED.format("conf.a", "master, replay.partitions")),
        (SPARK | {"master": "spark://10.0.0.1:7077"}, "master", 2, {}, ALLOWED.format("master", "replay.partitions")),
        (JOB, "environment.PLACE", 2, {}, ALLOWED.format("environment.PLACE", OF_A_JOB)),
        (JOB, "environment.WORKER", 2, {}, ALLOWED.format("environment.WORKER", OF_A_JOB)),
        (
            FLINK, "replay.partitions", 2, {"remote": ["h:1"]},
            ALLOWED.format("replay.partitions", "parallelism, checkpoint_ms"),
        ),
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
        (
            FLINK, "checkpoint_ms", 10_000, {},
            "scaling.values: found 1, allowed: from 10 to search.window_seconds: 4000",
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


def test_an_interval_of_checkpoints_has_a_rate_relative_to_that_of_the_shortest(tmp_path: Path) -> None:
    section: dict[str, Any] = {"setting": "checkpoint_ms", "values": [100, 2000], "blocks": 2}
    bench = write_bench(tmp_path, systems=[FLINK], scaling=section)
    changed = with_setting(bench.benchmark, "known", "checkpoint_ms", 2000).system("known").model_dump()
    assert changed["conf"] == {"execution.checkpointing.interval": "2000ms"}
    cell_run, points = searched(bench_of(tmp_path, **section)), [*point(100, 20, 40), *point(2000, 24, 48)]
    carried_by = [carried_of(points, one, (100, 2000), "checkpoint_ms") for one in (100, 2000)]
    run = record_of("p", Scaling.model_validate(section), carried_by, 0.0)
    run.write(cell_run.directory / "scaling.json")
    stage.keep(cell_run, run)
    lines = {one["metric"]: one["value"] for one in read_jsonl(cell_run.run_directory / "results.jsonl")}
    assert lines["scaling_relative_rate_at_checkpoint_ms_100"] == 1
    assert lines["scaling_relative_rate_at_checkpoint_ms_2000"] == pytest.approx(1.2)
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    [table] = [block for block in shown if isinstance(block, Table) and block.caption.startswith("Values")]
    assert (table.columns[3], [plain(line[3]) for line in table.rows]) == ("relative rate", ["1", "1.2"])
    [chart] = [block for block in shown if isinstance(block, Chart) and block.title == "Rate over checkpoint_ms"]
    assert [trace["name"] for trace in chart.figure["data"]] == ["measured"], "no line in proportion"


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
    points = [*point(values[0], 20, 40), *point(values[1], 18, 36)]
    carried_by = [carried_of(points, one, values, "environment.ROWS") for one in values]
    assert [one.efficiency for one in carried_by] == [1.0, pytest.approx(0.9), None, None]
    run = record_of("p", Scaling(setting="environment.ROWS", values=values, blocks=2), carried_by, 0.0)
    assert run.refused == "it is one of workers, and environment.ROWS is not known to be a number of these"
    assert run.at(values[1]) == "with environment.ROWS 1048577"
