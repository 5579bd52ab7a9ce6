"""Tests how pairs become a verdict: small rows in, whole judgements out."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from streamgauge.base.environment import Environment
from streamgauge.base.errors import UserError
from streamgauge.bench.compare import gate_rules
from streamgauge.bench.compare.forms import as_comment, as_junit, sentence
from streamgauge.bench.compare.release_rules import decide
from streamgauge.config import parse
from streamgauge.config.gate import GATE_SPEED, Accepted, Gate, accepted_in
from streamgauge.records.gate import GateCheck, GateRepetition
from streamgauge.records.release import Reason, State

GATE = Gate(rate=100, compare=("speed",))
CELL = "late5.bids"


def line(side: str, number: int, speed: float, **more: object) -> GateRepetition:
    about = {"gate": "k", "cell": CELL, "side": side, "round": number, "values": {GATE_SPEED: speed}, "seconds": 1.0}
    return GateRepetition.model_validate({**about, **more})


def pairs(*slowdowns: float) -> list[GateRepetition]:
    """Pairs whose head is slower by so much; both sides' answers were compared in the first one."""
    lines = []
    for number, slowdown in enumerate(slowdowns, 1):
        asked = {"asked": number == 1, "compared": number == 1}
        lines += [line("baseline", number, 1000, **asked), line("candidate", number, 1000 / (1 + slowdown), **asked)]
    return lines


@pytest.mark.parametrize(
    ("slowdowns", "state", "why"),
    [
        ((0.001, -0.001, 0.002, 0.0), "passed", "a slowdown of 5 % is ruled out"),
        ((0.10, 0.11, 0.10, 0.09), "failed", "slower by 10.0 %, and not by chance"),
        ((0.02, 0.021, 0.02, 0.019), "passed", "a slowdown of 5 % is ruled out"),  # surely slower, but by little
        ((0.05, -0.05, 0.05, -0.04), "open",
         "a slowdown of 5 % is neither ruled out nor shown; 4 such pairs show one of 15 % in nine of ten gates"),
        ((0.5, 0.6), "open", "2 sound pairs of processes, at least 3 are needed"),
    ],
)  # fmt: skip
def test_a_series_is_judged_by_its_bounds(slowdowns: tuple[float, ...], state: str, why: str) -> None:
    [one] = gate_rules.judged(pairs(*slowdowns), [CELL], GATE, last=True)
    assert (one.state, one.reason) == (state, why)
    assert one.slowdowns == pytest.approx(slowdowns)
    assert (one.n_baseline, one.tolerance) == (len(slowdowns), 0.05)


def test_half_pairs_void_ones_and_wrong_ones_do_not_count() -> None:
    lines = [
        *pairs(0.1), line("baseline", 2, 1000), line("candidate", 3, 900, void="a window was lost"),
        line("baseline", 3, 1000), line("candidate", 4, 900, wrong="2 rows"), line("baseline", 4, 1000),
    ]  # fmt: skip
    assert gate_rules.slowdowns(lines, CELL, GATE_SPEED) == pytest.approx([math.log(1.1)])


def test_more_is_slower_but_of_the_speed() -> None:
    cpu = "system_cpu_us_per_event"
    lines = [line("baseline", 1, 1, values={cpu: 4.0}), line("candidate", 1, 1, values={cpu: 5.0})]
    assert gate_rules.slowdowns(lines, CELL, cpu) == pytest.approx([math.log(1.25)])


def test_the_allowed_error_is_dealt_out_over_all_series() -> None:
    lines = pairs(0.031, 0.04, 0.05, 0.045, 0.039)
    alone = gate_rules.judged(lines, [CELL], GATE, last=True)[0]
    among = gate_rules.judged(lines, [CELL, "other.bids"], GATE, last=True)[0]
    assert alone.interval is not None
    assert among.interval is not None
    assert among.interval[0] < alone.interval[0]
    assert among.interval[1] == alone.interval[1]  # each slowdown alone is missed as rarely as before


def test_what_is_accepted_is_taken_off() -> None:
    entry = Accepted(slower_percent=10, author="Ada", reason="exactly once", until=date(2027, 1, 1), cell=CELL)
    lines = pairs(0.10, 0.11, 0.10, 0.09)
    [one] = gate_rules.judged(lines, [CELL], GATE, [entry], last=True)
    assert (one.state, one.reason) == ("passed", "a slowdown of 5 % beyond the accepted 10 % is ruled out")
    assert one.ratio == pytest.approx(1.1, abs=0.001)
    line_ = gate_rules.line_of(decide([], [one]), [one], GATE)
    assert line_.endswith("and a slowdown of 5 % beyond what is accepted is ruled out (compared: speed)")
    assert "3.0 % beyond the accepted 10 %. An equal" in sentence(check(0.1, 0.11, 0.1, 0.09, series=[one]))
    elsewhere = entry.model_copy(update={"cell": "other.bids"})
    assert gate_rules.judged(lines, [CELL], GATE, [elsewhere], last=True)[0].state == "failed"
    cpu_alone = entry.model_copy(update={"compare": "cpu"})
    assert gate_rules.judged(lines, [CELL], GATE, [cpu_alone], last=True)[0].state == "failed"


def test_an_entry_counts_if_it_is_new_and_not_over() -> None:
    day = date(2026, 11, 28)
    old, over, new = (
        Accepted(slower_percent=1, author="Ada", reason=why, until=until)
        for why, until in (("old", date(2027, 1, 1)), ("over", date(2026, 11, 27)), ("new", day))
    )
    elsewhere = new.model_copy(update={"reason": "elsewhere", "cell": "other.bids"})
    cpu = new.model_copy(update={"reason": "cpu", "cell": CELL, "compare": "cpu"})
    listed = gate_rules.acceptances([old, over, new, elsewhere, cpu], [old], day, [(CELL, GATE_SPEED)])
    assert [(entry.reason, entry.state) for _, entry in listed] == [
        ("old", "in the base"), ("over", "expired"), ("new", "counts"), ("elsewhere", "no series"),
        ("cpu", "no series"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {slower_percent: 5, author: Ada, reason: x, until: soon}", "accepted.yaml:1:47: 0.until: found 'soon'"),
        ("- {slower_percent: 5, author: Ada, until: 2027-01-31}", "accepted.yaml:1:3: 0.reason: this key is missing"),
        ("slower: 5", "accepted.yaml: found dict, allowed: a list of accepted slowdowns"),
        ("- [", "accepted.yaml: cannot be read as YAML: "),
        ("- {until: 2027-02-30}", "accepted.yaml: cannot be read as YAML: day is out of range for month"),
    ],
)
def test_a_mistake_in_the_list_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "accepted.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as problem:
        accepted_in(file)
    assert said in str(problem.value)
    assert accepted_in(tmp_path / "none.yaml") == ()


def test_a_wrong_answer_fails_and_one_that_was_not_compared_leaves_it_open() -> None:
    right = pairs(0.0)
    assert gate_rules.reasons_of(right, GATE) == []
    wrong = [right[0], line("candidate", 1, 1000, asked=True, compared=True, wrong="2 rows are missing")]
    assert gate_rules.reasons_of(wrong, GATE) == [
        Reason("output", "failed", f"{CELL}, head", "2 rows are missing"),
    ]  # fmt: skip
    unknown = [right[0], line("candidate", 1, 1000, asked=True, compared=False, unchecked="the driver slipped")]
    why = "its answers were compared with no independent ones: the driver slipped"
    assert gate_rules.reasons_of(unknown, GATE) == [Reason("output", "open", f"{CELL}, head", why)]
    skip = Gate(answers="skip")
    assert [one.state for one in gate_rules.reasons_of(unknown[1:], skip)] == ["note"]
    assert [one.state for one in gate_rules.reasons_of(wrong, skip)] == ["failed"], "a trial for latency has found it"


@pytest.mark.parametrize(
    ("base", "head", "state", "counts"),
    [
        ("+", "+", None, ""),
        ("+", "-", "open", "1 of 1 trials, and the base in 0 of 1"),  # asked again in the next pair
        ("+", "-+", "note", "1 of 2 trials, and the base in 0 of 1"),
        ("+", "-?", "open", "1 of 1 trials, and the base in 0 of 1"),  # a trial that was not clear tells nothing
        ("+", "--", "open", "2 of 2 trials, and the base in 0 of 1"),  # a burst may cover two trials in a row
        ("++", "--", "failed", "2 of 2 trials, and the base in 0 of 2"),
        ("?", "--", "open", "2 of 2 trials, and the base in 0 of 0"),
        ("-", "-", "open", "1 of 1 trials, and the base in 1 of 1"),
        ("--", "--", "note", "2 of 2 trials, and the base in 2 of 2"),
        ("++++", "-+--", "failed", "3 of 4 trials, and the base in 0 of 4"),
    ],
)
def test_a_head_that_misses_the_rate_twice_and_more_often_than_not_fails(
    base: str, head: str, state: State | None, counts: str
) -> None:
    outcomes = {"+": "sustainable", "-": "unsustainable", "?": "inconclusive"}
    lines = [
        line(side, number, 1000, asked=True, compared=True, outcome=outcomes[one])
        for side, trials in (("baseline", base), ("candidate", head))
        for number, one in enumerate(trials, 1)
    ]
    wanted = [Reason("performance", state, CELL, f"the head misses gate.rate in {counts}")] if state else []
    assert gate_rules.reasons_of(lines, GATE) == wanted
    assert gate_rules.asks_again(lines, CELL) is (state == "open")


@pytest.mark.parametrize(
    ("head", "state"),
    [
        ("+ -+ + + -+", "note"), ("-+ +", "note"), ("-+ -+", "open"), ("+ -+ -+", "open"), ("+ --", "failed"),
        ("--", "failed"), ("+ + +", None),
    ],
)  # fmt: skip
def test_a_head_that_does_not_run_twice_in_a_row_fails_and_in_half_of_the_pairs_leaves_it_open(
    head: str, state: State | None
) -> None:
    lines = [
        line("candidate", number, 1000, asked=True, compared=True, ran=one == "+", void=None if one == "+" else "why")
        for number, tries in enumerate(head.split(), 1)
        for one in tries
    ]
    why = f"{head.count('-')} of {len(lines)} processes did not run, and the base's did: why"
    wanted = [Reason("output", state, f"{CELL}, head", why)] if state else []
    assert gate_rules.reasons_of([pairs(0.0)[0], *lines], GATE) == wanted


@pytest.mark.parametrize(
    ("decision", "inconclusive", "code"),
    [("go", "fail", 0), ("no-go", "warn", 1), ("inconclusive", "warn", 0), ("inconclusive", "fail", 2)],
)
def test_what_an_inconclusive_verdict_does_is_said_by_the_file(decision: str, inconclusive: str, code: int) -> None:
    assert gate_rules.exit_code(decision, "fail" if inconclusive == "fail" else "warn") == code


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({}, "rate: this key is missing; answers and latency need it"),
        ({"rate": 1, "compare": []}, "compare: found none, allowed: speed, cpu, latency"),
        ({"rate": 1, "compare": ["rate"]}, "compare.0: found 'rate', allowed: 'speed', 'cpu' or 'latency'"),
        ({"rate": 1, "inconclusive": "pass"}, "inconclusive: found 'pass', allowed: 'warn' or 'fail'"),
        ({"answers": "skip", "compare": ["speed", "latency"]}, "rate: this key is missing"),
    ],
)
def test_a_mistake_in_the_section_is_one_line(section: dict[str, object], said: str) -> None:
    with pytest.raises(UserError) as problem:
        parse(Gate, section, "gate")
    assert said in str(problem.value)


def check(*slowdowns: float, **more: object) -> GateCheck:
    entry = Accepted(slower_percent=10, author="Ada", reason="exactly once", until=date(2026, 1, 31))
    [(_, listed)] = gate_rules.acceptances([entry], [], date(2026, 11, 28), [(CELL, GATE_SPEED)])
    series = gate_rules.judged(pairs(*slowdowns), [CELL], GATE, last=True)
    release = decide([], series)
    return GateCheck.model_validate(
        {
            "run": "gate", "benchmark": "mine", "baseline": "aaaaaaaaaaaa", "candidate": "bbbbbbbbbbbb",
            "verdict": release.decision, "line": gate_rules.line_of(release, series, GATE), "repository": "r",
            "base": "main", "head": "HEAD", "base_commit": "a" * 40, "head_commit": "b" * 40, "system": "job",
            "exit_code": 0, "inconclusive": "warn", "reasons": release.reasons, "series": series, "accepted": (listed,),
            "pairs": len(slowdowns), "minutes": {"building": 1.5, "measuring": 2.0}, "budget_minutes": 10,
            "false_alarm": 0.05, "power": 0.9, "environment": Environment({"cpu": "x", "cores": 2}, {"python": "3"}),
            **more,
        }
    )  # fmt: skip


def test_the_comment_says_what_was_seen_and_could_have_been_seen() -> None:
    assert as_comment(check(0.1, 0.11, 0.1, 0.09)).splitlines() == [
        "## ❌ Streamgauge gate: no-go",
        "",
        f"no-go: {CELL} {GATE_SPEED}: slower by 10.0 %, and not by chance",
        "",
        "Head `bbbbbbbbbbbb` against merge base `aaaaaaaaaaaa`, pairs of fresh processes: 4.",
        f"Slowdowns that would have been seen with 90% power: {CELL} {GATE_SPEED} 3.0 %. An equal commit is called "
        "slower in at most 5% of gates.",
        "",
        "```text",
        "faster                        0                        slower",
        "······························│············┃·········━━━━●━━━  "
        "late5.bids speed_events_per_s: +10.0 % (+8.7 to +11.3)",
        "                                                      x  x x   x: each pair; ┃: must not be merged",
        "```",
        "",
        "| | what | why |",
        "|---|---|---|",
        f"| ❌ | series: {CELL} {GATE_SPEED} | ratio 1.100 (1.087 to 1.113), tolerance 5 %: "
        "slower by 10.0 %, and not by chance |",
        "",
        "- accepted: 10 % slower, **expired** on 2026-01-31, so it does not count (Ada: exactly once)",
        "",
        "_3.5 minutes: building 1.5, measuring 2.0 (budget 10)_",
    ]


def test_the_picture_reaches_a_limit_far_beyond_what_was_measured() -> None:
    entry = Accepted(slower_percent=50, author="Ada", reason="exactly once", until=date(2027, 1, 1))
    series = gate_rules.judged(pairs(0.0, 0.01, -0.01), [CELL], GATE, [entry], last=True)
    line = as_comment(check(0.0, series=series)).partition("slower\n")[2]
    assert line.startswith(f"{'·' * 29}━●━{'·' * 21}┃{'·' * 7}  {CELL}")


def test_an_inconclusive_gate_that_warns_is_skipped_in_junit_and_fails_where_the_file_says_so() -> None:
    unclear = check(0.05, -0.05, 0.05, -0.04)
    assert unclear.verdict == "inconclusive"
    for warns, failures in ((True, "0"), (False, "1")):
        suite = ElementTree.fromstring(as_junit(unclear, "gate", warns=warns))
        assert (suite.get("name"), suite.get("failures")) == ("gate: bbbbbbbbbbbb against aaaaaaaaaaaa", failures)
    assert "A/A check" in as_comment(check(0.0, 0.01, -0.01, base_commit="b" * 40))
    assert "Too little was measured" in as_comment(check(0.0))
