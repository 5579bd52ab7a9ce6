"""A night of the known system: its history is written by hand, its reruns are measured."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.nights import night as night_module
from streamgauge.app.nights import series as series_module
from streamgauge.app.nights.accepting import accept
from streamgauge.app.nights.reruns import Subject, edited
from streamgauge.app.nights.series import Series, looks, searched
from streamgauge.base.units import Duration
from streamgauge.bench.measurements.search.stage import PER_UNIT, RATE
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Overrides
from streamgauge.records.series import Point, SeriesHead
from streamgauge.results.report import dashboard
from tests.index.example import judgement_rows
from tests.judge.nights import NIGHTS, P50, PAUSE, PLAN, STEP, night_of, write_nights
from tests.measure.benches import CELL, Bench, write_bench
from tests.measure.conftest import _alone_and_quick

__all__ = ["_alone_and_quick"]


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
    other: dict[str, dict[str, Any]] = {"search": {"max_age": "2s"}, "latency": {"seconds": 3}}
    bench = write_bench(tmp_path, **{**PLAN, key: {**PLAN[key], **other[key]}})
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


def series_of(metric: str, points: int, workload: str = "q") -> Series:
    head = SeriesHead("k", "b", "e", workload, "s", "streaming", metric, "u", {})
    point = Point("r", 0, "k", "2026-03-01", 1.0, None, None, 1, True, "", "c", {}, "")
    return Series(head, [point] * points, [])


def test_changes_are_looked_for_in_the_rate_per_yardstick_unit_once_it_has_points_enough() -> None:
    p50, rate, per_unit = series_of(P50, 20), series_of(RATE, 20), series_of(PER_UNIT, 8)
    other, few = series_of(RATE, 20, "other"), series_of(PER_UNIT, 7, "other")
    assert searched([p50, rate, per_unit, other, few]) == [p50, per_unit, other]
