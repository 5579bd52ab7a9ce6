"""A night of the known system: its history is written by hand, its reruns are measured."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.airflow.notices import report_of
from streamgauge.app.nights import night as night_module
from streamgauge.app.nights import series as series_module
from streamgauge.app.nights.accepting import accept
from streamgauge.app.nights.night import Night
from streamgauge.app.nights.reruns import Subject, edited, in_turns, is_rerun, of_cell
from streamgauge.app.nights.series import Series, looks, searched
from streamgauge.base.jsonl import write_json
from streamgauge.base.units import Duration
from streamgauge.bench.answers import rerun
from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck, Suffered
from streamgauge.bench.measurements.search.stage import PER_UNIT, RATE
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Overrides
from streamgauge.records.result import Result
from streamgauge.records.series import Point, SeriesHead
from streamgauge.results.index import Index
from streamgauge.results.report import dashboard
from tests.index.example import judgement_rows
from tests.measure.benches import CELL, Bench, write_bench
from tests.measure.conftest import _alone_and_quick

__all__ = ["_alone_and_quick"]

P50, ROWS = "event_latency_ms_p50_at_50pct", "output_rows"
PAUSE = "longest_pause_s"  # of a package
NIGHTS, STEP = 24, 20
PLAN: dict[str, Any] = {
    "latency": {"fractions": [0.5], "seconds": 0.4},
    "search": {"max_age": "1s", "window_seconds": 0.3, "proof_steps": 0},
    "nightly": {"repetitions": [4], "self_tests": 0},
}


def write_nights(
    bench: Bench,
    level: float,
    factor: float,
    before: Bench | None = None,
    machine: str = "x",
    seconds: float = 0,
    pause_s: float = 0,
) -> None:
    """Latency around a level, times a factor from night STEP on; earlier nights have another benchmark."""
    for night in range(NIGHTS):
        run, at = f"n{night:02}", (datetime(2026, 3, 1, 2, tzinfo=UTC) + timedelta(days=night)).isoformat()
        value = level * (1 + 0.01 * (night * 7 % 5 - 2)) * (factor if night >= STEP else 1.0)
        as_it_was = before if before and night < STEP else bench
        result = CellRun(as_it_was.benchmark, bench.store, CELL, bench.store.run(run)).result
        figures = [(P50, "ms", value), (RATE, "events/s", 2000.0), (SECONDS, "s", seconds)]
        figures.append((PAUSE, "s", pause_s * value))
        for metric, unit, figure in (told for told in figures if told[2]):
            made = result(metric, unit, figure, at=at, machine={"cpu": machine}, software={"spark": "1"})
            results.append(bench.store.run(run), made)
        write_json(bench.store.run(run) / "benchmark.json", as_it_was.benchmark.model_dump(mode="json"))


def no_session() -> Any:
    raise AssertionError("the known system needs no Spark")


def night_of(bench: Bench) -> Night:
    index = Index(f"sqlite:///{bench.store.root / 'results.db'}")
    index.rebuild((bench.store.root / "runs").iterdir())
    return Night(bench.benchmark, bench.store, f"n{NIGHTS - 1}", index, no_session)


def test_a_setting_that_costs_is_confirmed_by_turns_of_both_settings_and_said_once(tmp_path: Any) -> None:
    before = write_bench(tmp_path, delay="100ms", **PLAN)
    bench = Bench(
        before.file,
        before.benchmark.model_copy(update={"systems": write_bench_systems(tmp_path, "1500ms")}),
        before.store,
    )
    write_nights(bench, 110.0, 1.9, before)
    (line,) = night_of(bench).judge()
    assert (line.state, line.what) == ("regression", f"b e all known streaming {P50}")
    assert line.said.startswith("+90.0 % since 2026-03-21; rerun against the settings of n19: +")
    assert "noise floor" in line.said
    assert "detectable effect" in line.said
    night = night_of(bench)
    (judged,) = judgement_rows(night.index)
    comparison = judged["evidence"]["comparison"]
    assert (judged["outcome"], judged["changed_at"]) == ("regression", "2026-03-21T02:00:00+00:00")
    assert (comparison["n_baseline"], comparison["n_candidate"]) == (4, 4)
    assert comparison["interval"][0] > 1.3
    report = json.loads((night.directory / "nightly.json").read_text())
    assert (report["state"], report["lines"][0]["state"]) == ("bad", "regression")
    [issue] = (night.directory / "issues").glob("*.md")
    *_, last = issue.read_text().splitlines()
    assert last.startswith("- setting delay of known: 100"), issue.read_text()
    assert night.judge() == [line], "of an attempt that died: said again, not measured again"
    accept(bench.store, night.index, judged["series_key"], reason="wanted", author="me")
    assert night.judge() == [], "what somebody has accepted is no longer bad"


def write_bench_systems(tmp_path: Any, delay: str) -> Any:
    place = tmp_path / "other"
    place.mkdir()
    return write_bench(place, delay=delay, **PLAN).benchmark.systems


def test_a_step_that_is_gone_when_rerun_is_refuted(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reruns are not measured here, but in the test above."""
    bench = write_bench(tmp_path, delay="100ms", **PLAN)
    write_nights(bench, 10_000.0, 1.5)
    figures = iter([109.0, 110.0, 111.0, 112.0])
    monkeypatch.setattr(night_module, "of_cell", lambda *_: lambda: {P50: next(figures)})
    (line,) = night_of(bench).judge()
    assert line.state == "refuted", line
    assert "rerun against the nights before: -9" in line.said


def test_an_edited_workload_is_no_regression_of_the_system(tmp_path: Any) -> None:
    before = write_bench(tmp_path, delay="100ms", **PLAN)
    (workload,) = before.benchmark.workloads
    wider = workload.model_copy(update={"watermark": Duration.parse("9s")})
    bench = Bench(before.file, before.benchmark.model_copy(update={"workloads": (wider,)}), before.store)
    write_nights(bench, 110.0, 1.9, before)
    night = night_of(bench)
    (line,) = night.judge()
    assert (line.state, line.said) == (
        "open", "+90.0 % since 2026-03-21; not rerun: the benchmark is not what it was in n19 (workload all)",
    )  # fmt: skip
    assert [j["outcome"] for j in judgement_rows(night.index)] == ["open"]


@pytest.mark.parametrize("key", ["search", "latency"])
def test_other_settings_of_a_measurement_are_no_regression_either(tmp_path: Path, key: str) -> None:
    before = write_bench(tmp_path, **PLAN)
    changed = {"search": {"max_age": "2s"}, "latency": {"seconds": 3}}[key]
    bench = write_bench(tmp_path, **{**PLAN, key: {**PLAN[key], **changed}})
    write_nights(bench, 110.0, 1.9, before)
    (line,) = night_of(bench).judge()
    why = f"the benchmark is not what it was in n19 ({key})"
    assert (line.state, line.said) == ("open", f"+90.0 % since 2026-03-21; not rerun: {why}")
    suite = Subject(CELL.experiment, CELL.workload, CELL.system, "streaming", suite=True)
    assert edited(before.benchmark, bench.benchmark, suite) == [], "it changes no answer's seconds"


@pytest.mark.parametrize("record", [None, '{"version": 1, "name": '])
@pytest.mark.parametrize("metric", [P50, PAUSE])
def test_a_night_compares_with_no_run_whose_settings_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str | None, metric: str
) -> None:
    bench = write_bench(tmp_path, **PLAN)
    write_nights(bench, 1.0, 1.9, pause_s=0.1)
    monkeypatch.setattr(night_module, "searched", lambda some: [one for one in some if one.head.metric == metric])
    kept = bench.store.run(f"n{STEP - 1}") / "benchmark.json"
    kept.unlink() if record is None else kept.write_text(record)
    (line,) = night_of(bench).judge()
    assert line.state == "open"
    what = ": this run has no readable benchmark.json" if record is None else "/benchmark.json: "
    assert line.said.startswith(f"+90.0 % since 2026-03-21; not rerun: {kept.parent}{what}")
    assert len(line.said.splitlines()) == 1


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.usefixtures("plugin")
def test_figures_of_packages_are_watched_and_not_rerun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    settings: dict[str, Any] = {**PLAN, "nightly": {"repetitions": [4], "self_tests": 1}}
    before = write_bench(tmp_path, **settings, example_pauses={"rate": 1000})
    bench = write_bench(tmp_path, **settings, example_pauses={"rate": 2000 if changed else 1000})
    write_nights(bench, 1.0, 1.9, before, pause_s=0.1)
    monkeypatch.setattr(night_module, "searched", lambda some: [one for one in some if one.head.metric == PAUSE])
    rerun_metrics: list[str] = []

    def of_known(_benchmark: Any, _store: Any, _subject: Any, metrics: Any, *_: Any) -> Any:
        rerun_metrics.extend(metrics)
        return lambda: dict.fromkeys(metrics, 2.0)

    monkeypatch.setattr(night_module, "of_cell", of_known)
    night = night_of(bench)
    lines = night.judge()
    assert sorted(rerun_metrics) == [P50, RATE], "the A/A comparison leaves it out"
    (line,) = [line for line in lines if line.state != "self"]
    why = "the benchmark is not what it was in n19 (section example_pauses)" if changed else night_module.OF_OTHERS
    assert (line.state, line.what) == ("open", f"b e all known streaming {PAUSE}")
    assert line.said == f"+90.0 % since 2026-03-21; not rerun: {why}"
    (key,) = (head.key for head in night.index.series(metric=PAUSE))
    assert [judged["outcome"] for judged in judgement_rows(night.index, key)] == ["open"]
    subject = Subject(CELL.experiment, CELL.workload, CELL.system, "streaming")
    assert edited(before.benchmark, bench.benchmark, subject) == [], "the package's section changes no latency"


def test_what_a_rerun_measures() -> None:
    own = (P50, "event_latency_ms_max_at_500_per_s", "system_cpu_us_per_event_at_90pct", RATE, PER_UNIT, SECONDS)
    others = (PAUSE, "longest_pause_s_at_50pct", "event_latency_ms_mean_at_50pct", "event_latency_ms_p50", "")
    assert ([is_rerun(one) for one in own], [is_rerun(one) for one in others]) == ([True] * 6, [False] * 5)


def test_a_self_test_stands_beside_the_series_and_the_oldest_is_next(tmp_path: Any) -> None:
    bench = write_bench(
        tmp_path, delay="100ms", capacity=40_000, **{**PLAN, "nightly": {"repetitions": [4], "self_tests": 1}}
    )
    write_nights(bench, 110.0, 1.0)
    night = night_of(bench)
    lines = night.judge()
    assert {(line.state, line.what.rpartition(" ")[2]) for line in lines} == {("self", P50), ("self", RATE)}
    assert all("noise floor" in line.said for line in lines)
    (key,) = (head.key for head in night.index.series(metric=RATE))
    (rate,) = judgement_rows(night.index, key)
    assert rate["outcome"] == "self"
    assert len(rate["evidence"]["baseline"]) == len(rate["evidence"]["candidate"]) == 4


def test_a_cell_and_a_query_of_one_name_are_tested_apart(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = write_bench(
        tmp_path, delay="100ms", capacity=40_000, **{**PLAN, "nightly": {"repetitions": [4], "self_tests": 2}}
    )
    write_nights(bench, 110.0, 1.0, seconds=2.0)
    monkeypatch.setattr(rerun, "seconds", lambda *_: {SECONDS: 2.0})
    monkeypatch.setattr(night_module, "of_cell", lambda *_: lambda: {P50: 110.0, RATE: 2000.0})
    night = replace(night_of(bench), session=lambda: None)  # type: ignore[arg-type,return-value]
    said = {line.what.rpartition(" ")[2]: line.said for line in night.judge()}
    assert set(said) == {P50, RATE, SECONDS}
    assert all(line.startswith("A/A: +0.0 %") for line in said.values())


def test_another_machine_of_the_same_database_has_its_own_nights(tmp_path: Any) -> None:
    bench = write_bench(tmp_path, delay="100ms", **PLAN)
    other = Bench(bench.file, bench.benchmark, Store(tmp_path / "other"))
    write_nights(bench, 110.0, 1.0)
    write_nights(other, 110.0, 1.9, machine="y")
    night = night_of(bench)
    for run in (other.store.root / "runs").iterdir():  # of the same ids
        night.index.add_run(run)
    assert night.judge() == []
    assert {(head.machine["cpu"], head.metric) for head in night.index.series()} == {
        ("x", P50), ("x", RATE), ("y", P50), ("y", RATE),
    }  # fmt: skip


def test_answers_and_failed_stages_are_errors_at_once(tmp_path: Any) -> None:
    bench = write_bench(tmp_path, **PLAN)
    write_nights(bench, 110.0, 1.0)
    run = bench.store.run(f"n{NIGHTS - 1}")
    about = ("b", "e", "q5", "spark", "batch")
    for name, metric, value in (
        ("n22", ROWS, 7.0),
        ("n23", ROWS, 8.0),
        ("n22", "output_supported", 1.0),
        ("n23", "output_supported", 0.0),
    ):
        made = Result(
            *about, metric, "rows", value, name, "c", at=f"2026-03-{name[1:]}T03:00:00+00:00", machine={}, software={}
        )
        results.append(bench.store.run(name), replace(made, reason="no such query" if value == 0 else ""))
    with pytest.raises(KeyError), RunLog(run).stage("latency", {"experiment": "e"}):
        raise KeyError("lost")
    assert [str(line) for line in night_of(bench).judge()] == [
        "failed: latency e: KeyError: 'lost'",
        "error: b e q5 spark batch output_rows: output changed from 7 to 8",
        "error: b e q5 spark batch output_supported: no longer supported (no such query)",
    ]


def add(bench: Bench, night: int, metric: str, value: float | None, **more: Any) -> None:
    """Adds a figure of a measurement to a night."""
    run, at = bench.store.run(f"n{night:02}"), (datetime(2026, 3, 1, 3, tzinfo=UTC) + timedelta(days=night)).isoformat()
    made = CellRun(bench.benchmark, bench.store, CELL, run).result
    results.append(run, made(metric, "s", value, at=at, machine={"cpu": "x"}, software={"spark": "1"}, **more))


def test_a_night_whose_answers_are_wrong_after_a_kill_is_bad_and_tells_what_is_void(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, **PLAN, recovery={})
    write_nights(bench, 110.0, 1.0)
    why = "its answers were wrong in 2 of 2: 1,200 lost"
    for number in range(NIGHTS):
        last = {"valid": False, "reason": why} if number == NIGHTS - 1 else {}
        add(bench, number, "recovery_kill_wrong", 2.0 if last else 0.0)
        add(bench, number, "recovery_kill_seconds", None if last else 2.0, **last)
        add(bench, number, "recovery_cut_seconds", 2.0)
    night = night_of(bench)
    lost, whole = Struck(valid=False, correct=False, wrong="w", lost=600), Struck(valid=True, back_s=2.0, correct=True)
    faults = Suffered(fault="kill", trials=(lost, lost)), Suffered(fault="cut", trials=(whole, whole))
    cell = night.directory / "cells" / CELL.name
    cell.mkdir(parents=True)
    RecoveryRun(
        plan="p", fraction=None, rate_events_per_s=1.0, seconds=60, cut_seconds=2, max_age_s=1, faults=faults
    ).write(cell / "recovery.json")
    assert [str(line) for line in night.judge()] == [
        "error: b e all known recovery (kill): the answers were wrong",
        f"missing: b e all known streaming: recovery_kill_seconds: void: {why}; n22 had it",
    ]
    assert json.loads((night.directory / "nightly.json").read_text())["state"] == "bad"


def test_a_void_figure_is_told_if_it_was_sound_before_and_the_benchmark_was_the_same(tmp_path: Path) -> None:
    other, edited, bench = (
        write_bench(tmp_path, **PLAN, capacity=capacity, recovery={"seconds": seconds})
        for capacity, seconds in ((4000, 20), (2000, 60), (2000, 20))
    )
    write_nights(bench, 110.0, 1.0)
    void = {"valid": False, "reason": "it died"}
    for number in range(NIGHTS):
        last, is_late = number == NIGHTS - 1, number >= NIGHTS - 2
        add(bench, number, "catchup_seconds", None if last else 9.0, **(void if last else {}))
        add(bench, number, "catchup_hour_seconds", None if is_late else 9.0, **(void if is_late else {}))
        add(bench, number, "soak_disk_per_hour", None if last else 0.1, reason="too few samples" if last else "")
        add(bench if last else other, number, "recovery_kill_seconds", None if last else 2.0, **(void if last else {}))
        add(bench, number, "event_latency_ms_p99_at_50pct", None if is_late else 9.0, **(void if is_late else {}))
        if number < STEP:
            add(bench, number, "scaling_contention", 0.1)
    night = night_of(bench)
    cell = "missing: b e all known streaming"
    of_others = f"{cell}: catchup_seconds, recovery_kill_seconds: void: it died; n22 had them"
    watched = f"{cell}: event_latency_ms_p99_at_50pct: void: it died; n21 had it"
    assert [str(line) for line in night.judge()] == [of_others, watched]
    assert json.loads((night.directory / "nightly.json").read_text())["state"] == "open"
    before = bench.store.run("n22") / "benchmark.json"
    for then, lines in ((other, [of_others, watched]), (edited, [watched])):
        write_json(before, then.benchmark.model_dump(mode="json"))
        assert [str(line) for line in night.judge()] == lines


def test_a_stage_that_never_began_is_no_good_night(tmp_path: Any) -> None:
    bench = write_bench(tmp_path, **PLAN)
    write_nights(bench, 110.0, 1.0)
    (line,) = replace(night_of(bench), missing=["search e all known"]).judge()
    assert str(line) == "failed: search e all known: never started"


def test_a_night_that_dies_while_it_is_judged_is_told_of(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = write_bench(tmp_path, **PLAN)
    write_nights(bench, 110.0, 1.0)
    night = night_of(bench)
    run = night.directory

    def stage() -> None:
        with RunLog(run).stage("regressions", {}):
            night.judge()

    with monkeypatch.context() as patch:
        patch.setattr(Night, "_suspects", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space left"):
            stage()
    notice = report_of(bench.benchmark, run)
    assert (notice.state, notice.lines[-1].said) == ("bad", "OSError: no space left")
    stage()
    assert report_of(bench.benchmark, run).state == "good"


def test_nights_at_a_first_look_are_series_of_their_own(tmp_path: Path) -> None:
    careful = write_bench(tmp_path, **PLAN)
    quick = Bench(careful.file, Overrides(quick=True, processes=2).apply(careful.benchmark), careful.store)
    write_nights(quick, 110.0, 1.9, careful)
    night = night_of(quick)
    assert night.judge() == []
    lengths = {head.mode: len(night.index.history(head.key)) for head in night.index.series(metric=P50)}
    assert lengths == {"streaming": STEP, "quick": NIGHTS - STEP}


def test_more_suspects_than_a_night_may_rerun_wait(tmp_path: Any) -> None:
    bench = write_bench(tmp_path, **{**PLAN, "nightly": {"max_reruns": 0, "self_tests": 0}})
    write_nights(bench, 110.0, 1.5)
    night = night_of(bench)
    (line,) = night.judge()
    assert (line.state, line.said) == ("waiting", "+50.0 % since 2026-03-21; not rerun tonight")
    assert judgement_rows(night.index) == []


def test_the_page_of_all_nights_reads_what_the_night_saw(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = write_bench(tmp_path, **{**PLAN, "nightly": {"max_reruns": 0, "self_tests": 0}})
    write_nights(bench, 110.0, 1.5)
    night = night_of(bench)
    (line,) = night.judge()
    key = next(head.key for head in night.index.series(metric=P50))
    at, look = night.index.looks()[key]
    assert datetime.fromisoformat(at) > datetime(2026, 3, 24, tzinfo=UTC)
    assert [(step.at, round(step.magnitude, 2)) for step in look.steps] == [("2026-03-21T02:00:00+00:00", 0.5)]
    monkeypatch.setattr(series_module, "find", lambda *_, **__: pytest.fail("a page looks for no change"))
    seen = looks(night.index)
    (shown,) = dashboard.build(night.index, tmp_path / "page.html", seen)
    assert shown.startswith(f"b e all known streaming {P50}: +50.0\u202f% since 2026-03-21")
    assert line.said.startswith("+50.0 % since 2026-03-21")
    night.index.rebuild((bench.store.root / "runs").iterdir())
    assert looks(night.index) == seen, "the records have it"


def test_a_rerun_measures_at_parts_of_the_rate_and_at_rates_of_all_cells(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = {"fractions": [0.2, 0.5, 0.9], "rates": [500], "seconds": 0.4}
    bench = write_bench(tmp_path, **{**PLAN, "latency": loads})
    subject = Subject(CELL.experiment, CELL.workload, CELL.system, "streaming")
    offered = []
    trial = ReadyCell.trial

    def told(self: ReadyCell, rate: float, *more: Any, **named: Any) -> Any:
        offered.append(rate)
        return trial(self, rate, *more, **named)

    monkeypatch.setattr(ReadyCell, "trial", told)
    at_500 = "system_cpu_us_per_event_at_500_per_s"
    for metrics, loads_of in ([P50], [400, 1000]), ([P50, at_500], [400, 1000, 1800, 500]):
        offered.clear()
        assert set(of_cell(bench.benchmark, bench.store, subject, metrics, 2000.0, "n")()) == set(metrics)
        assert offered == pytest.approx(loads_of), "a trial of the night followed the same trials"


def test_turns_alternate() -> None:
    order: list[str] = []

    def side(name: str) -> Any:
        return lambda: order.append(name) or {"m": float(len(order))}

    assert in_turns(side("a"), side("b"), 2) == ([{"m": 1.0}, {"m": 3.0}], [{"m": 2.0}, {"m": 4.0}])
    assert order == ["a", "b", "a", "b"]


def series_of(metric: str, points: int, workload: str = "q") -> Series:
    head = SeriesHead("k", "b", "e", workload, "s", "streaming", metric, "u", {})
    point = Point("r", 0, "k", "2026-03-01", 1.0, None, None, 1, True, "", "c", {}, "")
    return Series(head, [point] * points, [])


def test_changes_are_looked_for_in_the_rate_per_yardstick_unit_once_it_has_points_enough() -> None:
    p50, rate, per_unit = series_of(P50, 20), series_of(RATE, 20), series_of(PER_UNIT, 8)
    other, few = series_of(RATE, 20, "other"), series_of(PER_UNIT, 7, "other")
    assert searched([p50, rate, per_unit, other, few]) == [p50, per_unit, other]
