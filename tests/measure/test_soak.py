"""The measurement soak with the known system, which leaks as much memory as it is told."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import psutil
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.driver.system import Adapter
from streamgauge.bench.engines.processes import open_files
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measure.vitals import Vitals, disk_bytes
from streamgauge.bench.measurements import USUAL
from streamgauge.bench.measurements.soak.record import SoakRun
from streamgauge.bench.measurements.soak.stage import followed, sentence_of
from streamgauge.catalog.stages import BY_NAME, stages_of
from streamgauge.config.benchmark import Overrides
from streamgauge.records.driver import DriverFigures
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Hole, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from tests.measure.benches import CELL, EVENTS, Bench, write_bench
from tests.measure.killed import killed_and_measured_again

MIB = 2**20


def bench_of(place: Path, leak: str = "0", ms: Sequence[int] | None = None, **section: Any) -> Bench:
    """A system that carries 40,000 events/s and leaks so many bytes a second; ms: event times."""
    asked = {"rate": 2000, "minutes": 0.4, "every_seconds": 0.5, **section}
    known = {
        "name": "known",
        "engine": "known",
        "capacity": 40_000,
        "trigger": "50ms",
        "batch_rows": 2000,
        "leak": leak,
    }
    return write_bench(place, systems=[known], soak=asked, ms=ms)


def soaked(bench: Bench) -> SoakRun:
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    measure("soak", cell_run)
    return SoakRun.read(cell_run.directory / "soak.json")


def judged_of(run: SoakRun) -> int:
    return sum(one.kind != "not clear" for one in run.series)


def test_a_known_leak_is_found_with_its_rate_and_all_else_is_level(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "4 MiB")
    run = soaked(bench)
    assert (run.valid, run.reason.count("invalid")) == (True, 0)
    assert [one.name for one in run.growing] == ["resident_memory"], sentence_of(run)
    [memory] = run.growing
    assert memory.per_hour is not None
    assert memory.per_hour == pytest.approx(3600 * 4 * MIB, rel=0.1)
    assert memory.low is not None
    assert memory.high is not None
    assert memory.low <= memory.per_hour <= memory.high
    assert memory.full is not None
    assert memory.limit is not None
    assert memory.level is not None
    assert memory.full.hours == pytest.approx((memory.limit - memory.level) / memory.per_hour)
    assert {"age", "event_latency_p50", "event_latency_p99", "open_files", "disk"} <= {one.name for one in run.series}
    assert set(run.unknown) == {"state_rows", "state_bytes", "heap_after_collection"}
    figures = {one["metric"]: one for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    known = {one.name: figures[f"soak_{one.name}_per_hour"] for one in run.series}
    assert {name for name, one in known.items() if one["value"] is None} == {
        one.name for one in run.series if one.kind == "not clear"
    }
    assert all(one["valid"] for one in known.values()), "a soak is sound where a series is not clear"
    grown = known["resident_memory"]
    assert (grown["value"], grown["unit"], grown["valid"]) == (memory.per_hour, "bytes/h", True)
    assert (grown["low"], grown["high"]) == (memory.low, memory.high)
    records = Records(bench.benchmark, bench.store, "r")
    shown = cells_section.section(records).parts[0].blocks
    [tiles] = [block for block in shown if isinstance(block, Tiles)]
    assert tiles.tiles[0] == ("grows in a long run", f"1 of {judged_of(run)}", "resident memory")
    [table] = [block for block in shown if isinstance(block, Table)]
    judged = {plain(row[0]): plain(row[3]) for row in table.rows}
    assert judged == {one.name.replace("_", " "): one.kind for one in run.series}
    void = SoakRun.model_validate({**dict(run), "valid": False, "correct": False, "reason": "wrong: 3 lost"})
    assert (void.growing, sentence_of(void)) == ([], "invalid: wrong: 3 lost")
    for changed, told, judged_so in (
        (void, ("\u2014", "wrong: 3 lost"), {("void", *["\u2014"] * 3)}),
        (run.model_copy(update={"series": ()}), ("\u2014", "no series could be judged"), set()),
    ):
        changed.write(bench.store.run("r") / "cells" / CELL.name / "soak.json")
        shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
        assert [block.tiles[0][1:] for block in shown if isinstance(block, Tiles)] == [told]
        [table] = [block for block in shown if isinstance(block, Table)]
        assert {tuple(plain(cell) for cell in row[3:]) for row in table.rows} == judged_so


@pytest.mark.prove
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("leak", "grows"), [("0", []), ("512 KiB", ["resident_memory"])])
def test_a_soak_of_six_days_within_twenty_minutes_finds_the_leak_and_nothing_else(
    tmp_path: Path, leak: str, grows: list[str]
) -> None:
    """An event each 216 ms of event time, 432 times as fast. With SOAK_MINUTES=3 in the environment it is shorter."""
    minutes = float(os.environ.get("SOAK_MINUTES", "20"))
    asked = {"rate": 2000, "minutes": minutes, "every_seconds": 2}
    run = soaked(bench_of(tmp_path, leak, ms=range(0, 216 * EVENTS, 216), **asked))
    days = run.offered * 0.216 / 86400
    assert run.valid, run.reason
    assert days == pytest.approx(6 * minutes / 20, rel=0.05)
    assert [one.name for one in run.growing] == grows, sentence_of(run)
    assert {one.name: one.kind for one in run.series}["age"] == "level"
    for memory in run.growing:
        assert memory.per_hour == pytest.approx(3600 * 2**19, rel=0.1)
        assert memory.full is not None


def test_a_soak_that_was_killed_leaves_nothing_behind_and_is_measured_again(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, minutes=0.1)  # long enough to be killed in; what it finds is tested above
    cell, metrics = killed_and_measured_again(bench, "soak", lambda cell: [*cell.glob("work/trial-*")])
    assert SoakRun.read(cell / "soak.json").valid
    assert len(metrics) > 4


def test_only_a_file_with_the_section_has_the_stage_and_its_time_is_in_the_plan(tmp_path: Path) -> None:
    with_it = bench_of(tmp_path, minutes=20).benchmark
    names = [stage.name for stage in stages_of(with_it)]
    assert names[names.index("search") :] == ["search", "latency", "soak", "report"]
    assert timing.stage_seconds(BY_NAME["soak"], with_it, USUAL) == 1200 + 2 * USUAL.start_s  # there is no warm-up
    quick = Overrides(quick=True).apply(with_it)
    assert quick.soak is not None
    assert (quick.soak.minutes, quick.soak.rate) == (1.0, 2000)
    without = write_bench(tmp_path).benchmark
    assert "soak" not in [stage.name for stage in stages_of(without)]
    assert all("soak" not in stage.reads for stage in stages_of(without))
    assert without.model_dump(mode="json")["soak"] is None


def test_without_a_rate_it_says_what_to_do(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, rate=None)
    with pytest.raises(
        UserError, match=r"^e\.all\.known: no sustainable rate of this run; run the stage search first$"
    ):
        soaked(bench)
    records = Records(bench.benchmark, bench.store, "r")
    holes = [block.what for block in cells_section.section(records).parts[0].blocks if isinstance(block, Hole)]
    assert "No soak" in holes


def test_a_heap_is_judged_by_what_collections_leave() -> None:
    """A heap fills within 20 s and is collected; 1 MiB more is left each minute. Then one is never collected."""
    noise = np.random.default_rng(1).uniform(0, 2, 600)  # allocated since the collection
    points = [(2.0 * n, MIB * (100 + 50 * (n % 10) / 10 + 2 * n / 60 + noise[n])) for n in range(600)]
    found = followed("heap_after_collection", points, 512.0 * MIB, 9, [n // 10 for n in range(600)])
    ramp = [(at, MIB * (100 + at / 60)) for at, _ in points]
    never, rarely = (
        followed("heap_after_collection", ramp, 512.0 * MIB, 9, [n // each for n in range(600)]) for each in (600, 50)
    )
    least = "at least 16 are needed"
    assert [(one.kind, one.reason, one.full, one.per_hour) for one in (never, rarely)] == [
        ("not clear", f"0 of 600 samples follow a collection; 0 samples, {least}", None, None),
        ("not clear", f"11 of 600 samples follow a collection; 8 samples, {least}", None, None),
    ]
    assert found.kind == "growing"
    assert found.per_hour == pytest.approx(60 * MIB, rel=0.1)
    assert found.full is not None
    assert found.full.hours == pytest.approx((512 - 120) / 60, rel=0.1)


@pytest.mark.parametrize(("group", "memory"), [(None, 730.0), (500, 500.0)])
def test_a_limit_is_what_this_system_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int | None, memory: float
) -> None:
    """Others hold the rest of the host's memory, and processes have limits of their own."""
    shell, pipe = ["sh", "-c", "echo; read line"], subprocess.PIPE
    with subprocess.Popen(shell, stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        child.stdout.readline()  # while it starts, it has its libraries open
        try:
            own = psutil.Process(child.pid)
            own.rlimit(psutil.RLIMIT_NOFILE, (77, 80))
            files = open_files([own])
            of_two = open_files([own, psutil.Process()])
        finally:
            child.kill()
    assert files == {"open_files": 3, "open_files_limit": 77}
    assert of_two["open_files_limit"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0], "this one has more files"
    assert open_files([own]) == {}, "it has ended"
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=700, total=9000))
    monkeypatch.setattr("streamgauge.bench.measure.vitals.memory_limit", lambda: group)
    told = {"resident_memory": 30, "heap": 5, "heap_limit": 64, "collections": 2, **files}
    vitals = Vitals(1.0)
    adapter = cast(Adapter, SimpleNamespace(vitals=lambda: told))
    soon = time.time_ns() + 8 * 10**9
    vitals(adapter, tmp_path, [cast(DriverFigures, {"state": "started", "start_wall_ns": soon})])
    assert not vitals.series, "nothing is offered before the start"
    vitals(adapter, tmp_path, [cast(DriverFigures, {"state": "started", "start_wall_ns": time.time_ns()})])
    del vitals.limits["disk"]
    assert vitals.limits == {"resident_memory": memory, "heap_after_collection": 64, "open_files": 77}
    assert {name: one for name, [(_, one)] in vitals.series.items()} == {
        "resident_memory": 30, "heap_after_collection": 5, "collections": 2, "open_files": 3, "disk": 0,
    }  # fmt: skip


def test_the_disk_of_a_folder_is_that_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"x" * 100_000)
    (tmp_path / "c.jsonl").write_bytes(b"x" * 50_000)  # the system's own
    (tmp_path / "watermarks-0.jsonl").write_bytes(b"x" * 70_000)  # an account of ours
    (tmp_path / "events-0.arrow").write_bytes(b"x" * 60_000)  # rows that a job's publisher keeps
    counted = [str(tmp_path / "a" / "b"), str(tmp_path / "c.jsonl")]
    listed = subprocess.run(["du", "-s", "-B1", *counted], capture_output=True)
    assert disk_bytes(tmp_path) == sum(int(line.split()[0]) for line in listed.stdout.splitlines())
    assert disk_bytes(tmp_path / "gone") == 0


def test_one_sentence_says_what_grows_and_when_it_is_full() -> None:
    points = [(2.0 * n, 100.0 + n) for n in range(100)]
    files = followed("open_files", points, 1100.0, 1)
    given = {"plan": "p", "fraction": None, "rate_events_per_s": 1.0, "seconds": 200.0, "outcome": "sustainable"}
    run = SoakRun.model_validate({**given, "valid": True, "series": (files,)})
    assert sentence_of(run) == "open_files grows by 1800 files an hour, full after 0.502 h"
    level, open_ = (files.model_copy(update={"kind": kind}) for kind in ("level", "not clear"))
    said = [sentence_of(run.model_copy(update={"series": one})) for one in ((level,), (level, open_), (open_,), ())]
    not_clear = "it is not clear whether anything grows"
    assert said == ["nothing grows", "nothing grows; not clear: open_files", f"{not_clear}: open_files", not_clear]
    assert sentence_of(run.model_copy(update={"valid": False, "reason": "it died"})) == "invalid: it died"
    assert json.loads(run.model_dump_json())["series"][0]["kind"] == "growing"
