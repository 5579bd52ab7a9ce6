"""The dashboard's sections on the current state: what each system can do by its latest answers, and release checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamgauge.bench.answers.functional import CORRECT, HASH, SUPPORTED
from streamgauge.records.answers import AnswerLine, Status
from streamgauge.records.judgement import Judgement, ReleaseVerdict
from streamgauge.records.series import Point
from streamgauge.results.index import Index
from streamgauge.results.index.result_index import History
from streamgauge.results.report import nexmark_section
from streamgauge.results.report.blocks import Cell, Section, State, Table, Text, attempt

#: metrics that the capability matrix shows, instead of a chart
SHOWN_APART = (HASH, SUPPORTED, CORRECT)
_STATES: dict[str, State] = {"go": "good", "no-go": "bad"}
SHOWN = 10  # latest release checks


def sections(index: Index, series: Sequence[History]) -> list[Section]:
    checks = [(one, one.evidence) for one in index.judged() if isinstance(one.evidence, ReleaseVerdict)]
    rows = list(answers(series))
    shown: list[Section] = []
    if checks:
        shown.append(Section("releases", "Release checks", blocks=[attempt("Release checks", _releases, checks)]))
    if rows:
        lead = (
            "The latest answer of each query, whichever night gave it. A feature is as good as the worst of its "
            "queries. Hints have the reasons."
        )
        shown.append(Section("capabilities", "Capabilities", lead, nexmark_section.matrices(rows)))
    return shown


def answers(series: Iterable[History]) -> Iterable[AnswerLine]:
    """Yields the latest answer of each query, system, mode and experiment."""
    last: dict[tuple[str, ...], dict[str, Point]] = {}
    for one in series:
        head = one.head
        if head.metric in (SUPPORTED, CORRECT) and one.points:
            kept = last.setdefault((head.benchmark, head.workload, head.system, head.mode, head.experiment), {})
            # several machines may have measured it: the latest point counts
            if head.metric not in kept or kept[head.metric].at < one.points[-1].at:
                kept[head.metric] = one.points[-1]
    for number, ((_, query, system, mode, _), kept) in enumerate(last.items()):
        point = kept.get(SUPPORTED) or kept[CORRECT]
        judged = kept.get(CORRECT)
        status: Status = "unchecked"
        if not point.value:
            status = "unsupported"
        elif judged is not None and judged.valid:
            status = "correct" if judged.value else "wrong"
        yield AnswerLine(
            query=query, system=system, mode="batch" if mode == "batch" else "streaming", status=status,
            why=point.reason or None, disorder_percent=number,  # which only tells experiments apart
        )  # fmt: skip


def _releases(checks: list[tuple[Judgement, ReleaseVerdict]]) -> Table:
    rows: list[list[Cell]] = []
    for one, check in reversed(checks[-SHOWN:]):
        verdict = Text(check.verdict, _STATES.get(check.verdict, "open"))
        reasons = "; ".join(check.reasons) or None
        rows.append([one.changed_at[:10], check.baseline, check.candidate, verdict, reasons, one.run_id])
    return Table(["when", "baseline", "candidate", "verdict", "because", "run"], rows, cards=True)
