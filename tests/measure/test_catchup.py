"""The measurement catchup: the known system, whose speed is known, and engines that read their queues unevenly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measure.vitals import Vitals
from streamgauge.bench.measurements import LONGEST, USUAL
from streamgauge.bench.measurements.catchup import stage
from streamgauge.bench.measurements.catchup.record import CatchupRun, Repeat, lengths
from streamgauge.bench.measurements.catchup.section import Catchup
from streamgauge.bench.measurements.latency.record import Dropped
from streamgauge.bench.search.estimate import spread_of
from streamgauge.catalog.stages import BY_NAME, stages_of
from streamgauge.config import Replay
from streamgauge.records.measurement import Sample, TrialObservation
from streamgauge.records.spread import Spread
from streamgauge.records.trial import UNENDED, Details
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Hole, Note, Table, Tiles, plain
from streamgauge.results.report.run_records import Records
from streamgauge.stats.catch_up import Needed
from tests.measure.benches import CELL, Bench, uncompared, write_bench
from tests.measure.killed import killed_and_measured_again


def bench_of(place: Path, capacity: int = 10_000, **section: Any) -> Bench:
    """A system that takes so many events/s, of two seconds of backlog while 4,000 come."""
    asked = {"rate": 4000, "minutes": 2 / 60, "repeats": 2, "patience": 20, **section}
    # batches of 50 ms follow each other without a pause: what one is late, the next one makes up for
    known = {"name": "known", "engine": "known", "capacity": capacity, "trigger": "10ms", "batch_rows": capacity // 20}
    return write_bench(place, systems=[known], catchup=asked, search={"max_age": "500ms"})


def caught_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> CatchupRun:
    monkeypatch.setattr(stage, "STAYS_S", 0.2)
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    measure("catchup", cell_run)
    return CatchupRun.read(cell_run.directory / "catchup.json")


def test_a_known_speed_is_found_with_the_seconds_that_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path)
    run = caught_up(bench, monkeypatch)
    assert (run.void, run.backlog, len(run.valid)) == ("", 8000, 2)
    assert run.taken_per_s is not None
    assert run.live_s is not None
    assert run.taken_per_s.value == pytest.approx(10_000, rel=0.05)
    assert run.live_s.value == pytest.approx((2 - 0.5) * 4000 / 6000, rel=0.3)  # other tests share the CPUs
    assert run.hour.seconds is not None
    assert run.hour.seconds == pytest.approx(3600 * 4000 / (run.taken_per_s.value - 4000))
    assert [(one.name, one.unit) for one in run.peaks] == [("resident_memory", "bytes")]
    assert all(ages[0] < ages[1] for one in run.repeats for ages in [(one.ages[-1][1], one.ages[0][1])])
    figures = {one["metric"]: one for one in read_jsonl(bench.store.run("r") / "results.jsonl")}
    assert {name: (one["unit"], one["value"]) for name, one in figures.items()} == {
        "catchup_seconds": ("s", run.live_s.value),
        "catchup_taken_per_s": ("events/s", run.taken_per_s.value),
        "catchup_hour_seconds": ("s", run.hour.seconds),
        "catchup_peak_resident_memory": ("bytes", run.peaks[0].most),
    }
    records = Records(bench.benchmark, bench.store, "r")
    shown = cells_section.section(records).parts[0].blocks
    [tiles] = [block for block in shown if isinstance(block, Tiles)]
    assert [label for label, *_ in tiles.tiles] == ["live after", "takes meanwhile", "begins with", "answers"]
    assert tiles.tiles[2][1:] == ("8\u202f000 events", "of 2 seconds, at the rate that the file names")
    [note] = [block for block in shown if isinstance(block, Note)]
    assert note.text.startswith("After an hour of standstill at this rate it needs ")
    repeats = next(block for block in shown if isinstance(block, Table))
    assert [plain(row[5]) for row in repeats.rows] == ["not compared"] * 2


def test_more_than_it_takes_is_never_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path, capacity=3000, patience=1, minutes=1 / 60)
    run = caught_up(bench, monkeypatch)
    assert (run.live_s, run.hour.kind, run.void) == (None, "never", "")
    assert run.taken_per_s is not None
    assert run.taken_per_s.value == pytest.approx(3000, rel=0.05)
    assert run.sentence.startswith("it was not live in 2 of 2 repeats, which last 1 second at most; it takes ")
    never = "after a standstill at this rate it never catches up: it takes no more than comes"
    assert run.sentence.endswith(never)
    seconds, taken, hour, _ = read_jsonl(bench.store.run("r") / "results.jsonl")
    assert (seconds["metric"], seconds["valid"], taken["metric"]) == ("catchup_seconds", False, "catchup_taken_per_s")
    assert (hour["metric"], hour["value"], hour["reason"]) == ("catchup_hour_seconds", None, never)


@pytest.mark.parametrize(
    ("engine", "drops", "wrong"),
    [("OneForAll", True, False), ("OneForEach", False, False), ("Lying", True, True)],
)
def test_a_queue_that_runs_ahead_costs_answers_where_one_watermark_is_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, drops: bool, wrong: bool
) -> None:
    totals = {"name": "all", "query": "windowed_aggregation", "key": "carrier", "value": "flight", "window": "1s"}
    bench = write_bench(
        tmp_path,
        systems=[{"name": "known", "engine": f"tests.measure.ahead:{engine}"}],
        workloads=[{**totals, "watermark": "100ms"}],
        replay={"max_memory_mb": 64, "max_slip": "3s", "partitions": 2},
        catchup={"rate": 3000, "minutes": 0.05, "repeats": 1},
        search={"max_age": "500ms"},
    )
    run = caught_up(bench, monkeypatch)
    assert run.lost_at_own_speed is not None
    assert run.lost_at_own_speed.events == 0
    [repeat] = run.repeats
    assert (repeat.correct, repeat.valid, bool(run.void)) == (not wrong, not wrong, wrong), repeat.reason
    if wrong:
        assert re.match(r"watermark of batch \d+: the engine logged ", run.void)
        shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
        [tiles] = [block for block in shown if isinstance(block, Tiles)]
        come = "events/s while 3\u202f000 come"
        assert [tile[1:] for tile in tiles.tiles[:2]] == [("\u2014", run.void), ("\u2014", come)]
        return
    assert repeat.dropped is not None
    assert (repeat.dropped > 100, repeat.dropped == 0) == (drops, not drops)
    assert repeat.live_s is not None


@pytest.mark.prove
def test_what_was_killed_leaves_nothing_behind_and_is_measured_again(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, minutes=0.1)
    cell, metrics = killed_and_measured_again(bench, "catchup", lambda cell: [*cell.glob("work/trial-2")])
    assert len(CatchupRun.read(cell / "catchup.json").valid) == 2
    assert len(metrics) == 4


def test_only_a_file_with_the_section_has_the_stage_and_its_time_is_in_the_plan(tmp_path: Path) -> None:
    with_it = bench_of(tmp_path, rate=None, fraction=0.6, minutes=2, repeats=3, patience=4).benchmark
    names = [one.name for one in stages_of(with_it)]
    assert names[names.index("search") :] == ["search", "latency", "catchup", "report"]
    # 120 s of backlog at 0.6 of its speed need 180 s; it stays live for 5.5 s; there is no warm-up
    wanted = USUAL.start_s + 3 * (USUAL.start_s + 180 + 5.5)
    assert timing.stage_seconds(BY_NAME["catchup"], with_it, USUAL) == pytest.approx(wanted)
    longest = LONGEST.start_s + 3 * (LONGEST.start_s + 480 + 5.5)
    assert timing.stage_seconds(BY_NAME["catchup"], with_it) == pytest.approx(longest)
    assert "catchup" not in [one.name for one in stages_of(write_bench(tmp_path).benchmark)]


def test_a_backlog_that_does_not_fit_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_of(tmp_path, minutes=10)
    said = (
        r"catchup\.minutes: found 10, but 2,400,000 events, at 4,000 a second, do not fit replay\.max_memory_mb: 64; "
        r"allowed: up to 1\.68, or max_memory_mb: 308"
    )
    with pytest.raises(UserError, match=f"^{said}$"):
        caught_up(bench, monkeypatch)
    assert not list(bench.store.run("r").iterdir())
    for minutes, mb in ((1.68, 64), (10, 308)):
        stage.refuse_backlog(Replay(max_memory_mb=mb), minutes, 4000)
    for minutes, mb in ((1.69, 64), (10, 307)):
        with pytest.raises(UserError):
            stage.refuse_backlog(Replay(max_memory_mb=mb), minutes, 4000)
    with pytest.raises(UserError, match="allowed: no backlog, or max_memory_mb: "):
        stage.refuse_backlog(Replay(max_memory_mb=64), 1, 1e6)


def test_a_backlog_within_the_allowed_age_is_none_and_refused(tmp_path: Path) -> None:
    said = r"catchup\.minutes: found 0\.005, allowed: more than 0\.00833, which is search\.max_age: 500ms"
    with pytest.raises(UserError, match=said):
        bench_of(tmp_path, minutes=0.005)


def test_without_a_rate_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path, rate=None)
    with pytest.raises(
        UserError, match=r"^e\.all\.known: no sustainable rate of this run; run the stage search first$"
    ):
        caught_up(bench, monkeypatch)
    records = Records(bench.benchmark, bench.store, "r")
    holes = [block.what for block in cells_section.section(records).parts[0].blocks if isinstance(block, Hole)]
    assert "No catch-up" in holes


def test_seconds_whose_interval_reaches_the_patience_are_not_claimed() -> None:
    """Longer ones were not seen: those that were are the faster ones."""
    section = Catchup(minutes=5, patience=4)
    for live in ([600.0, 650.0, 620.0], [1190.0]):
        assert stage.live_of(live, section) == spread_of(live) is not None
    for live in ([600.0, 1100.0, 700.0], [1100.0, 1150.0, 1190.0], [1196.0]):
        assert spread_of(live) is not None
        assert stage.live_of(live, section) is None
    assert stage.live_of([600.0, None], section) is None


def details_of(*batches: dict[str, Any]) -> Details:
    """A trial that began at second 100, with these micro-batches by the engine's own account."""
    system = {"batches": [{"batch_id": nth, "ends": [], **one} for nth, one in enumerate(batches)]}
    return cast(Details, {"drivers": [{"start_wall_ns": 100 * 10**9}], "system": system})


def test_peaks_are_those_of_the_catch_up_and_not_of_what_follows() -> None:
    """Samples see what the second batch has left; what the first one left, and the second evicts, its account tells."""
    first, second = Vitals(1.0), Vitals(1.0)
    first.series["resident_memory"] = [(0.0, 5.0), (1.0, 7.0), (2.0, 6.0), (3.0, 9.0)]
    second.series["resident_memory"] = [(0.0, 4.0), (1.0, 3.0), (9.0, 8.0)]
    first.series["state_rows"] = second.series["state_rows"] = [(0.0, 0.0)]
    first.series["state_bytes"] = [(0.0, 1.0)]
    memory_only = {"resident_memory": (7.0, 8.0)}
    told = [
        ({"at": 100.1, "state_rows": 900}, {"at": 101.5, "state_rows": 30}, {"at": 101.6, "state_rows": 1000}),
        ({"at": 100.1, "state_rows": 0}, {"at": 130.0, "state_rows": 800}),
    ]
    for batches, state in ((told, {"state_rows": (900.0, 800.0)}), (((), ()), {"state_rows": (0.0, 0.0)})):
        of_first, of_second = (details_of(*of) for of in batches)
        found = stage.peaks_of([(of_first, first, 1.5), (of_second, second, None)])
        assert {one.name: one.each for one in found} == memory_only | state
    stateless = details_of({"at": 100.1, "rows": 5})
    assert [one.name for one in stage.peaks_of([(stateless, second, None)])] == ["state_rows", "resident_memory"]
    assert not [*stage.peaks_of([])], "no repeat is valid"
    assert not [*stage.peaks_of([(stateless, Vitals(1.0), None)])], "none is no 0"


@pytest.mark.parametrize(
    ("length", "text"),
    [
        ((660.0, 600.0, 720.0), "11 minutes (10 to 12)"),
        ((1.4, 1.2, 1.7), "1.4 seconds (1.2 to 1.7)"),
        ((89.0, 85.0, 93.0), "89 seconds (85 to 93)"),
        ((6.0 * 3600, 5.5 * 3600, 100 * 3600), "6 hours (5.5 to 100)"),
        ((300.0, None, None), "5 minutes"),
        ((1.0, None, None), "1 second"),
    ],
)  # fmt: skip
def test_a_length_has_the_unit_in_which_it_is_read(length: tuple[float, float | None, float | None], text: str) -> None:
    assert lengths(*length) == text


def test_a_repeat_whose_system_failed_has_no_figure_and_leaves_none_to_the_others() -> None:
    looks = tuple(Sample(at, max(0.0, 5.0 - at), 0, 1000 * at) for at in range(20))
    died, gone = "the system died", "the driver failed: no memory"
    for why, failure, drained, failed in (
        (died, None, True, False), (gone, "it lost its driver", True, False), (died, died, True, True),
        (None, None, False, True), (UNENDED, None, False, True), (gone, None, False, False),
    ):  # fmt: skip
        seen = TrialObservation(1000, 60, looks, 0, 0, clock=looks, invalid=why)
        repeat = stage.repeat_of(uncompared(seen, {"system": {"failure": failure}, "drained": drained}), 1.0)
        assert (repeat.valid, repeat.failed, repeat.reason) == (False, failed, why or UNENDED)
        assert (repeat.live_s is None, repeat.taken_per_s is None) == (failed, failed)
    behind = TrialObservation(1000, 60, looks[:4], 0, 0, clock=looks[:4])
    repeat = stage.repeat_of(uncompared(behind, {"system": {}, "drained": False}), 1.0)
    assert (repeat.valid, repeat.failed, repeat.live_s) == (True, False, None), "it was not live when patience ended"
    assert repeat.taken_per_s == 1000


def test_a_backlog_that_the_driver_does_not_hold_says_nothing_of_the_system() -> None:
    looks = tuple(Sample(at / 10, 300.0 + at / 10, 0, 0) for at in range(5))
    seen = TrialObservation(1000, 60, looks, 0, 0, clock=looks, overflow=True)
    why = "the driver's queues do not hold the backlog: raise replay.max_memory_mb"
    unheld = {"outcome": "inconclusive", "reason": why}
    trial = uncompared(seen, {"system": {}, "drained": False}).model_copy(update=unheld)
    repeat = stage.repeat_of(trial, 1.0)
    assert (repeat.valid, repeat.failed, repeat.reason) == (False, False, why)
    slow = stage.repeat_of(trial.model_copy(update={"outcome": "unsustainable"}), 1.0)
    assert (slow.valid, slow.live_s) == (True, None)


@pytest.mark.parametrize(("counted_in", "told"), [("events", 7), ("groups of events", None)])
def test_groups_that_an_engine_dropped_are_no_events(counted_in: str, told: int | None) -> None:
    looks = tuple(Sample(at, max(0.0, 5.0 - at), 0, 1000 * at) for at in range(20))
    measured = uncompared(TrialObservation(1000, 60, looks, 0, 0, clock=looks), {"system": {}, "drained": True})
    own = Dropped(kind="by its own count", sentence="", count=7, offered=60, counted_in=counted_in)
    assert stage.repeat_of(measured.model_copy(update={"dropped": own}), 1.0).dropped == told


def test_sentences_say_what_was_measured_and_what_was_not(tmp_path: Path) -> None:
    repeat = Repeat(valid=True, live_s=280.0, taken_per_s=30_000.0, offered=1000, correct=True, dropped=5)
    run = CatchupRun(
        plan="p", fraction=0.5, rate_events_per_s=10_000, behind_s=300, most_s=1200, max_age_s=10,
        live_s=Spread(value=280, low=250, high=310, samples=3), taken_per_s=Spread(value=30_000, samples=3),
        hour=Needed("claimed", 1800, 1600, 2000), repeats=(repeat, repeat),
    )  # fmt: skip
    assert run.sentence == (
        "after 5 minutes of standstill it is live within 4.7 minutes (4.2 to 5.2); it takes 30,000 events/s while "
        "10,000 come; after an hour of standstill at this rate it needs 30 minutes (27 to 33), extrapolated from "
        "5 minutes"
    )
    assert (run.dropped, run.correct) == ((10, 2000), True)
    lost = repeat.model_copy(update={"valid": False, "reason": "the driver limited this trial"})
    few = run.model_copy(update={"repeats": (repeat, lost, repeat)})
    assert few.sentence == f"{run.sentence}; 2 of 3 repeats count"
    assert few.dropped == run.dropped
    bench = bench_of(tmp_path)
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    cell_run.directory.mkdir(parents=True)
    few.write(cell_run.directory / "catchup.json")
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r")).parts[0].blocks
    [note] = [block for block in shown if isinstance(block, Note)]
    assert note.text == f"A{run.after_an_hour[1:]}. 2 of 3 repeats count."
    assert run.model_copy(update={"live_s": None}).sentence.startswith(
        "the interval of the seconds until it is live reaches the patience of 20 minutes; it takes "
    )
    late = run.model_copy(update={"live_s": None, "repeats": (repeat.model_copy(update={"live_s": None}),)})
    assert late.not_within == "it was not live in 1 of 1 repeat, which last 20 minutes at most"
    told = late.model_copy(update={"taken_per_s": Spread(value=30_000, low=20_000, high=40_000, samples=3)})
    # 2.9 million events wait beyond the 10 s, and 20,000 a second are worked off
    assert told.not_within == f"{late.not_within}; by what it takes it needs 2.4 minutes (1.6 to 4.8)"
    unknown = run.model_copy(update={"hour": Needed("not known", reason="why"), "live_s": None})
    assert unknown.after_an_hour == "what it needs after an hour of standstill is not known: why"
    dead = repeat.model_copy(update={"valid": False, "failed": True, "reason": "the system died", "live_s": None})
    assert run.model_copy(update={"live_s": None, "repeats": (repeat, dead)}).sentence.startswith(
        "1 of 2 repeats failed: the system died; it takes "
    )
    wrong = repeat.model_copy(update={"correct": False, "valid": False, "reason": "output wrong: 3 rows"})
    voided = run.model_copy(update={"repeats": (repeat, wrong)})
    assert (voided.sentence, voided.correct) == ("void: output wrong: 3 rows", False)
