"""The measurement recovery with the known system, whose pause after a kill and whose losses are known."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.driver.conversation import Ended
from streamgauge.bench.driver.queue import Queue
from streamgauge.bench.driver.system import Adapter, Capabilities, Endpoint
from streamgauge.bench.engines.spark.progress import joined, planned_in
from streamgauge.bench.faults.course import Course, course
from streamgauge.bench.faults.link import Link
from streamgauge.bench.faults.strike import Strike, spared
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measurements.recovery.record import RecoveryRun
from streamgauge.bench.measurements.recovery.section import Recovery
from streamgauge.bench.measurements.recovery.stage import instants
from streamgauge.bench.search.estimate import spread_of
from streamgauge.catalog.stages import BY_NAME, stages_of
from streamgauge.records.driver import TrialStatus
from streamgauge.records.measurement import Sample
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Note, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from tests.measure.benches import CELL, Bench, write_bench
from tests.measure.killed import killed_and_measured_again


def bench_of(place: Path, section: dict[str, Any], **system: Any) -> Bench:
    """A system that carries 8,000 events/s, of which 4,000 come, so each second works one off."""
    known = {
        "name": "known", "engine": "known", "capacity": 8000, "trigger": "50ms", "batch_rows": 1000,
        "commits": "answered", "restart": "2s", "reconnect": "30s", **system,
    }  # fmt: skip
    return write_bench(
        place, systems=[known], recovery={"rate": 4000, **section}, search={"max_age": "500ms"},
    )  # fmt: skip


def recovered(bench: Bench) -> RecoveryRun:
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    measure("recovery", cell_run)
    return RecoveryRun.read(cell_run.directory / "recovery.json")


def test_a_known_pause_is_found(tmp_path: Path) -> None:
    """The short relative of those that are proved below."""
    [kill] = recovered(bench_of(tmp_path, {"seconds": 5, "repeats": 1, "faults": ["kill"]}, restart="600ms")).faults
    [trial] = kill.trials
    assert (trial.valid, trial.correct, trial.lost, trial.doubled) == (True, True, 0, 0), trial
    assert trial.taken_again_s == pytest.approx(0.6, abs=0.4)


@pytest.mark.prove
def test_known_pauses_are_found_and_answers_are_whole(tmp_path: Path) -> None:
    """A pause of P s makes the age P s, which then falls by a second each second down to the bound of 0.5 s."""
    bench = bench_of(tmp_path, {"seconds": 14, "cut_seconds": 1.5, "repeats": 1})
    run = recovered(bench)
    kill, restart, cut = run.faults
    assert restart.unmeasurable == "it has no worker"
    for fault, pause_s in ((kill, 2.0), (cut, 1.5)):
        [trial] = fault.trials
        assert (trial.valid, trial.correct, trial.lost, trial.doubled) == (True, True, 0, 0), trial
        assert trial.struck_s is not None
        assert 3.5 <= trial.struck_s <= 7.3
        assert trial.taken_again_s == pytest.approx(pause_s, abs=0.4)
        assert trial.peak_age_s == pytest.approx(pause_s, abs=0.4)
        assert trial.back_s == pytest.approx(2 * pause_s - 0.5, abs=1.0)
    assert kill.trials[0].read_again is not None
    assert kill.trials[0].read_again > 0, "what was taken and not answered"
    figures = {one["metric"]: one for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    assert {name for name in figures if "_restart_" in name} == set()
    assert (figures["recovery_kill_seconds"]["value"], figures["recovery_kill_wrong"]["value"]) == (
        kill.trials[0].back_s,
        0,
    )
    records = Records(bench.benchmark, bench.store, "r")
    shown = cells_section.section(records).parts[0].blocks
    [tiles] = [block for block in shown if isinstance(block, Tiles)]
    assert tiles.tiles[-1] == ("answers", "right", "through all faults")
    costs, trials = [block for block in shown if isinstance(block, Table)]
    assert [plain(row[0]) for row in costs.rows] == ["system killed", "link cut"]
    [note] = [block for block in shown if isinstance(block, Note)]
    assert "worker killed: not measurable: it has no worker" in note.text
    assert len(trials.rows) == 2


@pytest.mark.prove
def test_a_system_that_commits_before_it_answers_is_caught(tmp_path: Path) -> None:
    """Answers take half a second, so a kill loses those of half a second at least."""
    section = {"seconds": 8, "repeats": 2, "faults": ["kill"], "cut_seconds": 1}
    bench = bench_of(tmp_path, section, commits="taken", delay="500ms", restart="1s")
    [kill] = recovered(bench).faults
    assert [one.correct for one in kill.trials] == [False, False]
    assert all(one.valid and one.lost is not None and one.lost >= 0.4 * 4000 for one in kill.trials)
    assert kill.sentence.endswith(f"wrong in 2 of 2: {sum(one.lost or 0 for one in kill.trials):,} lost")
    figures = {one["metric"]: one for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    assert figures["recovery_kill_wrong"]["value"] == 2
    assert not figures["recovery_kill_seconds"]["valid"], "a figure whose output was wrong is void"


@pytest.mark.prove
def test_a_recovery_that_was_killed_leaves_nothing_behind_and_is_measured_again(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, {"seconds": 6, "repeats": 1, "faults": ["kill"], "cut_seconds": 1})
    cell, metrics = killed_and_measured_again(bench, "recovery", lambda cell: [*cell.glob("work/trial-*")])
    assert RecoveryRun.read(cell / "recovery.json").faults[0].valid
    assert len(metrics) == 4


def samples(*looks: tuple[float, float, int]) -> list[Sample]:
    return [Sample(at, age, 0, taken) for at, age, taken in looks]


def test_the_course_after_a_strike() -> None:
    clock = samples((1, 0.1, 0), (3, 1.0, 0), (5, 3.0, 0), (6, 0.2, 0), (8, 0.2, 0), (12, 0.1, 0))
    handed = samples((1, 0.1, 10), (2, 0.1, 20), (5.5, 3.5, 30), (7, 0.6, 90), (7.5, 0.3, 95), (11, 0.3, 120))
    assert course(handed, clock, 2.0, 0.5) == Course(3.5, 5.5, 3.5)
    assert course(handed, clock, 2.0, 9.0) == Course(3.5, 3.5, 3.5), "it was never beyond the bound"
    assert course(handed[:2], clock[:3], 2.0, 0.5) == Course(None, None, 3.0)
    assert course(handed[:5], clock[:5], 2.0, 0.5) == Course(3.5, None, 3.5), "who knows whether it stays?"
    last = samples((8, 5.0, 20))  # which the driver adds at the end
    assert course([*handed[:2], *last], clock[:3], 2.0, 0.5) == Course(None, None, 3.0)


class _Killed:
    """Notes what is asked of it; it does not come up again if `problem` is set."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._problem = problem

    def strike(self, fault: str) -> None:
        self.asked.append(fault)

    def resume(self) -> None:
        self.asked.append("resume")
        if self._problem is not None:
            raise self._problem

    def pin(self) -> None:
        self.asked.append("pin")


def test_what_was_killed_goes_on_with_the_cpus_that_it_had_and_what_does_not_come_up_ends_the_trial() -> None:
    status = cast(TrialStatus, {"drivers": [{"state": "started", "start_wall_ns": time.time_ns() - 10**9}]})
    system = _Killed()
    strike = Strike("kill", 0.5)
    strike(cast(Adapter, system), Path(), status)
    assert system.asked == ["kill", "resume", "pin"]
    assert strike.resumed_s is not None
    for problem in (UserError("no port"), OSError(98, "Address already in use")):
        with pytest.raises(Ended, match=r"^it did not go on after the fault kill: .*(no port|in use)$"):
            Strike("kill", 0.5)(cast(Adapter, _Killed(problem)), Path(), status)


def test_instants_are_those_of_the_seed_and_differ_between_faults() -> None:
    section = Recovery(seconds=40, repeats=50)
    first = instants(section, "kill")
    assert first == instants(section, "kill")
    assert all(10 <= at_s <= 20 for at_s in first)
    assert len({*first, *instants(section, "cut"), *instants(section.model_copy(update={"seed": 2}), "kill")}) == 150


def test_a_figure_that_one_trial_did_not_see_is_none() -> None:
    assert spread_of([2.0, None]) is None
    assert spread_of([2.0, 0.0]) is None, "a repeat that took nothing makes the others no mean"
    assert spread_of([]) is None
    spread = spread_of([2.0, 8.0])
    assert spread is not None
    assert (spread.value, spread.samples) == (pytest.approx(4.0), 2)
    assert spread.interval is not None


def test_a_fault_that_an_adapter_does_not_declare_has_its_reason() -> None:
    declared = Capabilities(faults=frozenset({"kill"}), spared={"restart": "it has no worker"})
    assert [spared(declared, fault) for fault in ("kill", "restart", "cut")] == [
        "", "it has no worker", "its adapter does not declare this fault",
    ]  # fmt: skip


def test_its_stage_follows_its_section_and_its_time_is_in_the_plan(tmp_path: Path) -> None:
    bench, usual = bench_of(tmp_path, {"seconds": 40}), timing.USUAL
    assert "recovery" in [stage.name for stage in stages_of(bench.benchmark)]
    assert timing.stage_seconds(BY_NAME["recovery"], bench.benchmark, usual) == 9 * 30 + 2 * usual.start_s
    assert "recovery" not in [stage.name for stage in stages_of(write_bench(tmp_path).benchmark)]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"cut_seconds": 40}, "cut_seconds: found 40, allowed: less than 30, half of `seconds`"),
        ({"faults": ["kill", "kill"]}, "faults: found kill, kill, allowed: each of them once"),
        ({"faults": ["quota"]}, "quota"),
        ({"faults": []}, "faults"),
    ],
)
def test_a_wrong_section_is_one_line(tmp_path: Path, section: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        bench_of(tmp_path, section)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_link_passes_bytes_on_until_it_is_cut_and_again_once_it_is_mended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Link(Endpoint("127.0.0.1", server.getsockname()[1])) as link:
        place = link.endpoint.host, link.endpoint.port
        near, far = socket.create_connection(place, timeout=5), server.accept()[0]
        near.sendall(b"there")
        assert far.recv(9) == b"there"
        far.sendall(b"back")
        assert near.recv(9) == b"back"
        link.cut()
        assert near.recv(9) == b""
        assert far.recv(9) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place, timeout=5)
        link.mend()
        with socket.create_connection(place, timeout=5) as again:
            again.sendall(b"more")
            assert server.accept()[0].recv(9) == b"more"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, timeout=5)


def test_rows_that_are_read_again_are_counted_once_for_each_time() -> None:
    queue = Queue()
    queue.append(pa.RecordBatch.from_pydict({"n": range(10)}), np.zeros(10, np.int64))
    queue.reveal(1)
    for start, end in ((0, 4), (4, 8), (2, 6), (6, 10)):
        queue.read(start, end, 16)
    assert queue.again == 4 + 2


def test_micro_batches_of_a_spark_that_was_started_again_are_joined(tmp_path: Path) -> None:
    """Batch 1 was told before the kill, 2 is in the checkpoint alone, and 3 was begun before it and ended after it."""
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    for number, row, watermark_ms in ((1, 10, 0), (2, 20, 500), (3, 30, 900)):
        lines = ["v1", json.dumps({"batchWatermarkMs": watermark_ms, "conf": {}}), json.dumps({"0": row})]
        (offsets / str(number)).write_text("\n".join(lines))
    (offsets / ".3.crc").write_text("crc")
    before = [{"batch_id": n, "watermark_ms": 0, "ends": [{"0": 10 * n}], "dropped": 0} for n in (0, 1)]
    after = [{"batch_id": 3, "watermark_ms": 900, "ends": [{"0": 30}], "dropped": 4}]
    plans = planned_in(tmp_path)
    assert [one["batch_id"] for one in plans] == [1, 2, 3]
    batches = joined(plans, before, after)
    assert [one["batch_id"] for one in batches] == [0, 1, 2, 3]
    assert [one["ends"] for one in batches] == [[{"0": 10 * n}] for n in range(4)]
    assert [one["watermark_ms"] for one in batches] == [0, 0, 500, 900]
    assert [one.get("dropped") for one in batches] == [0, 0, None, 4]
    without = [one | {"watermark_ms": None} for one in before]
    assert {one["watermark_ms"] for one in joined(plans, without)} == {None}
