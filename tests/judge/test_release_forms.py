"""Tests what a pipeline shows of a release check."""

from __future__ import annotations

from xml.etree import ElementTree

from streamgauge.bench.compare import forms
from streamgauge.config import RELEASE_RATE
from streamgauge.records.release import Reason
from tests.example_release import CHECK


def test_junit_has_a_case_for_each_reason_and_each_series_and_the_verdict() -> None:
    suite = ElementTree.fromstring(forms.as_junit(CHECK))
    assert suite.attrib == {
        "name": "release check: spark <4.3> against spark-4.2", "tests": "6", "failures": "2", "skipped": "2",
    }  # fmt: skip
    assert [
        (case.get("classname"), case.get("name"), *((child.tag, child.get("message")) for child in case))
        for case in suite
    ] == [
        ("answer", "q5 batch", ("failure", "hash a | b differs")),
        ("capability", "q7", ("skipped", "not asked")),
        ("output", "steal"),
        ("series", "late5.bids cpu"),
        ("series", "late5.bids p99", ("skipped", "no value")),
        ("verdict", "no-go", ("failure", "no-go: q5 answers differently")),
    ]


def test_only_go_passes_a_pipeline() -> None:
    for verdict, failures in (("go", "0"), ("inconclusive", "1")):
        check = CHECK.model_copy(update={"verdict": verdict, "reasons": (), "series": ()})
        assert ElementTree.fromstring(forms.as_junit(check)).get("failures") == failures


def test_markdown_is_a_table_whose_cells_cannot_break_it() -> None:
    assert forms.as_markdown(CHECK).splitlines() == [
        "## Release check: no-go", "", "no-go: q5 answers differently", "", "| | what | why |", "|---|---|---|",
        r"| ❌ | answer: q5 batch | hash a \| b differs |",
        "| ❓ | capability: q7 | not asked |",
        "| ℹ️ | output: steal | 2 % |",
        "| ✅ | series: late5.bids cpu | ratio 1.010 (0.980 to 1.040), tolerance 10 %: rules out a slowdown of 10 % |",
        "| ❓ | series: late5.bids p99 | no value |",
    ]  # fmt: skip


def test_a_reason_that_many_share_is_said_once() -> None:
    alike = tuple(Reason("answer", "failed", f"q{n} batch", "no answer") for n in range(3))
    check = CHECK.model_copy(update={"reasons": alike, "series": ()})
    shared = "3 × (q0 batch, q1 batch, q2 batch)"
    assert forms.as_markdown(check).splitlines()[6:] == [f"| ❌ | answer: {shared} | no answer |"]
    first, verdict = ElementTree.fromstring(forms.as_junit(check))
    assert (first.get("name"), verdict.get("classname")) == (shared, "verdict")


def test_a_rate_that_is_not_proven_bears_its_mark() -> None:
    (one, _) = CHECK.series
    rate = one.model_copy(update={"metric": RELEASE_RATE, "claim": "estimated"})
    check = CHECK.model_copy(update={"series": (rate,)})
    assert f"series: late5.bids {RELEASE_RATE} (estimated)" in forms.as_markdown(check)
    names = [case.get("name") for case in ElementTree.fromstring(forms.as_junit(check))]
    assert f"late5.bids {RELEASE_RATE} (estimated)" in names
    proven = check.model_copy(update={"series": (rate.model_copy(update={"claim": "proven"}),)})
    assert "(proven)" not in forms.as_markdown(proven)
