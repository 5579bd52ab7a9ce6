"""The page of a release check: verdict, reasons, series with their noise, repetitions, answers, how to rerun it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.base.canonical import holds
from streamgauge.base.errors import Damaged
from streamgauge.base.jsonl import read_jsonl, read_record
from streamgauge.bench.compare.release_rules import TURNS, Reason, grouped
from streamgauge.config import RELEASE_RATE
from streamgauge.results.report import nexmark_section
from streamgauge.results.report.blocks import (
    MISSING,
    Block,
    Cell,
    Chart,
    Hole,
    Outcome,
    Section,
    State,
    Table,
    Text,
    attempt,
    number,
)
from streamgauge.results.report.charts import SYMBOLS, Trace, axis, figure, line
from streamgauge.results.report.layout import fill, publish

Json = dict[str, Any]
_STATES: dict[str, State] = {"go": "good", "no-go": "bad", "inconclusive": "open"}
_REASONS: dict[str, State] = {"passed": "good", "failed": "bad", "open": "open", "note": "plain"}


def build(directory: Path) -> Path:
    """Writes release.html beside the records of the run and returns its path. Raises UserError if that fails."""
    record: Json = read_record(directory / "release.json", "run the check again")
    manifest: Json = read_record(directory / "manifest.json", "run the check again")
    if not holds(manifest):
        raise Damaged(directory / "manifest.json", "damaged, its sha256 does not match", "run the check again")
    path = directory / "release.html"
    publish(path, _render(record, manifest, read_jsonl(directory / "release.jsonl"), _answers(directory)))
    return path


def _answers(directory: Path) -> list[Json]:
    """Reads the rows of both sides; the side becomes part of the name, so a system compared with itself shows twice."""
    rows = read_jsonl(directory / "release-answers.jsonl")
    return [{**row, "system": f"{row['system']} ({row['side']})"} for row in rows]


def _render(record: Json, manifest: Json, repetitions: list[Json], answers: list[Json]) -> str:
    baseline, candidate = record["baseline"], record["candidate"]
    reasons = grouped(Reason(**one) for one in record["reasons"])
    problems = [(_REASONS[one.state], one.what, one.why) for one in reasons]
    outcome = Outcome(_STATES[record["verdict"]], f"{record['verdict'].capitalize()}: {candidate}", problems)
    sections = [
        _series(record),
        *(_cell(cell, repetitions) for cell in dict.fromkeys(one["cell"] for one in repetitions)),
        nexmark_section.section(answers)
        if answers
        else Section("nexmark", "Answers", blocks=[Hole("Answers", "none asked")]),
        _rerun(manifest),
    ]
    lead = f"{candidate}, the candidate, beside {baseline}, the baseline: answers first, then repetitions in turns."
    meta = [f"run {record['run']}", f"signed sha256 {manifest['sha256'][:16]}"]
    return fill(f"Release check: {candidate}", lead, meta, outcome, sections)


def _series(record: Json) -> Section:
    lead = (
        "Slower is above 1, of a rate below 1. Noise floor: the difference that the baseline shows against itself; "
        "detectable: what four of five such checks would see, of a rate nine of ten. A series passes when no slowdown "
        "of its tolerance fits into the interval."
    )
    rows: list[list[Cell]] = [
        [
            one["cell"], one["metric"], Text(one["state"], _REASONS[one["state"]], hint=one["reason"]),
            number(one.get("ratio")), _interval(one.get("interval")), _percent(one["tolerance"]),
            _percent(one.get("noise_floor")), _percent(one.get("detectable_effect")),
            f"{one.get('n_baseline', 0)} and {one.get('n_candidate', 0)}", one["reason"],
        ]
        for one in record["series"]
    ]  # fmt: skip
    columns = ["cell", "metric", "state", "ratio", "interval", "tolerance", "noise floor", "detectable", "repetitions"]
    block: Block = Table([*columns, "because"], rows, cards=True)
    if not rows:
        block = Hole("Series", "nothing was measured: a difference of answers is no-go at once")
    return Section("series", "Series", lead, [block])


def _cell(cell: str, repetitions: list[Json]) -> Section:
    ours = [one for one in repetitions if one["cell"] == cell]
    metrics = list(dict.fromkeys(metric for one in ours for metric in one["values"]))
    charts = [attempt(metric, _chart, metric, ours) for metric in metrics]
    return Section(f"cell-{cell}", cell, "Each point is a fresh process; every round runs all variants once.", charts)


def _chart(metric: str, repetitions: list[Json]) -> Chart:
    shown = [one for one in repetitions if one["ladder"] == (metric == RELEASE_RATE)]
    traces: list[Trace] = []
    for nth, side in enumerate(TURNS):
        ours = [one for one in shown if one["side"] == side and not one["void"] and not one["wrong"]]
        marker = {"symbol": SYMBOLS[nth], "size": 9}
        x, y = [one["round"] for one in ours], [one["values"].get(metric) for one in ours]
        traces.append(line(side, x, y, nth, mode="lines+markers", marker=marker))
    rows: list[list[Cell]] = [
        [one["round"], one["side"], number(one["values"].get(metric)), one["wrong"] or one["void"]] for one in shown
    ]
    table = Table(["round", "side", metric, "void because"], rows)
    return Chart(metric, figure(traces, axis("round", dtick=1), axis(metric, rangemode="tozero")), table)


def _rerun(manifest: Json) -> Section:
    systems: dict[str, Json] = manifest["systems"]
    kinds = list(dict.fromkeys(kind for found in systems.values() for kind in found))
    versions: list[list[Cell]] = [[name, *map(found.get, kinds)] for name, found in systems.items()]
    facts: list[list[Cell]] = [
        [name, Text(str(manifest[key]), code=True)]
        for name, key in (("configuration", "configuration_sha256"), ("commit", "commit"), ("signature", "sha256"))
    ]
    machine = [[name, str(value)] for name, value in {**manifest["machine"], **manifest["software"]}.items() if value]
    return Section(
        "rerun", "To run it again", "manifest.json has all of this, signed by its SHA-256.",
        [
            Table(["command"], [[Text(command, code=True)] for command in manifest["commands"]]),
            Table(["system", *(kind.capitalize() for kind in kinds)], versions), Table(["what", "value"], facts),
            Table(["machine and software", "value"], machine, folded="Machine and software"),
        ],
    )  # fmt: skip


def _interval(found: list[float] | None) -> str:
    return f"{found[0]:.3f} to {found[1]:.3f}" if found else MISSING


def _percent(fraction: float | None) -> str:
    return MISSING if fraction is None else f"{100 * fraction:.1f}\u202f%"
