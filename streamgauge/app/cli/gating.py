"""The command gate, whose exit code tells CI go, no-go or inconclusive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from streamgauge import config
from streamgauge.app.cli import workplace
from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, ConfigFile, app, tell
from streamgauge.app.cli.measurements import checked, prepared
from streamgauge.app.cli.verdicts import VerdictCommand
from streamgauge.base.live import about


@app.command("gate", cls=VerdictCommand)
def gate(
    file: ConfigFile,
    base: Annotated[
        str, typer.Option(help="the branch to merge into; the head is compared with the merge base of both")
    ],
    head: Annotated[str, typer.Option(help="the commit or branch to judge")],
    repository: Annotated[Path, typer.Option(help="a folder of the git repository under test")] = Path(),
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="longest time of measuring, instead of the file's gate.minutes")
    ] = None,
    output: Annotated[Path, typer.Option(help="folder for comment.md, junit.xml and gate.json")] = Path("gate"),
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Judge a commit before it is merged. Exit code 0: go, 1: no-go, 3: no verdict; inconclusive: 0 or 2, as set."""
    from streamgauge.app.gate import verdict
    from streamgauge.app.gate.repository import Repository
    from streamgauge.bench.compare.forms import self_check, sentence
    from streamgauge.streams.sources import topics

    verdict.forget(output)
    benchmark = config.load(file)
    tested = Repository(repository)
    commits = tested.commits(base, head)
    tested.refuse_changes(commits)
    asked = verdict.Asked(file, tested, base, head, commits, output.absolute())
    benchmark, notes = verdict.with_settings_of_base(benchmark, asked)
    if minutes is not None and benchmark.gate is not None:
        benchmark = benchmark.model_copy(update={"gate": benchmark.gate.model_copy(update={"minutes": minutes})})
    settings, _ = verdict.settings_of(benchmark)
    store = checked(benchmark, artifacts, systems=())  # those of the file may not be built here
    output = asked.output
    benchmark = topics.in_run(benchmark, output)
    began, budget_s = time.monotonic(), 60 * settings.minutes
    with (
        prepared(benchmark, store, output, step="gate", scope={}),
        workplace.progress("gate", budget_s, f"{about(budget_s)}; less if it is clear sooner, and the builds besides"),
    ):
        check = verdict.run(benchmark, store, asked, verdict.Clock({"streams": (time.monotonic() - began) / 60}), notes)
    lines = [check.line, *self_check(check), sentence(check), f"comment: {output / verdict.COMMENT}"]
    tell("\n".join(lines), check.to_json(), as_json)
    raise typer.Exit(check.exit_code)
