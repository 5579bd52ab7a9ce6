"""The measurement recovery with the known system, whose pause after a kill and whose losses are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.measurements.recovery.record import RecoveryRun
from streamgauge.catalog import results
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Note, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from tests.measure.killed import killed_and_measured_again
from tests.measure.recovering import bench_of, recovered


def test_a_known_pause_is_found(tmp_path: Path) -> None:
    """The short relative of those that are proved below."""
    [kill] = recovered(bench_of(tmp_path, {"seconds": 5, "repeats": 1, "faults": ["kill"]}, restart="600ms")).faults
    [trial] = kill.trials
    assert (trial.valid, trial.correct, trial.lost, trial.doubled) == (True, True, 0, 0), trial
    assert trial.taken_again_s is not None
    assert 0.55 <= trial.taken_again_s < 3, "beside other tests; those below prove how exact it is"


def test_a_system_that_comes_up_no_more_leaves_what_was_measured_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(system: KnownSystem) -> None:
        monkeypatch.setattr(KnownSystem, "start", refused)
        system.failure = "it was not started"
        raise UserError("no port")

    monkeypatch.setattr(KnownSystem, "resume", refused)
    kill, cut = recovered(bench_of(tmp_path, {"seconds": 5, "repeats": 2, "faults": ["kill", "cut"]})).faults
    [trial] = kill.trials
    assert (trial.valid, trial.back_s, trial.reason) == (True, None, "it did not go on after the fault kill: no port")
    assert kill.sentence.startswith("kill: not back in 1 of 1 trials, it did not go on after the fault kill: no port")
    again = "it started before with these settings, but failed to start again: no port"
    assert (cut.trials, cut.unmeasurable) == ((), again)


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
        assert 14 / 6 <= trial.struck_s <= 14 / 3 + 0.3
        assert trial.taken_again_s == pytest.approx(pause_s, abs=0.4)
        assert trial.peak_age_s == pytest.approx(pause_s, abs=0.4)
        assert trial.back_s == pytest.approx(2 * pause_s - 0.5, abs=1.0)
    assert kill.trials[0].read_again is not None
    assert kill.trials[0].read_again > 0, "what was taken and not answered"
    figures = {one["metric"]: one for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    assert {name for name in figures if "_restart_" in name} == set()
    assert (figures["recovery_kill_seconds"]["value"], figures["recovery_kill_wrong"]["value"]) == (
        pytest.approx(kill.trials[0].back_s),
        0,
    )
    records = Records(bench.benchmark, bench.store, "r")
    shown = cells_section.section(records).parts[0].blocks
    [tiles] = [block for block in shown if isinstance(block, Tiles)]
    assert tiles.tiles[-1] == ("answers", "right", "kept promise: exactly once; through all faults")
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
    assert all(not one.valid and one.lost is not None and one.lost >= 0.4 * 4000 for one in kill.trials)
    why = f"wrong in 2 of 2: at least {sum(one.lost or 0 for one in kill.trials):,} lost; broken promise: at least once"
    assert kill.sentence == f"kill: void: its answers were {why}"
    figures = {one.metric: one for one in results.read(bench.store.run("r"))}
    assert figures["recovery_kill_wrong"].value == 2
    assert not figures["recovery_kill_seconds"].valid, "a figure whose output was wrong is void"


@pytest.mark.prove
def test_a_longer_interval_of_checkpoints_makes_a_system_read_more_again(tmp_path: Path) -> None:
    """A kill finds rows of half an interval that are taken and not committed, on average."""
    section = {"seconds": 13, "repeats": 2, "faults": ["kill"], "checkpoint_intervals": ["200ms", "2s"]}
    bench = bench_of(tmp_path, section, restart="600ms")
    run = recovered(bench)
    often, seldom = run.faults
    assert (often.name, seldom.name) == ("kill, checkpoints every 200ms", "kill, checkpoints every 2s")
    for one, interval_s in ((often, 0.2), (seldom, 2.0)):
        assert [(trial.valid, trial.correct) for trial in one.trials] == [(True, True)] * 2, one.sentence
        assert all((trial.read_again or 0) <= 4000 * (interval_s + 0.5) for trial in one.trials)
        assert one.calm_age_s is not None
        assert one.calm_age_s < 0.5
        assert one.calm_cpu_us is None, "it tells no CPU time in a trial"
    assert (often.read_again or 0) < (seldom.read_again or 0)
    figures = {one.metric: one for one in results.read(bench.store.run("r"))}
    seldom_s = figures["recovery_kill_seconds_at_checkpoints_every_2s"]
    assert (seldom_s.value, seldom_s.valid) == (seldom.back_s and seldom.back_s.value, True)
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    _, costs, _ = [block for block in shown if isinstance(block, Table)]
    assert [[plain(cell) for cell in row[:3]] for row in costs.rows] == [
        ["system killed", "200ms", "—"], ["system killed", "2s", "—"],
    ]  # fmt: skip


@pytest.mark.prove
def test_a_recovery_that_was_killed_leaves_nothing_behind_and_is_measured_again(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, {"seconds": 6, "repeats": 1, "faults": ["kill"], "cut_seconds": 1})
    cell, metrics = killed_and_measured_again(bench, "recovery", lambda cell: [*cell.glob("work/trial-*")])
    assert RecoveryRun.read(cell / "recovery.json").faults[0].valid
    assert len(metrics) == 7
