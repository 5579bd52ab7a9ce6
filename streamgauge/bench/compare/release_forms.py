"""The verdict of a release check in the forms that pipelines show: JUnit's XML, and Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from streamgauge.bench.compare.release_rules import grouped
from streamgauge.records.gate import GateCheck
from streamgauge.records.release import ReleaseCheck

#: what a reason's state is to a pipeline
MARKS = {"passed": "✅", "failed": "❌", "open": "❓", "note": "ℹ️"}


def as_junit(check: ReleaseCheck | GateCheck, title: str = "release check", *, warns: bool = False) -> str:
    """Renders each reason, said once, and each series as a test case: failed ones as failures, open ones as skipped.

    An inconclusive check has a case of its own that fails, or is skipped if it only warns: it is never a pass.
    """
    suite = ElementTree.Element("testsuite", name=f"{title}: {check.candidate} against {check.baseline}")
    for kind, what, state, why in cases(check):
        case = ElementTree.SubElement(suite, "testcase", classname=kind, name=what)
        if state == "failed":
            ElementTree.SubElement(case, "failure", message=why)
        elif state == "open":
            ElementTree.SubElement(case, "skipped", message=why)
    verdict = ElementTree.SubElement(suite, "testcase", classname="verdict", name=check.verdict)
    if check.verdict != "go":
        outcome = "skipped" if warns and check.verdict == "inconclusive" else "failure"
        ElementTree.SubElement(verdict, outcome, message=check.line)
    suite.set("tests", str(len(suite)))
    for kind, element in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(kind, str(len(suite.findall(f"testcase/{element}"))))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text) + "\n"  # XML has no such characters


def as_markdown(check: ReleaseCheck) -> str:
    """Renders the verdict, and a table of its reasons and series."""
    lines = [f"## Release check: {check.verdict}", "", check.line, "", "| | what | why |", "|---|---|---|"]
    lines += [
        f"| {MARKS[state]} | {cell(f'{kind}: {what}')} | {cell(why)} |" for kind, what, state, why in cases(check)
    ]
    return "\n".join(lines) + "\n"


def cases(check: ReleaseCheck | GateCheck) -> Iterator[tuple[str, str, str, str]]:
    """Yields kind, subjects, state and explanation of each reason, which is said once, and of each series."""
    for reason in grouped(check.reasons):
        yield reason.kind, reason.what, reason.state, reason.why
    for one in check.series:
        figures = ""
        if one.ratio is not None and one.interval is not None:
            low, high = one.interval
            figures = f"ratio {one.ratio:.3f} ({low:.3f} to {high:.3f}), tolerance {100 * one.tolerance:g} %: "
        yield "series", one.name, one.state, figures + one.reason
    for figure in check.beside if isinstance(check, ReleaseCheck) else ():
        yield "beside", f"{figure.cell} {figure.metric}", "note", figure.text


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
