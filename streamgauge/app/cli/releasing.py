"""The command release-check, whose exit code tells CI go, no-go or inconclusive."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from streamgauge import config
from streamgauge.app.cli import workplace
from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, ConfigFile, app, tell
from streamgauge.app.cli.measurements import checked, prepared
from streamgauge.app.cli.verdicts import VerdictCommand
from streamgauge.base.places import as_user_error
from streamgauge.base.words import counted
from streamgauge.bench.measurements import USUAL
from streamgauge.records.release import JudgedSeries, ReleaseCheck


@app.command("release-check", cls=VerdictCommand)
def release_check(
    file: ConfigFile,
    baseline: Annotated[str, typer.Option(help="a system of the file: the known one")],
    candidate: Annotated[str, typer.Option(help="a system of the file: the new one")],
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    run_id: Annotated[
        str | None, typer.Option("--run", "--run-id", help="the run's name; by default a new one")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="also write the reasons here as JUnit's XML")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="also write the reasons here as Markdown, for a pull request")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a candidate with a baseline. Exit code 0: go, 1: no-go, 2: inconclusive, 3: no verdict."""
    from streamgauge.app.nights import release_check
    from streamgauge.bench.compare import forms, gate_rules
    from streamgauge.bench.measure import timing
    from streamgauge.results import index
    from streamgauge.results.report.release_page import build
    from streamgauge.streams.sources import topics

    for option, target in (("--junit", junit), ("--markdown", markdown)):
        if target is not None:  # an hour later is too late to find that out
            workplace.require_writable(option, target, in_place=True)
            if target.is_file():  # an earlier check's, which would outlive one without a verdict
                target.unlink()
    benchmark = config.load(file)
    release_check.check(benchmark, baseline, candidate)
    store = checked(benchmark, artifacts)
    directory = store.run(run_id or f"{benchmark.name}-release-{uuid.uuid4().hex[:8]}")
    benchmark = topics.in_run(benchmark, directory)
    expected_s, takes = timing.release_seconds(benchmark, USUAL), timing.release_summary(benchmark)
    with (
        prepared(benchmark, store, directory, step="release-check", scope={}),
        workplace.progress("release check", expected_s, takes),
    ):
        outcome = release_check.run(benchmark, store, baseline, candidate, directory)
    index.index_run(store.root, directory.name)
    page = build(directory)
    lines = [*_lines(outcome), f"page: {page}", f"manifest: {directory / release_check.MANIFEST}"]
    tell("\n".join(lines), {**outcome.to_json(), "page": page}, as_json)
    for target, form in ((junit, forms.as_junit), (markdown, forms.as_markdown)):
        if target is not None:
            try:
                target.write_text(form(outcome), encoding="utf-8")
            except OSError as problem:
                raise as_user_error(problem, target) from None
    raise typer.Exit(gate_rules.exit_code(outcome.verdict, "fail"))


def _lines(check: ReleaseCheck) -> Iterator[str]:
    from streamgauge.bench.compare import release_rules

    shown = [one for one in check.reasons if one.kind != "performance" or not check.series]  # which have lines
    for reason in release_rules.grouped(shown):
        yield f"{reason.state:8} {reason.kind:12} {reason.what}: {reason.why}"
    for one in check.series:
        yield f"{one.state:8} {one.name}: {_beside(one)}"
    for figure in check.beside:
        yield f"{'note':8} {figure.cell} {figure.metric} {figure.text}"
    yield check.line


def _beside(one: JudgedSeries) -> str:
    if not one.figures:
        return one.reason
    limits = [
        f"{name} {100 * value:.1f} %"
        for name, value in (("noise floor", one.noise_floor), ("detectable", one.detectable_effect))
        if value is not None
    ]
    return f"{', '.join([one.figures, *limits])}, {one.n_baseline} and {counted(one.n_candidate, 'value')}"
