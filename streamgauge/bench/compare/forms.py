"""Verdicts of release checks and gates as pipelines show them: JUnit's XML, and Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

from streamgauge.bench.compare.release_rules import grouped
from streamgauge.records.gate import GateCheck, GateSeries
from streamgauge.records.release import ReleaseCheck

#: marks of a reason's state, and of a verdict
_MARKS = {"passed": "✅", "failed": "❌", "open": "❓", "note": "ℹ️", "go": "✅", "no-go": "❌", "inconclusive": "❓"}
#: characters from the left end to the right end of a picture
_WIDTH = 61
#: kind, subjects, state and explanation
_Case = tuple[str, str, str, str]


def as_junit(check: ReleaseCheck | GateCheck, title: str = "release check", *, warns: bool = False) -> str:
    """Renders each reason, said once, and each series as a test case: failed ones as failures, open ones as skipped.

    An inconclusive check has a case of its own that fails, or is skipped if it only warns: it is never a pass.
    """
    suite = ElementTree.Element("testsuite", name=f"{title}: {check.candidate} against {check.baseline}")
    for kind, what, state, why in _cases(check):
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
    lines = [f"## Release check: {check.verdict}", "", check.line, "", *_table(_cases(check))]
    return "\n".join(lines) + "\n"


def as_comment(check: GateCheck) -> str:
    """Renders the verdict, what could have been seen, a picture, and a table of reasons and series."""
    lines = [
        f"## {_MARKS[check.verdict]} Streamgauge gate: {check.verdict}",
        "",
        check.line,
        "",
        f"Head `{check.candidate}` against merge base `{check.baseline}`, pairs of fresh processes: {check.pairs}.",
        *self_check(check),
        sentence(check),
        "",
    ]
    measured = [one for one in check.series if one.interval is not None]
    if measured:
        lines += ["```text", *_pictures(measured), "```", ""]
    names = {one.name for one in check.series}  # a series that has not passed is a reason, too
    lines += _table(case for case in _cases(check) if case[0] == "series" or case[1] not in names)
    if check.accepted:
        lines += ["", *(f"- {entry}" for entry in _accepted(check))]
    lines += ["", f"_{_spent(check)}_"]
    return "\n".join(lines) + "\n"


def self_check(check: GateCheck) -> list[str]:
    """The sentence, if any, which says that a commit was compared with itself."""
    is_same = check.base_commit == check.head_commit
    return ["The base and the head are the same commit: an A/A check."] if is_same else []


def sentence(check: GateCheck) -> str:
    """Says which slowdown of each series could have been seen, and how often an equal commit is called slower."""
    seen = [f"{one.name} {100 * one.seen:.1f} %{one.beyond}" for one in check.series if one.seen is not None]
    if not seen:
        return "Too little was measured to tell which slowdown would have been seen. Allow more minutes or fewer cells."
    return (
        f"Slowdowns that would have been seen with {check.power:.0%} power: {', '.join(seen)}. "
        f"An equal commit is called slower in at most {check.false_alarm:.0%} of gates."
    )


def percent(one: GateSeries) -> str:
    """The slowdown with its interval, such as "+2.1 % (-0.4 to +4.7)"."""
    if one.ratio is None or one.interval is None:
        return one.reason
    low, high = one.interval
    return f"{100 * (one.ratio - 1):+.1f} % ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})"


def _cases(check: ReleaseCheck | GateCheck) -> Iterator[_Case]:
    """Yields a case for each reason, which is said once, and for each series."""
    for reason in grouped(check.reasons):
        yield reason.kind, reason.what, reason.state, reason.why
    for one in check.series:
        yield "series", one.name, one.state, f"{one.figures}: {one.reason}" if one.figures else one.reason
    for figure in check.beside if isinstance(check, ReleaseCheck) else ():
        yield "beside", f"{figure.cell} {figure.metric}", "note", figure.text


def _table(cases: Iterable[_Case]) -> list[str]:
    rows = (f"| {_MARKS[state]} | {_cell(f'{kind}: {what}')} | {_cell(why)} |" for kind, what, state, why in cases)
    return ["| | what | why |", "|---|---|---|", *rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _spent(check: GateCheck) -> str:
    """Says what took how many minutes."""
    parts = [f"{name} {minutes:.1f}" for name, minutes in check.minutes.items() if minutes >= 0.05]
    total = sum(check.minutes.values())
    return f"{total:.1f} minutes: {', '.join(parts) or 'all short'} (budget {check.budget_minutes:g})"


def _accepted(check: GateCheck) -> Iterator[str]:
    """Yields a line for each entry of accepted.yaml."""
    what = {
        "counts": "counts until {0}",
        "expired": "**expired** on {0}, so it does not count",
        "in the base": "is in the base",
        "no series": "holds for **nothing that is compared**",
    }
    for one in check.accepted:
        state = what[one.state].format(one.until)
        yield f"accepted: {one.slower_percent:g} % slower, {state} ({one.author}: {one.reason})"


def _pictures(series: Sequence[GateSeries]) -> Iterator[str]:
    """Yields the lines of a picture: faster is left of 0, slower right of it, on one scale for all."""
    reach = max(1.3 * (one.accepted + one.tolerance) for one in series)
    for one in series:
        reach = max(reach, *(abs(end - 1) for end in one.interval or ()), *map(abs, one.slowdowns))
    middle = _WIDTH // 2

    def place(part: float) -> int:
        return middle + round(part / reach * middle)

    scale = [" "] * _WIDTH
    for text, at in (("faster", 0), ("0", middle), ("slower", _WIDTH - 6)):
        scale[at : at + len(text)] = text
    yield "".join(scale)
    for one in series:
        low, high = (place(end - 1) for end in one.interval or (1.0, 1.0))
        line = ["·"] * _WIDTH
        line[low : high + 1] = "━" * (high - low + 1)
        line[middle], line[place(one.accepted + one.tolerance)] = "│", "┃"
        line[place((one.ratio or 1.0) - 1)] = "●"
        pairs = [" "] * _WIDTH
        for slowdown in one.slowdowns:
            pairs[place(slowdown)] = "x"
        yield f"{''.join(line)}  {one.name}: {percent(one)}"
        yield f"{''.join(pairs).rstrip():{_WIDTH}}  x: each pair; ┃: must not be merged"
