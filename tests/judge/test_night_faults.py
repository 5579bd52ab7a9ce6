"""Nights with faults: wrong answers, stages that fail or never began, figures that are void."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.airflow.notices import report_of
from streamgauge.app.nights.night import Night
from streamgauge.base.jsonl import write_json
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck, Suffered
from streamgauge.bench.measurements.soak.record import Followed, SoakRun
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.result import Result
from streamgauge.stats.trend import Full, Kind
from tests.judge.nights import NIGHTS, PLAN, STEP, night_of, write_nights
from tests.measure.benches import CELL, Bench, write_bench


def test_answers_and_failed_stages_are_errors_at_once(tmp_path: Any) -> None:
    bench = write_bench(tmp_path, **PLAN)
    write_nights(bench, 110.0, 1.0)
    run = bench.store.run(f"n{NIGHTS - 1}")
    about = ("b", "e", "q5", "spark", "batch")
    for name, metric, value in (
        ("n22", "output_rows", 7.0),
        ("n23", "output_rows", 8.0),
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
    why = "its answers were wrong in 2 of 2: 1,200 lost; broken promise: at least once"
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


def test_a_growth_that_begins_is_told_with_its_rate_and_leaves_the_night_open(tmp_path: Path) -> None:
    """Disk has always grown, memory begins to, files begin to after a night that was not clear; a void soak is none."""
    bench = write_bench(tmp_path, **PLAN, soak={})
    write_nights(bench, 110.0, 1.0)
    course: dict[str, tuple[Kind, Kind, Kind]] = {
        "disk": ("growing", "growing", "growing"),
        "resident_memory": ("level", "level", "growing"),
        "open_files": ("level", "not clear", "growing"),
        "state_bytes": ("not clear", "not clear", "growing"),
    }
    full = Full(hours=12.0, low=9.0, high=20.0)
    for number, nth in ((20, 0), (21, 1), (22, 2), (23, 2)):
        valid = number != 22
        kinds = {name: each[nth] for name, each in course.items()}
        for name, kind in kinds.items():
            value = 9.0 if valid and kind != "not clear" else None
            add(bench, number, f"soak_{name}_per_hour", value, valid=valid, reason="" if valid else "it died")
        series = tuple(
            Followed(name=name, unit="B", kind=kind, samples=90, apart=9, per_hour=2e6, low=1e6, high=3e6, full=full)
            for name, kind in kinds.items()
        )
        place = bench.store.run(f"n{number}") / "cells" / CELL.name
        place.mkdir(parents=True)
        SoakRun(
            plan="p", fraction=None, rate_events_per_s=1, seconds=60, outcome="sustainable", valid=valid, series=series
        ).write(place / "soak.json")
    night = night_of(bench)
    rate = "grows by 2e+06 B an hour, full after 12 h"
    lines = [
        f"open: b e all known streaming soak_open_files_per_hour: open_files {rate}; it was level in n20",
        f"open: b e all known streaming soak_resident_memory_per_hour: resident_memory {rate}; it was level in n21",
    ]
    assert sorted(map(str, night.judge())) == lines
    assert json.loads((night.directory / "nightly.json").read_text())["state"] == "open"
    assert sorted(map(str, night.judge())) == lines, "judged again after a kill"


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
