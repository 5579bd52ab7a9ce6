"""Struck trials: what a recovery says of each, and what record, figures and page make of all of a fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.airflow import summary
from streamgauge.base.console import Console
from streamgauge.bench.faults.strike import Strike
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck
from streamgauge.bench.measurements.recovery.section import Kind
from streamgauge.bench.measurements.recovery.stage import differing, keep, struck_of, suffered_of
from streamgauge.bench.search.estimate import spread_of
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.measurement import Sample, TrialObservation
from streamgauge.records.spread import Spread
from streamgauge.records.trial import UNENDED, Compared, Differing, SystemFigures
from streamgauge.results.report import cells_section, headline, overview
from streamgauge.results.report.blocks import Note, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example
from tests.measure.benches import CELL, uncompared
from tests.measure.recovering import bench_of


def test_a_figure_that_one_trial_did_not_see_is_none() -> None:
    assert spread_of([2.0, None]) is None
    assert spread_of([2.0, 0.0]) is None, "a repeat that took nothing makes the others no mean"
    assert spread_of([]) is None
    spread = spread_of([2.0, 8.0])
    assert spread is not None
    assert spread.value == pytest.approx(4.0)
    assert spread.samples == 2
    assert spread.interval is not None


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
    failure: str | None = None,
    away: str = "",
    missed: str = "",
    *,
    drained: bool = True,
    link: str | None = None,
    **observed: Any,
) -> Struck:
    """Reads a trial of 10 s that was struck at 2 s, whose age is 4 s soon after it, and 0 from 6 s on.

    failure: the system's own. away: why it did not go on after the fault. missed: why there was no fault. drained: all
    rows were answered in time. link: why the link to the system says nothing about it.
    """
    clock = tuple(Sample(at / 10, 4.0 if 20 < at < 60 else 0.0, 0, at) for at in range(100))
    seen = TrialObservation(1000, 10, clock, 10_000, 10_000, clock=clock)
    system: SystemFigures = {"failure": failure, "invalid": link}
    trial = uncompared(replace(seen, **observed), {"system": system, "drivers": [], "drained": drained})
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
    away = "the publisher ended with 1"
    assert struck(away, link=away, invalid=away).valid is False, "a link that fails is not the job's doing"
    died = "the system died: it was not started"
    assert struck(died[12:], away=dead, invalid=died).reason == dead, "what it told when it was started"
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
    assert kept.taken_again_s == kept.back_s == pytest.approx(0.1)
    assert kept.is_within
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
    trials: dict[Kind, list[Struck]] = {
        "kill": [right, right, void], "cut": [right, right, unknown], "rescale": [unknown], "restart": [right],
    }  # fmt: skip
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
