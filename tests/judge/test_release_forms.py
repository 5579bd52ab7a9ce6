"""Tests what a pipeline shows of a release check."""

from __future__ import annotations

from xml.etree import ElementTree

from streamgauge.bench.compare import release_forms
from tests.example_release import FOUND


def test_junit_has_a_case_for_each_reason_and_each_series_and_the_verdict() -> None:
    suite = ElementTree.fromstring(release_forms.as_junit(FOUND))
    assert suite.attrib == {
        "name": "release check: spark <4.3> against spark-4.2", "tests": "6", "failures": "2", "skipped": "2",
    }  # fmt: skip
    assert [
        (case.get("classname"), case.get("name"), *((child.tag, child.get("message")) for child in case))
        for case in suite
    ] == [
        ("answer", "q5 batch", ("failure", "hash a | b differs")),
        ("capability", "q7", ("skipped", "not asked")),
        ("machine", "steal"),
        ("series", "late5.bids cpu"),
        ("series", "late5.bids p99", ("skipped", "no value")),
        ("verdict", "no-go", ("failure", "no-go: q5 answers differently")),
    ]


def test_only_go_passes_a_pipeline() -> None:
    for verdict, failures in (("go", "0"), ("inconclusive", "1")):
        found = {**FOUND, "verdict": verdict, "reasons": [], "series": []}
        assert ElementTree.fromstring(release_forms.as_junit(found)).get("failures") == failures


def test_markdown_is_a_table_whose_cells_cannot_break_it() -> None:
    assert release_forms.as_markdown(FOUND).splitlines() == [
        "## Release check: no-go", "", "no-go: q5 answers differently", "", "| | what | why |", "|---|---|---|",
        r"| ❌ | answer: q5 batch | hash a \| b differs |",
        "| ❓ | capability: q7 | not asked |",
        "| ℹ️ | machine: steal | 2 % |",
        "| ✅ | series: late5.bids cpu | ratio 1.010 (0.980 to 1.040), tolerance 10 %: rules out a slowdown of 10 % |",
        "| ❓ | series: late5.bids p99 | no value |",
    ]  # fmt: skip


def test_a_reason_that_many_share_is_said_once() -> None:
    alike = [{"state": "failed", "kind": "answer", "what": f"q{n} batch", "why": "no answer"} for n in range(3)]
    found = {**FOUND, "reasons": alike, "series": []}
    shared = "3 × (q0 batch, q1 batch, q2 batch)"
    assert release_forms.as_markdown(found).splitlines()[6:] == [f"| ❌ | answer: {shared} | no answer |"]
    first, verdict = ElementTree.fromstring(release_forms.as_junit(found))
    assert (first.get("name"), verdict.get("classname")) == (shared, "verdict")
