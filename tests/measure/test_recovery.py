"""The measurement recovery with the known system, whose pause after a kill and whose losses are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.app.airflow import summary
from streamgauge.app.cli.planning import plan_of
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.base.units import Duration
from streamgauge.bench.driver.system import Capabilities
from streamgauge.bench.faults.strike import Strike, spared
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure, settings_hash
from streamgauge.bench.measurements import LONGEST, USUAL, Pace
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck
from streamgauge.bench.measurements.recovery.section import Recovery
from streamgauge.bench.measurements.recovery.stage import (
    checkpointing,
    differing,
    instants,
    keep,
    struck_of,
    suffered_of,
)
from streamgauge.bench.search.estimate import spread_of
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import BY_NAME, stages_of
from streamgauge.config.systems import settings_of
from streamgauge.records.measurement import Sample, TrialObservation
from streamgauge.records.spread import Spread
from streamgauge.records.trial import UNENDED, Compared, Differing
from streamgauge.results.report import cells_section, headline, overview
from streamgauge.results.report.blocks import Note, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example
from tests.measure.benches import CELL, Bench, uncompared, write_bench
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


def test_instants_are_those_of_the_seed_and_differ_between_faults() -> None:
    section = Recovery(seconds=60, repeats=50)
    first = instants(section, "kill")
    assert first == instants(section, "kill")
    assert all(10 <= at_s <= 20 for at_s in first)
    assert len({*first, *instants(section, "cut"), *instants(section.model_copy(update={"seed": 2}), "kill")}) == 150


def test_a_fault_takes_two_minutes_at_most_where_the_file_says_nothing_else(tmp_path: Path) -> None:
    def seconds(*faults: str) -> int:
        section: dict[str, Any] = {"rate": 1.0}
        bench = write_bench(tmp_path, recovery=section | ({"faults": faults} if faults else {}))
        return round(timing.stage_seconds(BY_NAME["recovery"], bench.benchmark, USUAL) - 2 * USUAL.start_s)

    assert seconds("kill") <= 120
    assert seconds() <= 3 * 120
    once, twice = (bench_of(tmp_path, one).benchmark for one in ({}, {"checkpoint_intervals": ["1s", "5s"]}))
    longest_s = timing.stage_seconds(BY_NAME["recovery"], once)
    assert timing.stage_seconds(BY_NAME["recovery"], twice) == 2 * longest_s


def test_the_longest_time_of_a_recovery_holds_what_the_commands_of_a_job_may_take(tmp_path: Path) -> None:
    def seconds(pace: Pace, **faults: list[str]) -> float:
        job = {"name": "j", "engine": "job", "bootstrap": "b:1", "command": ["true"], "faults": faults}
        bench = write_bench(tmp_path, systems=[job], recovery={"rate": 1.0})
        return timing.stage_seconds(BY_NAME["recovery"], bench.benchmark, pace)

    declared = {"cut": ["true"], "heal": ["true"], "restart": ["true"]}
    assert seconds(LONGEST, **declared) - seconds(LONGEST) == 3 * (4 * 60 + 60)
    # a worker of it dies only then, and its group keeps it until the trial is over
    assert seconds(USUAL, **declared) - seconds(USUAL) == 3 * (60 - 40)


def test_faults_of_a_job_are_of_the_plan_of_its_recovery_alone(tmp_path: Path) -> None:
    def hashes(**keys: Any) -> list[str]:
        system = {"name": "known", "engine": "job", "bootstrap": "b:1", "command": ["true"], **keys}
        benchmark = write_bench(tmp_path, systems=[system]).benchmark
        return [settings_hash(benchmark, CELL, measurement=name) for name in ("", "soak", "recovery")]

    plain, declared = hashes(), hashes(faults={"kill": ["true"]})
    assert len({*plain, *declared[:2]}) == 1, "the search is not measured anew"
    assert declared[2] not in plain
    assert hashes(warm="1s")[0] not in plain


def test_a_figure_that_one_trial_did_not_see_is_none() -> None:
    assert spread_of([2.0, None]) is None
    assert spread_of([2.0, 0.0]) is None, "a repeat that took nothing makes the others no mean"
    assert spread_of([]) is None
    spread = spread_of([2.0, 8.0])
    assert spread is not None
    assert (spread.value, spread.samples) == (pytest.approx(4.0), 2)
    assert spread.interval is not None


@pytest.mark.parametrize(
    ("engine", "keys", "changed"),
    [
        ("flink", {"conf": {"a.b": "1"}}, {"conf": {"a.b": "1", "execution.checkpointing.interval": "5000ms"}}),
        ("spark", {}, {"trigger": "5s"}),
        ("spark", {"mode": "real-time", "link": "jvm", "state_store": "rocksdb"}, None),
        ("known", {"commits": "answered"}, {"checkpoint": "5s"}),
        ("known", {}, None),
        ("job", {"bootstrap": "b:1", "command": ["run"]}, None),
    ],
)
def test_an_engine_has_an_interval_of_checkpoints_or_none(
    engine: str, keys: dict[str, Any], changed: dict[str, Any] | None
) -> None:
    system = settings_of(engine).model_validate({"name": "s", "engine": engine, **keys})
    [(interval, made)] = checkpointing(system, Recovery(checkpoint_intervals=(Duration.parse("5s"),))).items()
    assert interval == ("" if changed is None else "5s")
    given = {"name": "s", "engine": engine, **keys, **(changed or {})}
    assert made == settings_of(engine).model_validate(given)


def test_times_count_only_if_all_answers_are_right() -> None:
    right, late = Struck(valid=True, back_s=2.0, peak_age_s=3.0, correct=True), Struck(valid=True, correct=True)
    copies = right.model_copy(update={"doubled": 7, "by_key": True})
    wrong = Struck(valid=False, back_s=0.5, correct=False, wrong="output wrong", lost=1200, by_key=True)
    whole, one_late, with_copies, void = (
        suffered_of("kill", "", trials)
        for trials in ([right, right], [right, late], [copies, right], [right, wrong])
    )  # fmt: skip
    assert whole.back_s is not None
    assert (whole.void, one_late.back_s, one_late.not_back) == ("", None, 1)
    assert (whole.answers, with_copies.answers) == ("right", "right, 7 doubled")
    assert (void.back_s, void.peak_age_s, void.not_back) == (None, None, 0)
    assert void.void == "its answers were wrong in 1 of 2: 1,200 lost; broken promise: at least once"


@pytest.mark.parametrize(
    ("trials", "answers"),
    [
        ([(True, 0, 0)] * 2, "right; kept promise: exactly once"),
        ([(True, 0, 7), (True, 0, 0)], "right, 7 doubled; kept promise: at least once"),
        ([(False, 0, 3)], "wrong in 1 of 1: 3 doubled; broken promise: exactly once"),
        ([(False, 9, 3), (True, 0, 0)], "wrong in 1 of 2: 9 lost, 3 doubled; broken promise: at least once"),
        ([(False, 0, 0)], "wrong in 1 of 1: other values"),
        ([(True, 0, None)], "right"),
        ([(True, 0, 0), (None, None, None)], "right where compared, in 1 of 2 trials"),
    ],
)
def test_answers_name_the_promise_that_they_keep_or_break(
    trials: list[tuple[bool | None, int | None, int | None]], answers: str
) -> None:
    given = [
        Struck(valid=correct is not False, correct=correct, lost=lost, doubled=doubled, by_key=True)
        for correct, lost, doubled in trials
    ]
    assert suffered_of("kill", "", given).answers == answers


def struck(
    failure: str | None = None, away: str = "", missed: str = "", *, drained: bool = True, **observed: Any
) -> Struck:
    """Reads a trial of 10 s that was struck at 2 s, whose age is 4 s soon after it, and 0 from 6 s on.

    failure: the system's own. away: why it did not go on after the fault. missed: why there was no fault. drained: all
    rows were answered in time.
    """
    clock = tuple(Sample(at / 10, 4.0 if 20 < at < 60 else 0.0, 0, at) for at in range(100))
    seen = TrialObservation(1000, 10, clock, 10_000, 10_000, clock=clock)
    trial = uncompared(replace(seen, **observed), {"system": {"failure": failure}, "drivers": [], "drained": drained})
    strike = Strike("kill", 2.0)
    strike.struck_s, strike.resumed_s, strike.failure = None if missed else 2.0, None if away else 3.0, away
    strike.missed = missed
    return struck_of(strike, trial, 1.0)


def test_a_system_that_fails_after_a_fault_is_not_back_and_a_trial_that_measures_nothing_does_not_count() -> None:
    """Else the figure would be that of the trials in which it came back."""
    dead, full = "it did not go on after the fault kill: no port", "the queues overflowed, and the trial ended there"
    back, failed = struck(), struck("it died", invalid="the system failed: it died")
    never, overflown = struck(away=dead, invalid=dead), struck(overflow=True)
    slipped, gone = struck(overflow=True, invalid="the driver limited this trial"), "the driver failed: no memory"
    alone, left = struck("it lost its driver", invalid=gone), struck(away=dead, invalid=gone)
    assert [(one.valid, one.back_s is not None) for one in (back, failed, never, overflown, slipped, alone, left)] == [
        (True, True), (True, False), (True, False), (True, False), (False, True), (False, True), (False, True),
    ]  # fmt: skip
    assert (never.reason, overflown.reason[:48], alone.reason, left.reason) == (dead, full, gone, gone)
    few = suffered_of("kill", "", [back, slipped, alone, left])
    assert few.back_s == Spread(value=back.back_s or 0.0)
    assert few.sentence == f"kill: back after {back.back_s:.3g} s; answers not compared; 1 of 4 trials counts"
    kill = suffered_of("kill", "", [back, failed])
    assert (kill.back_s, kill.void, kill.unknown) == (None, "", "the system failed: it died")
    assert kill.peak_age_s is None, "its age might have grown on"
    why = "not back in 1 of 2 trials, the system failed: it died; answers not compared"
    assert kill.sentence == f"kill: {why}"


@pytest.mark.parametrize("invalid", [None, UNENDED])
def test_a_system_that_was_back_but_left_rows_unanswered_has_failed(invalid: str | None) -> None:
    """Else the mean would be that of the trials in which it lost nothing."""
    left, back = struck(drained=False, invalid=invalid), struck()
    assert (left.valid, left.back_s, left.reason) == (True, None, UNENDED)
    kill = suffered_of("kill", "", [back, left, back])
    assert (kill.back_s, kill.peak_age_s, kill.fewer) == (None, None, "")
    assert kill.sentence == f"kill: not back in 1 of 3 trials, {UNENDED}; answers not compared"
    slipped = struck(drained=False, invalid="the driver limited this trial")
    assert (slipped.valid, slipped.reason) == (False, "the driver limited this trial"), "it held the system up"
    behind = struck(drained=False, clock=tuple(Sample(at, 4.0 * (at > 2), 0, at) for at in range(10)))
    assert (behind.valid, behind.reason) == (True, "it was not back when the trial ended; raise recovery.seconds")


def test_a_system_whose_age_never_left_the_bound_is_not_said_to_be_back() -> None:
    clock = tuple(Sample(at / 10, 0.5, 0, at) for at in range(100))
    kept = struck(samples=clock, clock=clock)
    assert (kept.taken_again_s, kept.back_s, kept.is_within) == (kept.back_s, pytest.approx(0.1), True)
    cut = suffered_of("cut", "", [kept])
    assert cut.sentence == "cut: taken again after 0.1 s; answers not compared; its age never left the bound"
    assert suffered_of("cut", "", [kept, struck()]).remark == ""


def test_a_trial_whose_fault_was_not_brought_about_says_nothing_of_its_system() -> None:
    died = struck("it died", missed="the fault rescale was not brought about: exit 3", invalid="the system: it died")
    assert (died.valid, died.reason) == (False, "the fault rescale was not brought about: exit 3")


def test_page_and_figures_have_the_reason_instead_of_times_whose_answers_were_wrong(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, {})
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"), "recovery")
    right = Struck(valid=True, struck_s=1.0, taken_again_s=1.0, back_s=2.0, peak_age_s=3.0, correct=True, lost=0)
    wrong = Struck(valid=False, struck_s=1.0, back_s=0.5, correct=False, wrong="output wrong: 8 rows", lost=1200)
    lost = Struck(valid=False, reason="the driver limited this trial")
    void, few = suffered_of("kill", "", [right, wrong]), suffered_of("cut", "", [right, right, lost])
    why = "its answers were wrong in 1 of 2: at least 1,200 lost; broken promise: at least once"
    assert void.sentence == f"kill: void: {why}"
    cell_run.directory.mkdir(parents=True)
    RecoveryRun(
        plan=cell_run.plan_key, fraction=None, rate_events_per_s=1.0, seconds=60, cut_seconds=2, max_age_s=1,
        faults=(void, few), no_intervals="it has none",
    ).write(cell_run.directory / "recovery.json")  # fmt: skip
    keep(cell_run, void, {})
    figures = {one.metric: one.text for one in results.read(cell_run.run_directory)}
    [remark] = [one.reason for one in results.read(cell_run.run_directory) if one.metric.endswith("lost_per_trial")]
    assert remark == "at least so many"
    counts = {"wrong": "1 trials", "lost_per_trial": "600 answers"}
    counts["doubled_per_trial"] = "—  void: not known of each trial"
    assert {name: figures.pop(f"recovery_kill_{name}") for name in counts} == counts
    assert set(figures.values()) == {f"—  void: {why}"}
    assert sorted(figures) == [f"recovery_kill_{name}" for name in ("peak_age", "seconds", "taken_again_seconds")]
    keep(cell_run, few, {})
    with (tmp_path / "out").open("w") as out:
        summary.show_figures(bench.benchmark, bench.store, RunLog(cell_run.run_directory), Console(file=out))
    assert "e.all.known: recovery_cut_peak_age 3 s; 2 of 3 trials count\n" in (tmp_path / "out").read_text()
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    [tiles] = [block for block in shown if isinstance(block, Tiles)]
    costs, trials = [block for block in shown if isinstance(block, Table)]
    [note] = [block for block in shown if isinstance(block, Note)]
    assert tiles.tiles[0] == ("system killed: back after", "—", why)
    assert [plain(cell) for cell in costs.rows[0][:5]] == ["system killed", "—", "—", "—", "—"]
    assert [plain(cell) for cell in trials.rows[1]][2:5] == ["—", "—", "—"]
    assert note.text == (
        f"No figure: system killed: {why}; intervals of checkpoints: not measurable: it has none. "
        "link cut: 2 of 3 trials count."
    )


def test_a_figure_tells_in_how_many_trials_answers_were_compared(tmp_path: Path) -> None:
    """Else 0 wrong trials would be those of all, and a time one whose answers are known to be right."""
    bench = bench_of(tmp_path, {})
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"), "recovery")
    right = Struck(valid=True, taken_again_s=1.0, back_s=2.0, peak_age_s=3.0, correct=True, lost=0, doubled=0)
    unknown = right.model_copy(update={"correct": None, "lost": None, "doubled": None})
    void = Struck(valid=False, reason="the driver limited this trial")
    trials = {"kill": [right, right, void], "cut": [right, right, unknown], "rescale": [unknown], "restart": [right]}
    faults = [suffered_of(fault, "", given) for fault, given in trials.items()]
    for one in faults:
        keep(cell_run, one, {})
    figures = {one.metric: (one.value, one.reason) for one in results.read(cell_run.run_directory)}
    remarks = {name.removeprefix("recovery_"): why for name, (_, why) in figures.items()}
    times, counts = ("taken_again_seconds", "seconds", "peak_age"), ("wrong", "lost_per_trial", "doubled_per_trial")
    assert remarks == {
        **{f"kill_{name}": "2 of 3 trials count" for name in times},
        **{f"{fault}_{name}": "2 of 3 trials compared" for fault in ("kill", "cut") for name in counts},
        **{f"cut_{name}": "2 of 3 trials compared" for name in times},
        **{f"rescale_{name}": "answers were not compared" for name in times},
        **{f"restart_{name}": "" for name in (*times, *counts)},
    }
    assert figures["recovery_kill_wrong"][0] == 0
    assert [one.answers for one in faults[1:3]] == ["right where compared, in 2 of 3 trials", "not compared"]


def test_no_head_and_no_last_word_calls_a_cell_right_whose_answers_after_a_fault_were_wrong(tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv", **CELLS, recovery={})
    store, name = Store(tmp_path / "artifacts"), "ordered.sum.rocksdb"
    record_cells(record_example(store, made))
    wrong = Struck(valid=False, correct=False, wrong="output wrong: 8 rows", lost=1200)
    faults = tuple(suffered_of(fault, "", [wrong]) for fault in ("kill", "cut"))
    right = suffered_of("restart", "", [wrong.model_copy(update={"valid": True, "correct": True, "wrong": ""})])
    RecoveryRun(
        plan="p", fraction=None, rate_events_per_s=1.0, seconds=60, cut_seconds=2, max_age_s=1, faults=(right, *faults)
    ).write(store.run(RUN) / "cells" / name / "recovery.json")
    read = Records(made, store, RUN)
    where = "in recovery (kill), recovery (cut)"
    _, tiles, note, *_ = headline.section(read).blocks
    assert isinstance(tiles, Tiles)
    assert isinstance(note, Note)
    assert tiles.tiles[2] == ("answers", "wrong", f"not equal to an independent answer {where}")
    assert f"Answers were wrong {where}. Find out why" in note.text
    problems = overview.outcome(read).problems
    assert ("bad", f"recovery (kill) of {name}", "the answers were wrong") in problems
    console = Console(width=200, record=True, file=(tmp_path / "out").open("w"))
    summary.show_figures(made, store, RunLog(store.run(RUN)), console)
    lines = console.export_text().splitlines()
    assert [line.split()[-2] for line in lines if "ordered sum rocksdb" in line] == ["wrong"]
    assert f"{name}: answers were wrong {where}" in lines


def test_lost_and_doubled_answers_do_not_make_up_for_each_other_where_each_is_looked_for() -> None:
    each: list[Differing] = [{"kind": "missing", "answers": 3}, {"kind": "with other values", "answers": 9}]
    compared: Compared = {"wrong": "w", "expected_rows": 10, "reported_rows": 7, "duplicates": 3}
    assert differing(compared | {"differences": {"each": each}}) == (3, 3, True)
    assert differing(compared) == (3, 0, False)
    assert differing(compared | {"reported_rows": 12}) == (0, 2, False)
    upserts: Compared = {"wrong": None, "duplicates": 0, "differences": {"each": []}, "delivery": None}
    assert differing(upserts) == (0, None, True), "earlier answers of a key are gone"
    assert differing({"wrong": "w"}) == differing(None) == (None, None, False)


def test_a_fault_that_an_adapter_does_not_declare_has_its_reason() -> None:
    declared = Capabilities(faults=frozenset({"kill"}), spared={"restart": "it has no worker"})
    assert [spared(declared, fault) for fault in ("kill", "restart", "cut")] == [
        "", "it has no worker", "its adapter does not declare this fault",
    ]  # fmt: skip


def test_its_stage_follows_its_section_and_its_time_is_in_the_plan(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, {"seconds": 40})
    assert "recovery" in [stage.name for stage in stages_of(bench.benchmark)]
    away_s = {"kill": 2, "restart": USUAL.start_s, "cut": 2}
    expected_s = pytest.approx(2 * USUAL.start_s + 3 * sum(10 + one + 3.5 for one in away_s.values()))
    assert timing.stage_seconds(BY_NAME["recovery"], bench.benchmark, USUAL) == expected_s
    assert "recovery" not in [stage.name for stage in stages_of(write_bench(tmp_path).benchmark)]


def test_a_trial_too_short_to_see_the_system_back_is_a_hint_of_check(tmp_path: Path) -> None:
    # away for 4 s; at half of its rate, 3.5 s more until no event waits for longer than 0.5 s; it stays for 3 s
    hint = "recovery.seconds: found {}, but systems.known is usually back {} s after a {}; from {} on, a trial sees it"
    system = {"name": "known", "engine": "known", "restart": "4s"}
    for section, hints in (
        ({"seconds": 15}, [hint.format(15, 7.5, "kill", 16)]),
        ({"seconds": 16}, []),
        ({"seconds": 10, "rate": 100}, [hint.format(10, 4, "kill", 11)]),
        ({"seconds": 12, "cut_seconds": 6, "rate": 100}, [hint.format(12, 6, "cut", 14)]),
    ):
        recovery = {"fraction": 0.5, "faults": ["kill", "cut"], "cut_seconds": 1, **section}
        bench = write_bench(tmp_path, systems=[system], search={"max_age": "500ms"}, recovery=recovery)
        assert plan_of(bench.benchmark, bench.store)["hints"] == hints


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"cut_seconds": 40}, "cut_seconds: found 40, allowed: less than 40, two thirds of `seconds`"),
        ({"faults": ["kill", "kill"]}, "faults: found kill, kill, allowed: each of them once"),
        ({"faults": ["quota"]}, "quota"),
        ({"checkpoint_intervals": ["1s", "20s"]}, "checkpoint_intervals: found 20s, allowed: from 0.1 s to 10 s"),
        ({"checkpoint_intervals": ["1s", "1000ms"]}, "checkpoint_intervals: found one of them twice"),
        ({"faults": []}, "faults"),
    ],
)
def test_a_wrong_section_is_one_line(tmp_path: Path, section: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        bench_of(tmp_path, section)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
