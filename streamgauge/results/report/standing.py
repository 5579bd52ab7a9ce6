"""The dashboard's sections on the current state: what each system can do by its latest answers, and release checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamgauge.bench.answers.functional import CORRECT, HASH, SUPPORTED
from streamgauge.results.index import Index
from streamgauge.results.report import nexmark_section
from streamgauge.results.report.blocks import Cell, Section, State, Table, Text, attempt

Row = dict[str, Any]
#: metrics that the capability matrix shows, instead of a chart
TOLD_APART = (HASH, SUPPORTED, CORRECT)
#: outcome of the judgements that record a whole release check
RELEASE_CHECK = "release_check"
_STATES: dict[str, State] = {"go": "good", "no-go": "bad"}
SHOWN = 10  # latest release checks


def sections(index: Index, series: Iterable[tuple[Row, list[Row]]]) -> list[Section]:
    """Builds the sections; each of the series comes with its points, oldest first."""
    checks = [one for one in index.judgements() if one["outcome"] == RELEASE_CHECK]
    rows = list(answers(series))
    found = []
    if checks:
        found.append(Section("releases", "Release checks", blocks=[attempt("Release checks", _releases, checks)]))
    if rows:
        lead = "State of the latest night. A feature is as good as the worst of its queries. Hints have the reasons."
        found.append(Section("capabilities", "Capabilities", lead, nexmark_section.matrices(rows)))
    return found


def answers(series: Iterable[tuple[Row, list[Row]]]) -> Iterable[Row]:
    """Yields the latest answer of each query, system, mode and experiment, as a row of the suite."""
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
        if not point["value"]:
            status = "unsupported"
        elif judged is None or not judged["valid"]:
            status = "unchecked"
        else:
            status = "correct" if judged["value"] else "wrong"
        yield {
            "query": query, "system": system, "mode": mode, "disorder_percent": number,  # tells experiments apart
            "status": status, "why": point["reason"] or None,
        }  # fmt: skip


def _releases(checks: list[Row]) -> Table:
    rows: list[list[Cell]] = []
    for check in reversed(checks[-SHOWN:]):
        said = check["evidence"]
        reasons = "; ".join(str(reason) for reason in said.get("reasons", ())) or None
        verdict = Text(str(said["verdict"]), _STATES.get(said["verdict"], "open"))
        rows.append([check["changed_at"][:10], said["baseline"], said["candidate"], verdict, reasons, check["run_id"]])
    return Table(["when", "baseline", "candidate", "verdict", "because", "run"], rows, cards=True)
