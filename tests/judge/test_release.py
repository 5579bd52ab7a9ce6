"""The release verdict from records alone: each outcome for its own reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.canonical import has_its_sha256, with_sha256
from streamgauge.bench.compare.release_rules import (
    answers,
    capabilities,
    decide,
    left_out,
    outputs,
    series,
    suspects,
)
from streamgauge.records.answers import Ability, Answer, FeatureAbility, Mode, Status
from streamgauge.records.release import JudgedSeries, Reason, Repetition, Side, State
from tests.judge.repetitions import CPU, P50, TOLERANCE, repetition, rounds


def row(query: str, status: Status = "correct", rows: int | None = 10, hashed: str | None = "aa",
        why: str | None = None, mode: Mode = "streaming") -> Answer:  # fmt: skip
    return Answer(query=query, mode=mode, status=status, rows=rows, hash=hashed, why=why)


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


def test_a_candidate_that_patience_has_ended_took_longer_and_cannot_pass() -> None:
    found = series(rounds(bounds=(P50,)), TOLERANCE)
    why = "4 of the candidate's 4 ended by their patience, so they took longer"
    assert [(one.state, one.reason == why) for one in found] == [("open", True), ("passed", False)]
    slow = series(rounds(1.3, bounds=(CPU,)), TOLERANCE)
    assert [one.state for one in slow] == ["passed", "failed"], "what is slower at least is slower"
    assert repetition("candidate", 1, {CPU: 40.0}, bounds=(CPU,)).text == f"{CPU} (at least) 40"


def test_too_few_sound_repetitions_are_inconclusive() -> None:
    void = series(rounds(void="the driver limited this trial"), TOLERANCE)
    assert {one.state for one in void} == {"open"}
    assert void[0].reason == (
        "8 and 0 sound repetitions, at least 4 of each are needed; the last one is void: the driver limited this trial"
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


@pytest.mark.parametrize(
    ("candidate", "baseline", "state"),
    [("++++", "++++", None), ("+-++", "++++", "note"), ("--++", "++++", "open"), ("--++", "--++", "note"),
     ("---+", "-+++", "open"), ("-+", "++", "note")],
)  # fmt: skip
def test_a_candidate_half_of_which_does_not_count_leaves_the_check_open(
    candidate: str, baseline: str, state: State | None
) -> None:
    sides: list[tuple[Side, str]] = [("candidate", candidate), ("baseline", baseline)]
    lines = [
        repetition(side, n, void="it died" if c == "-" else None) for side, all_ in sides for n, c in enumerate(all_)
    ]
    why = f"{candidate.count('-')} of {len(candidate)} repetitions do not count; the last one: it died"
    assert left_out(lines) == ([Reason("output", state, "e.w, candidate", why)] if state else [])


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
