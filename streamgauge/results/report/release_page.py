"""The page of a release check: verdict, reasons, series with their noise, repetitions, answers, how to rerun it."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.canonical import has_its_sha256
from streamgauge.base.errors import Damaged
from streamgauge.base.jsonl import read_record
from streamgauge.bench.compare.release_rules import TURNS, grouped
from streamgauge.config import RELEASE_RATE
from streamgauge.records.claim import with_mark
from streamgauge.records.release import ReleaseAnswer, ReleaseCheck, ReleaseManifest, Repetition
from streamgauge.results.report import nexmark_section
from streamgauge.results.report.blocks import Block, Cell, Chart, Hole, Outcome, Section, State, Table, Text, attempt
from streamgauge.results.report.charts import SYMBOLS, Trace, axis, figure, line
from streamgauge.results.report.formatting import MISSING, marked, number
from streamgauge.results.report.layout import fill, publish

_STATES: dict[str, State] = {"go": "good", "no-go": "bad", "inconclusive": "open"}
_REASONS: dict[str, State] = {"passed": "good", "failed": "bad", "open": "open", "note": "plain"}
_TODO = "run the check again"


def build(directory: Path) -> Path:
    """Writes release.html beside the records of the run and returns its path. Raises UserError if that fails."""
    manifest = _manifest(directory / "manifest.json")
    check = ReleaseCheck.read(directory / "release.json", _TODO)
    repetitions = Repetition.read_log(directory / "release.jsonl")
    path = directory / "release.html"
    publish(path, _render(check, manifest, repetitions, _answers(directory)))
    return path


def _manifest(path: Path) -> ReleaseManifest:
    values = read_record(path, _TODO)
    if not has_its_sha256(values):
        raise Damaged(path, "damaged, its sha256 does not match", _TODO)
    return ReleaseManifest.stored(values, path, _TODO)


def _answers(directory: Path) -> list[ReleaseAnswer]:
    """Reads both sides' answers; the side becomes part of the name, so a system beside itself shows twice."""
    answers = ReleaseAnswer.read_log(directory / "release-answers.jsonl")
    return [one.model_copy(update={"system": f"{one.system} ({one.side})"}) for one in answers]


def _render(
    check: ReleaseCheck, manifest: ReleaseManifest, repetitions: list[Repetition], answers: list[ReleaseAnswer]
) -> str:
    problems = [(_REASONS[one.state], one.what, one.why) for one in grouped(check.reasons)]
    outcome = Outcome(_STATES[check.verdict], f"{check.verdict.capitalize()}: {check.candidate}", problems)
    sections = [
        _series(check),
        *([_beside(check)] if check.beside else []),
        *(_cell(cell, repetitions) for cell in dict.fromkeys(one.cell for one in repetitions)),
        nexmark_section.section(answers)
        if answers
        else Section("nexmark", "Answers", blocks=[Hole("Answers", "none asked")]),
        _rerun(manifest),
    ]
    lead = (
        f"{check.candidate}, the candidate, beside {check.baseline}, the baseline: answers first, then repetitions in "
        "turns."
    )
    meta = [f"run {check.run}", f"checksum sha256 {manifest.sha256[:16]}"]
    return fill(f"Release check: {check.candidate}", lead, meta, outcome, sections)


def _series(check: ReleaseCheck) -> Section:
    lead = (
        "Slower is above 1, of a rate below 1. Noise floor: the difference that the baseline shows against itself; "
        "detectable: what four of five such checks would see, of a rate nine of ten. A series passes when no slowdown "
        "of its tolerance fits into the interval."
    )
    rows: list[list[Cell]] = [
        [
            one.cell, with_mark(one.metric, one.claim), Text(one.state, _REASONS[one.state], hint=one.reason),
            number(one.ratio), _interval(one.interval), _percent(one.tolerance), _percent(one.noise_floor),
            _percent(one.detectable_effect), f"{one.n_baseline} and {one.n_candidate}", one.reason,
        ]
        for one in check.series
    ]  # fmt: skip
    columns = ["cell", "metric", "state", "ratio", "interval", "tolerance", "noise floor", "detectable", "repetitions"]
    block: Block = Table([*columns, "because"], rows, cards=True)
    if not rows:
        block = Hole("Series", "nothing was measured: a difference of answers is no-go at once")
    return Section("series", "Series", lead, [block])


def _beside(check: ReleaseCheck) -> Section:
    lead = (
        "Figures of other measurements, one of each side. They decide nothing: the sides were not in turns, and fresh "
        "processes differ. Higher or lower: their intervals do not meet, which are of 90\u202f%, and in a soak of "
        "95\u202f% over all its series. Their answers are among the reasons."
    )
    rows: list[list[Cell]] = [
        [one.cell, one.metric, one.unit, one.shown(one.baseline), one.shown(one.candidate), one.said]
        for one in check.beside
    ]
    columns = ["cell", "metric", "unit", "baseline", "candidate", "the candidate's"]
    return Section("beside", "Other figures", lead, [Table(columns, rows, cards=True)])


def _cell(cell: str, repetitions: list[Repetition]) -> Section:
    ours = [one for one in repetitions if one.cell == cell]
    metrics = list(dict.fromkeys(metric for one in ours for metric in one.values))
    charts = [attempt(metric, _chart, metric, ours) for metric in metrics]
    return Section(f"cell-{cell}", cell, "Each point is a fresh process; every round runs all variants once.", charts)


def _chart(metric: str, repetitions: list[Repetition]) -> Chart:
    shown = [one for one in repetitions if one.ladder == (metric == RELEASE_RATE)]
    traces: list[Trace] = []
    for nth, side in enumerate(TURNS):
        ours = [one for one in shown if one.side == side and one.is_sound]
        marker = {"symbol": SYMBOLS[nth], "size": 9}
        x, y = [one.round for one in ours], [one.values.get(metric) for one in ours]
        traces.append(line(side, x, y, nth, mode="lines+markers", marker=marker))
    rows: list[list[Cell]] = [
        [
            one.round,
            one.side,
            marked(one.values.get(metric), "at least" if metric in one.bounds else one.claim),
            one.wrong or one.void,
        ]
        for one in shown
    ]
    table = Table(["round", "side", metric, "void because"], rows)
    return Chart(metric, figure(traces, axis("round", dtick=1), axis(metric, rangemode="tozero")), table)


def _rerun(manifest: ReleaseManifest) -> Section:
    kinds = list(dict.fromkeys(kind for versions in manifest.systems.values() for kind in versions))
    versions: list[list[Cell]] = [[name, *map(parts.get, kinds)] for name, parts in manifest.systems.items()]
    facts: list[list[Cell]] = [
        [name, Text(str(value), code=True)]
        for name, value in (
            ("configuration", manifest.configuration_sha256),
            ("commit", manifest.commit),
            ("checksum", manifest.sha256),
        )
    ]
    machine: list[list[Cell]] = [
        [name, str(value)] for name, value in {**manifest.machine, **manifest.software}.items() if value
    ]
    return Section(
        "rerun", "To run it again", "manifest.json has all of this, and a checksum of it.",
        [
            Table(["command"], [[Text(command, code=True)] for command in manifest.commands]),
            Table(["system", *(kind.capitalize() for kind in kinds)], versions), Table(["what", "value"], facts),
            Table(["machine and software", "value"], machine, folded="Machine and software"),
        ],
    )  # fmt: skip


def _interval(interval: tuple[float, float] | None) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else MISSING


def _percent(fraction: float | None) -> str:
    return MISSING if fraction is None else f"{100 * fraction:.1f}\u202f%"
