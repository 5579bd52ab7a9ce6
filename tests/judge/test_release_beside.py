"""Other measurements beside a release check: figures are compared and decide nothing, answers are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.compare import beside
from streamgauge.bench.compare.beside import Compared, OneSide
from streamgauge.bench.compare.release_rules import decide, series
from streamgauge.bench.measure import timing
from streamgauge.bench.measurements import USUAL
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck, Suffered
from streamgauge.records.result import Result
from tests.judge.repetitions import P50, rounds
from tests.measure.benches import write_bench


def figure(metric: str, value: float | None, half: float | None = None, why: str = "") -> Result:
    ends = (None, None) if half is None or value is None else (value - half, value + half)
    return Result(
        "b", "e", "w", "s", "streaming", metric, "s", value, "r", "c", low=ends[0], high=ends[1], valid=not why,
        reason=why, machine={}, software={},
    )  # fmt: skip


def test_figures_beside_are_compared_by_their_intervals_alone() -> None:
    old = [*(figure(one, 10, 1) for one in "abce"), figure("d", 10), figure("g", 0)]
    new = [figure("a", 12.5, 1), figure("b", 11.5, 1), figure("c", 5, 1), figure("d", 99, 1), figure("g", 0)]
    remarked = replace(figure("f", 1, 1), reason="2 of 3 trials count")
    new += [figure("e", 3, why="its answers were wrong"), remarked]
    found = beside.figures("e.w", OneSide(old), OneSide(new))
    assert [(one.metric, one.said) for one in found] == [
        ("a", "higher"), ("b", "no difference that shows"), ("c", "lower"), ("e", "its answers were wrong"),
        ("d", "one of them has no interval"), ("g", "the same"), ("f", "one side has none"),
    ]  # fmt: skip
    assert [one.text for one in found[:1] + found[3:]] == [
        "10 (9 to 11) → 12.5 (11.5 to 13.5) s: higher", "10 (9 to 11) → — s: its answers were wrong",
        "10 → 99 (98 to 100) s: one of them has no interval", "0 → 0 s: the same",
        "— → 1 (0 to 2) s: one side has none",
    ]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), [(0, 2, "higher"), (2, 1, "lower"), (0, 0, "the same")])
def test_numbers_of_trials_are_compared_as_counts(old: float, new: float, said: str) -> None:
    sides = [OneSide([replace(figure("recovery_kill_wrong", one), unit="trials")]) for one in (old, new)]
    [one] = beside.figures("e.w", *sides)
    assert one.said == said


def test_answers_of_a_measurement_that_stands_beside_are_judged_as_those_of_the_suite() -> None:
    statuses = (True, False, None)
    baseline = OneSide(outputs={f"{old}, {new}": old for old in statuses for new in statuses} | {"gone": True})
    candidate = OneSide(outputs={f"{old}, {new}": new for old in statuses for new in statuses} | {"more": True})
    reasons = beside.outputs("e.w", "recovery", baseline, candidate)
    assert {(one.what, one.state, one.why) for one in reasons} == {
        ("e.w True, False", "failed", "correct → wrong"),
        ("e.w True, None", "open", "correct → not compared"),
        ("e.w False, True", "note", "wrong → correct"),
        ("e.w False, False", "note", "wrong with both"),
        ("e.w False, None", "open", "wrong → not compared"),
        ("e.w None, True", "note", "not compared → correct"),
        ("e.w None, False", "failed", "not compared → wrong"),
        ("e.w None, None", "note", "not compared with both"),
        ("e.w gone", "open", "correct → not measured"),
        ("e.w more", "note", "not measured → correct"),
    }
    [passed] = series(rounds(), {P50: 0.1})
    assert decide(beside.outputs("e.w", "soak", OneSide(outputs={"soak": False}), OneSide(outputs={"soak": False})),
                  [passed]).decision == "go"  # fmt: skip
    measured = OneSide(outputs={"soak": True, "search": True})
    failed = OneSide(outputs={"search": False}, problem="no rate counts")
    assert decide(beside.outputs("e.w", "soak", measured, OneSide(problem="no rate counts")), [passed]).line == (
        "inconclusive: e.w, candidate: soak was not measured: no rate counts"
    )
    assert [(one.what, one.state, one.why) for one in beside.outputs("e.w", "soak", measured, failed)] == [
        ("e.w, candidate", "open", "soak was not measured: no rate counts"),
        ("e.w search", "failed", "correct → wrong"),
    ]


def test_answers_of_which_some_were_compared_and_a_search_that_was_not_are_no_reason_against_a_release() -> None:
    whole, lost = Struck(valid=True, correct=True), Struck(valid=False, reason="its driver died")
    run = RecoveryRun(
        plan="p", fraction=None, rate_events_per_s=1, seconds=60, cut_seconds=2, max_age_s=1,
        faults=(Suffered(fault="kill", trials=(whole,) * 4 + (lost,)), Suffered(fault="cut", trials=(lost,))),
    )  # fmt: skip
    assert (run.outputs, run.partly) == ({"kill": None, "cut": None}, {"kill": (4, 5)})
    [passed] = series(rounds(), {P50: 0.1})
    baseline = OneSide(outputs={"kill": True, "search": True})
    outputs: dict[str, Compared] = {**run.outputs, **run.partly, "search": None}
    candidate = OneSide(outputs=outputs)
    assert [(one.what, one.state, one.why) for one in beside.outputs("e.w", "recovery", baseline, candidate)] == [
        ("e.w kill", "note", "correct → 4 of 5 trials were compared"),
        ("e.w cut", "open", "not measured → not compared"),
    ]
    del outputs["cut"]
    assert decide(beside.outputs("e.w", "recovery", baseline, candidate), [passed]).decision == "go"


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [(True, (2, 3), "note"), (True, (1, 3), "open"), (True, (1, 2), "open"), (False, (1, 3), "open"),
     ((2, 3), (1, 3), "open"), ((1, 3), None, "open"), ((1, 3), False, "failed"), ((1, 3), (1, 3), "note"),
     (None, (1, 3), "note"), ((1, 5), (2, 5), "note"), ((1, 3), True, "note")],
)  # fmt: skip
def test_answers_of_few_trials_count_only_against_a_baseline_of_no_more(
    old: Compared, new: Compared, state: str
) -> None:
    sides = (OneSide(outputs={"kill": one}) for one in (old, new))
    assert [one.state for one in beside.outputs("e.w", "recovery", *sides)] == [state]


def test_what_stands_beside_needs_its_section_and_something_that_decides(tmp_path: Path) -> None:
    wrong: list[tuple[list[str], dict[str, Any], str]] = [
        (["soak"], {"soak": {}}, r"release\.compare: found soak, of which none decides, allowed: such as latency, too"),
        (["cpu", "scaling"], {}, r"release\.compare: found scaling, allowed: with a section scaling"),
    ]
    for compare, sections, why in wrong:
        with pytest.raises(UserError, match=why):
            write_bench(tmp_path, release={"rate": 10, "compare": compare}, **sections)
    soak: dict[str, Any] = {"soak": {"minutes": 20}, "release": {"rate": 10, "compare": ["cpu", "soak"]}}
    benchmark = write_bench(tmp_path, **soak).benchmark
    without = write_bench(tmp_path, release={"rate": 10, "compare": ["cpu"]}).benchmark
    more = timing.release_seconds(benchmark, USUAL) - timing.release_seconds(without, USUAL)
    assert more == pytest.approx(2 * (1200 + 2 * USUAL.start_s))
