"""The release verdict from records alone: each outcome for its own reason."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamgauge.app.nights import release_check
from streamgauge.base.canonical import has_its_sha256, with_sha256
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.compare.release_rules import (
    TURNS,
    Compared,
    OneSide,
    answers,
    beside,
    beside_outputs,
    capabilities,
    decide,
    outputs,
    series,
    sides,
    suspects,
)
from streamgauge.bench.measure import timing
from streamgauge.bench.measurements import USUAL
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck, Suffered
from streamgauge.config import RELEASE_RATE
from streamgauge.records.answers import Ability, Answer, FeatureAbility, Mode, Status
from streamgauge.records.release import JudgedSeries, Reason, Repetition, Side
from streamgauge.records.result import Result
from streamgauge.results.report.release_page import build
from tests.measure.benches import write_bench

P50, CPU = "processing_latency_ms_p50", "system_cpu_us_per_event"
TOLERANCE = {P50: 0.15, CPU: 0.1}


def row(query: str, status: Status = "correct", rows: int | None = 10, hashed: str | None = "aa",
        why: str | None = None, mode: Mode = "streaming") -> Answer:  # fmt: skip
    return Answer(query=query, mode=mode, status=status, rows=rows, hash=hashed, why=why)


def repetition(side: Side, number: int, values: dict[str, float] | None = None, **more: Any) -> Repetition:
    return Repetition(cell="e.w", side=side, round=number, values=values or {}, **more)


def rounds(slower: float = 1.0, noise: float = 0.01, count: int = 4, seed: int = 1, **more: Any) -> list[Repetition]:
    """Repetitions in turns; only the candidate's CPU is slower."""
    draw = random.Random(seed)

    def one(side: Any, number: int) -> Repetition:
        factor = slower if side == "candidate" else 1.0
        values = {P50: 200 * draw.lognormvariate(0, noise), CPU: 40 * factor * draw.lognormvariate(0, noise)}
        mine = more if side == "candidate" else {}
        return Repetition(cell="e.w", side=side, round=number, values=values, **mine)

    return [one(side, number) for number in range(1, count + 1) for side in TURNS]


def judged(repetitions: list[Repetition]) -> list[tuple[str, str]]:
    return [(one.metric, one.state) for one in series(repetitions, TOLERANCE)]


def test_equal_answers_give_no_reason() -> None:
    assert answers([row("q5"), row("q7")], [row("q7"), row("q5")]) == []


def test_a_query_that_neither_side_answered_is_missing_and_no_pass() -> None:
    found = answers([row("q5")], [row("q5")], [("q5", "streaming"), ("q7", "streaming")])
    assert found == [Reason("answer", "open", "q7 in streaming", "neither side gave an answer")]


@pytest.mark.parametrize(
    ("old", "new", "state", "why"),
    [
        (row("q5"), row("q5", rows=11), "failed", "10 → 11 rows"),
        (row("q5"), row("q5", hashed="bb"), "failed", "10 rows, with other values"),
        (row("q5"), row("q5", "wrong", 9, why="9 rows, 10 expected"), "failed",
         "correct → wrong (9 rows, 10 expected)"),
        (row("q5"), row("q5", "unsupported", None, None, "no such"), "failed", "correct → unsupported (no such)"),
        (row("q5", "unsupported", None, None), row("q5", "wrong", why="odd"), "failed", "unsupported → wrong (odd)"),
        (row("q5", "wrong"), row("q5"), "note", "wrong → correct"),
        (row("q5", "wrong"), row("q5", "wrong", 7, why="bad"), "note", "wrong with both: bad"),
        (row("q5"), None, "failed", "the candidate gave no answer"),
        (None, row("q5"), "open", "the baseline gave no answer"),
    ],
)  # fmt: skip
def test_a_different_answer_says_how(old: Any, new: Any, state: Any, why: str) -> None:
    found = answers([old] if old else [], [new] if new else [])
    assert found == [Reason("answer", state, "q5 in streaming", why)]


def test_a_lost_feature_fails_and_a_won_one_is_noted() -> None:
    def can(feature: str, status: Ability, why: str | None = None) -> FeatureAbility:
        return FeatureAbility(feature=feature, system="s", mode="batch", status=status, why=why)

    before = [can("join", "works"), can("top N", "unsupported", "q19: no"), can("filter", "works")]
    after = [can("join", "unsupported", "q3: no"), can("top N", "works"), can("filter", "works")]
    assert capabilities(before, after) == [
        Reason("capability", "failed", "join in batch", "works → unsupported (q3: no)"),
        Reason("capability", "note", "top N in batch", "unsupported → works"),
    ]


def test_the_same_against_itself_is_go() -> None:
    found = decide([], series(rounds(), TOLERANCE))
    assert (found.decision, found.reasons) == ("go", [])
    assert found.line == "go: no answer is worse, all series are within their tolerance"
    assert [(one.n_baseline, one.n_candidate) for one in found.series] == [(8, 4)] * 2


def test_a_rate_that_neither_side_carries_compares_queues_and_is_no_go_ahead() -> None:
    overloaded = [one.model_copy(update={"outcome": "unsustainable"}) for one in rounds()]
    found = decide([], series(overloaded, TOLERANCE))
    assert found.decision == "inconclusive"
    assert "neither side sustains this rate" in found.line
    better = [
        one.model_copy(update={"outcome": "unsustainable"}) if one.side != "candidate" else one for one in rounds()
    ]
    assert decide([], series(better, TOLERANCE)).decision == "go"


def test_a_slow_candidate_is_no_go_by_the_metric_that_is_slow() -> None:
    slow = series(rounds(1.3), TOLERANCE)
    assert [(one.metric, one.state) for one in slow] == [(P50, "passed"), (CPU, "failed")]
    assert suspects(slow) == [("e.w", False)]
    found = decide([], slow)
    assert found.decision == "no-go"
    [reason] = found.reasons
    assert (reason.kind, reason.what) == ("performance", f"e.w {CPU}")
    assert reason.why.startswith("slower by ")


def test_a_faster_candidate_passes_however_noisy_it_is() -> None:
    assert judged(rounds(0.5, noise=0.05)) == [(P50, "passed"), (CPU, "passed")]


def test_noise_as_large_as_the_tolerance_is_inconclusive_and_never_a_pass() -> None:
    found = series(rounds(noise=0.4), TOLERANCE)
    assert {one.state for one in found} == {"open"}
    assert decide([], found).decision == "inconclusive"
    assert all((one.noise_floor or 0) > one.tolerance for one in found)


def test_too_few_sound_repetitions_are_inconclusive() -> None:
    void = series(rounds(void="the driver limited this trial"), TOLERANCE)
    assert {one.state for one in void} == {"open"}
    assert void[0].reason == (
        "8 and 0 sound repetitions, at least 4 and 4 are needed; the last one is void: the driver limited this trial"
    )
    assert decide([], series(rounds(count=3), TOLERANCE)).decision == "inconclusive"
    assert decide([], []).reasons == [Reason("performance", "open", "series", "nothing was measured")]
    assert answers([], []) == [Reason("answer", "open", "answers", "no query was asked")]


def test_a_candidate_that_does_not_carry_the_rate_is_no_go() -> None:
    found = decide([], series(rounds(outcome="unsustainable"), TOLERANCE))
    assert found.decision == "no-go"
    assert {reason.why for reason in found.reasons} == {"the candidate does not sustain this rate; the baseline does"}


def test_a_wrong_output_while_measuring_is_no_go_and_the_baselines_leaves_it_open() -> None:
    assert outputs(rounds(wrong="9 rows, 10 expected")) == [
        Reason("output", "failed", "e.w, candidate", "9 rows, 10 expected")
    ]
    [unknown] = outputs([repetition("candidate", n, compared=False) for n in (1, 2)])
    assert (unknown.state, unknown.what) == ("open", "e.w, candidate")
    [reason] = outputs([repetition("control", 1, wrong="odd")])
    assert reason.state == "open"


def test_what_fails_outweighs_what_is_open_and_is_told_first() -> None:
    reasons = [
        Reason("answer", "open", "q1", "?"),
        Reason("answer", "note", "q2", "!"),
        Reason("answer", "failed", "q3", "x"),
    ]
    noisy = JudgedSeries(cell="e.w", metric=CPU, state="open", reason="noisy", tolerance=0.1)
    found = decide(reasons, [noisy])
    assert [reason.what for reason in found.reasons] == ["q3", "q1", f"e.w {CPU}", "q2"]
    assert found.line == f"no-go: q3: x; q1: ?; e.w {CPU}: noisy"


@given(slower=st.floats(0.3, 3), noise=st.floats(0, 0.3), count=st.integers(1, 6), seed=st.integers(0, 999))
def test_go_means_that_no_interval_holds_a_slowdown_of_the_tolerance(
    slower: float, noise: float, count: int, seed: int
) -> None:
    found = decide([], series(rounds(slower, noise, count, seed), TOLERANCE))
    small = [one.interval is not None and one.interval[1] <= 1 + one.tolerance for one in found.series]
    assert (found.decision == "go") == all(small)


def test_the_gate_keeps_its_error_rates() -> None:
    """Checks that at 3 % noise equal systems are never no-go, and a slowdown of a quarter is never go."""
    equal = [decide([], series(rounds(1.0, 0.03, 8, seed), TOLERANCE)).decision for seed in range(100)]
    slow = [decide([], series(rounds(1.25, 0.03, 8, seed), TOLERANCE)).decision for seed in range(100)]
    assert "no-go" not in equal
    assert equal.count("go") >= 95
    assert slow.count("no-go") >= 98
    assert "go" not in slow


def ladders(kept: Sequence[float], **more: Any) -> list[Repetition]:
    """Pairs of processes; the candidate's keeps such a part of the rate of the baseline's."""
    draw = random.Random(len(kept))
    found = []
    for number, part in enumerate(kept, 1):
        rate = 50_000 * draw.lognormvariate(0, 0.3)  # what a drift of the machine does to both
        for side in sides(number):
            own = rate * part if side == "candidate" else rate
            found.append(repetition(side, number, {RELEASE_RATE: own}, ladder=True, **more))
    return found


def test_pairs_go_a_b_b_a() -> None:
    order = [side[0] for number in (1, 2, 3, 4) for side in sides(number)]
    assert "".join(order) == "bccbbccb"


@pytest.mark.parametrize(
    ("kept", "state", "why"),
    [
        ([0.98, 1.0, 1.02], "passed", "the interval rules out a loss of more than 10%"),
        ([0.78, 0.8, 0.82, 0.8], "failed", "the candidate keeps 80.0% of the rate; the interval excludes 90%"),
        ([0.88, 0.9, 0.92], "open", "the interval neither rules out nor confirms a loss of 10%; 3 such pairs would "
         "find a loss of 15% in 90% of checks"),
        ([0.5, 0.5], "open", "2 sound pairs of processes, at least 3 are needed"),
    ],
)  # fmt: skip
def test_a_rate_is_judged_by_the_interval_of_its_pairs(kept: list[float], state: str, why: str) -> None:
    repetitions = rounds() + ladders(kept)
    found = {one.metric: one for one in series(repetitions, {**TOLERANCE, RELEASE_RATE: 0.1})}
    assert (found[RELEASE_RATE].state, found[RELEASE_RATE].reason) == (state, why)
    assert {found[metric].state for metric in TOLERANCE} == {"passed"}, "each metric has its own repetitions"
    assert suspects(found.values()) == ([] if state == "passed" else [("e.w", True)])
    row = found[RELEASE_RATE]
    if len(kept) < 3:
        assert row.interval is None
        return
    logs = [math.log(part) for part in kept]
    half = stats.t.ppf(0.95, len(kept) - 1) * stdev(logs) / math.sqrt(len(kept))
    assert row.ratio == pytest.approx(math.exp(mean(logs)))
    assert row.interval == pytest.approx((math.exp(mean(logs) - half), math.exp(mean(logs) + half)))
    assert (row.n_baseline, row.n_candidate) == (len(kept), len(kept))


def test_a_suspect_rate_alone_is_measured_again_and_its_figures_stand_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(
        _self: release_check._Check, pair: tuple[str, str], side: Side, number: int, _token: int, *, ladder: bool
    ) -> Repetition:
        part = 0.7 + number / 100 if side == "candidate" else 1.0
        values = {RELEASE_RATE: 9_000 * part} if ladder else {CPU: 40 + number / 10}
        return Repetition(cell=".".join(pair), side=side, round=number, values=values, ladder=ladder)

    monkeypatch.setattr(release_check._Check, "_repetition", measured)
    known = {"engine": "known"}
    release = {"rate": 1000, "queries": [], "compare": ["rate", "cpu"], "reruns": 1}
    bench = write_bench(tmp_path, systems=[{"name": "old", **known}, {"name": "new", **known}], release=release)
    directory = bench.store.run("check")
    found = release_check.run(bench.benchmark, bench.store, "old", "new", directory)

    kept = [(one["round"], one["side"], one["ladder"]) for one in read_jsonl(directory / "release.jsonl")]
    assert kept == [
        *((n, side, False) for n in range(1, 5) for side in TURNS),
        *((n, side, True) for n in range(1, 6) for side in sides(n)),
    ]
    assert (found.verdict, [one.state for one in found.series]) == ("no-go", ["failed", "passed"])
    assert found.line == (
        "no-go: e.all sustainable_rate_events_per_s (estimated): the candidate keeps 73.0% of the rate; the interval "
        "excludes 90%"
    )
    rows = {(r["system"], r["metric"]): r for r in read_jsonl(directory / "results.jsonl")}
    rate = rows["new", "sustainable_rate_events_per_s_in_turns"]
    assert (rate["value"], rate["unit"], rate["samples"], rate["claim"]) == (6570, "events/s", 5, "estimated")
    assert rows["old", f"{CPU}_at_1000_per_s"]["samples"] == 8
    assert "73.0% of the rate" in build(directory).read_text()


def test_the_lines_of_a_check_mark_a_rate_that_is_not_proven() -> None:
    for claim, mark in (("proven", ""), ("estimated", " (estimated)")):
        first, *others = ladders([0.78, 0.8, 0.82, 0.8], claim="proven")
        judged = series([first.model_copy(update={"claim": claim}), *others], {RELEASE_RATE: 0.1})
        assert decide([], judged).line.startswith(f"no-go: e.w {RELEASE_RATE}{mark}: the candidate keeps 80.0%")
        assert [one.name for one in judged] == [f"e.w {RELEASE_RATE}{mark}"]
    [one, _] = ladders([1.0], claim="estimated")
    assert one.text.startswith(f"{RELEASE_RATE} (estimated) ")


def test_a_rate_that_only_the_driver_limits_is_no_pair() -> None:
    void = ladders([1.0, 1.0, 1.0], void="The system sustained all that was offered, so it may carry more.")
    [one] = series(void, {RELEASE_RATE: 0.1})
    assert one.reason.startswith("0 sound pairs of processes, at least 3 are needed; the last one is void: The system")
    assert decide([], [one]).decision == "inconclusive"


def test_the_gate_of_rates_keeps_its_error_rates() -> None:
    """Checks eight pairs, whose processes differ by 5 %: at a tolerated loss of 10 % a wrong verdict is rare."""

    def verdicts(kept: float) -> list[str]:
        draw = random.Random(round(1000 * kept))
        checks = ([kept * draw.lognormvariate(0, 0.05 * math.sqrt(2)) for _ in range(8)] for _ in range(300))
        return [series(ladders(check), {RELEASE_RATE: 0.1})[0].state for check in checks]

    assert verdicts(1.0).count("failed") == 0
    assert verdicts(1.0).count("passed") >= 285
    at_the_bound = verdicts(0.9)
    assert max(at_the_bound.count("failed"), at_the_bound.count("passed")) <= 25, (
        "5 % each; 25 of 300 is beyond 1 in 100"
    )
    assert verdicts(0.8).count("failed") >= 265
    assert verdicts(0.8).count("passed") == 0


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
    found = beside("e.w", OneSide(old), OneSide(new))
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
    [one] = beside("e.w", *sides)
    assert one.said == said


def test_answers_of_a_measurement_that_stands_beside_are_judged_as_those_of_the_suite() -> None:
    statuses = (True, False, None)
    baseline = OneSide(outputs={f"{old}, {new}": old for old in statuses for new in statuses} | {"gone": True})
    candidate = OneSide(outputs={f"{old}, {new}": new for old in statuses for new in statuses} | {"more": True})
    reasons = beside_outputs("e.w", "recovery", baseline, candidate)
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
    assert decide(beside_outputs("e.w", "soak", OneSide(outputs={"soak": False}), OneSide(outputs={"soak": False})),
                  [passed]).decision == "go"  # fmt: skip
    measured = OneSide(outputs={"soak": True, "search": True})
    failed = OneSide(outputs={"search": False}, problem="no rate counts")
    assert decide(beside_outputs("e.w", "soak", measured, OneSide(problem="no rate counts")), [passed]).line == (
        "inconclusive: e.w, candidate: soak was not measured: no rate counts"
    )
    assert [(one.what, one.state, one.why) for one in beside_outputs("e.w", "soak", measured, failed)] == [
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
    assert [(one.what, one.state, one.why) for one in beside_outputs("e.w", "recovery", baseline, candidate)] == [
        ("e.w kill", "note", "correct → 4 of 5 trials were compared"),
        ("e.w cut", "open", "not measured → not compared"),
    ]
    del outputs["cut"]
    assert decide(beside_outputs("e.w", "recovery", baseline, candidate), [passed]).decision == "go"


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
    assert [one.state for one in beside_outputs("e.w", "recovery", *sides)] == [state]


def test_what_stands_beside_needs_its_section_and_something_that_decides(tmp_path: Path) -> None:
    for compare, sections, why in (
        (["soak"], {"soak": {}}, r"release\.compare: found soak, of which none decides, allowed: such as latency, too"),
        (["cpu", "scaling"], {}, r"release\.compare: found scaling, allowed: with a section scaling"),
    ):
        with pytest.raises(UserError, match=why):
            write_bench(tmp_path, release={"rate": 10, "compare": compare}, **sections)
    soak = {"soak": {"minutes": 20}, "release": {"rate": 10, "compare": ["cpu", "soak"]}}
    benchmark = write_bench(tmp_path, **soak).benchmark
    without = write_bench(tmp_path, release={"rate": 10, "compare": ["cpu"]}).benchmark
    more = timing.release_seconds(benchmark, USUAL) - timing.release_seconds(without, USUAL)
    assert more == pytest.approx(2 * (1200 + 2 * USUAL.start_s))


def test_a_manifest_tells_when_it_was_changed() -> None:
    record = with_sha256({"verdict": "no-go", "systems": {"b": 1, "a": 2}})
    assert has_its_sha256(record)
    assert has_its_sha256({"systems": {"a": 2, "b": 1}, "sha256": record["sha256"], "verdict": "no-go"})
    assert record["sha256"] == "d3d0561c799e269d29a565478270283d629dedf9644109aa43e55377d37ca4d1"
    assert not has_its_sha256({**record, "verdict": "go"})
    assert not has_its_sha256({"verdict": "no-go"})


def test_a_reason_that_many_queries_share_is_said_once_with_their_number() -> None:
    reasons = [Reason("answer", "failed", f"q{n} in batch", "the candidate gave no answer") for n in range(6)]
    found = decide([*reasons, Reason("answer", "failed", "q9 in batch", "5 → 4 rows")], [])
    named = "6 × (q0 in batch, q1 in batch, q2 in batch, q3 in batch, …)"
    assert found.line == f"no-go: {named}: the candidate gave no answer; q9 in batch: 5 → 4 rows"
    assert len(found.reasons) == 7, "the record keeps each of them"
