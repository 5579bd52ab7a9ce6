"""The dashboard's sections on the current state: what each system can do by its latest answers, and release checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamgauge.bench.answers.functional import CORRECT, HASH, SUPPORTED
from streamgauge.records.answers import AnswerLine, Status
from streamgauge.records.judgement import Judgement, ReleaseVerdict
from streamgauge.results.index import Index
from streamgauge.results.report import nexmark_section
from streamgauge.results.report.blocks import Cell, Section, State, Table, Text, attempt

Row = dict[str, Any]
#: metrics that the capability matrix shows, instead of a chart
SHOWN_APART = (HASH, SUPPORTED, CORRECT)
_STATES: dict[str, State] = {"go": "good", "no-go": "bad"}
SHOWN = 10  # latest release checks


def sections(index: Index, series: Iterable[tuple[Row, list[Row]]]) -> list[Section]:
    """Builds the sections; each of the series comes with its points, oldest first."""
    checks = [(one, one.evidence) for one in index.judged() if isinstance(one.evidence, ReleaseVerdict)]
    rows = list(answers(series))
    shown: list[Section] = []
    if checks:
        shown.append(Section("releases", "Release checks", blocks=[attempt("Release checks", _releases, checks)]))
    if rows:
        lead = "State of the latest night. A feature is as good as the worst of its queries. Hints have the reasons."
        shown.append(Section("capabilities", "Capabilities", lead, nexmark_section.matrices(rows)))
    return shown


def answers(series: Iterable[tuple[Row, list[Row]]]) -> Iterable[AnswerLine]:
    """Yields the latest answer of each query, system, mode and experiment."""
    last: dict[tuple[str, ...], dict[str, Row]] = {}
    for one, points in series:
        if one["metric"] in (SUPPORTED, CORRECT) and points:
            key = tuple(str(one[name]) for name in ("benchmark", "workload", "system", "mode", "experiment"))
            kept = last.setdefault(key, {})
            # several machines may have measured it: the latest point counts
            if one["metric"] not in kept or kept[one["metric"]]["at"] < points[-1]["at"]:
                kept[one["metric"]] = points[-1]
    for number, ((_, query, system, mode, _), kept) in enumerate(last.items()):
        point = kept.get(SUPPORTED) or kept[CORRECT]
        judged = kept.get(CORRECT)
        status: Status = "unchecked"
        if not point["value"]:
            status = "unsupported"
        elif judged is not None and judged["valid"]:
            status = "correct" if judged["value"] else "wrong"
        yield AnswerLine(
            query=query, system=system, mode="batch" if mode == "batch" else "streaming", status=status,
            why=point["reason"] or None, disorder_percent=number,  # which only tells experiments apart
        )  # fmt: skip


def _releases(checks: list[tuple[Judgement, ReleaseVerdict]]) -> Table:
    rows: list[list[Cell]] = []
    for one, check in reversed(checks[-SHOWN:]):
        verdict = Text(check.verdict, _STATES.get(check.verdict, "open"))
        reasons = "; ".join(check.reasons) or None
        rows.append([one.changed_at[:10], check.baseline, check.candidate, verdict, reasons, one.run_id])
    return Table(["when", "baseline", "candidate", "verdict", "because", "run"], rows, cards=True)
