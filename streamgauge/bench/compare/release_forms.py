"""The verdict of a release check in the forms that pipelines show: JUnit's XML, and Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from streamgauge.bench.compare.release_rules import Reason, grouped

#: what a reason's state is to a pipeline
_MARKS = {"passed": "✅", "failed": "❌", "open": "❓", "note": "ℹ️"}


def as_junit(found: dict[str, Any]) -> str:
    """Renders each reason, said once, and each series as a test case: failed ones as failures, open ones as skipped.

    found: the content of release.json. An inconclusive check has a case of its own that fails: it is never a pass.
    """
    name = f"release check: {found['candidate']} against {found['baseline']}"
    suite = ElementTree.Element("testsuite", name=name)
    for kind, what, state, why in _cases(found):
        case = ElementTree.SubElement(suite, "testcase", classname=kind, name=what)
        if state == "failed":
            ElementTree.SubElement(case, "failure", message=why)
        elif state == "open":
            ElementTree.SubElement(case, "skipped", message=why)
    verdict = ElementTree.SubElement(suite, "testcase", classname="verdict", name=found["verdict"])
    if found["verdict"] != "go":
        ElementTree.SubElement(verdict, "failure", message=found["line"])
    suite.set("tests", str(len(suite)))
    for kind, element in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(kind, str(len(suite.findall(f"testcase/{element}"))))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text) + "\n"  # XML has no such characters


def as_markdown(found: dict[str, Any]) -> str:
    """Renders the verdict, and a table of its reasons and series."""
    lines = [f"## Release check: {found['verdict']}", "", found["line"], "", "| | what | why |", "|---|---|---|"]
    for kind, what, state, why in _cases(found):
        lines.append(f"| {_MARKS[state]} | {_cell(f'{kind}: {what}')} | {_cell(why)} |")
    return "\n".join(lines) + "\n"


def _cases(found: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yields kind, subjects, state and explanation of each reason, which is said once, and of each series."""
    for reason in grouped(Reason(**one) for one in found["reasons"]):
        yield reason.kind, reason.what, reason.state, reason.why
    for one in found["series"]:
        interval = one.get("interval")
        ratio = f"ratio {one['ratio']:.3f} ({interval[0]:.3f} to {interval[1]:.3f}), " if interval else ""
        tolerance = f"tolerance {100 * one['tolerance']:g} %: " if interval else ""
        yield "series", f"{one['cell']} {one['metric']}", one["state"], f"{ratio}{tolerance}{one['reason']}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
