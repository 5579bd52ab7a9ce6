"""The commands results export and results import: figures to and from files, also in the formats of other tools."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, store_at, tell
from streamgauge.app.cli.indexed import Database, Filters, Since, existing, filters_of, index_at, moment_of
from streamgauge.base.errors import UserError
from streamgauge.base.words import counted

if TYPE_CHECKING:
    from streamgauge.results.index.result_index import Row

Form = Literal["rows", "bencher", "otava", "openmetrics"]


def export(
    out: Annotated[Path, typer.Option(help="the file to write; of rows, .csv or .parquet")],
    form: Annotated[
        Form,
        typer.Option(
            "--as",
            help="rows: all that the index has, and the comparisons of runs whose records are here; bencher: Bencher's "
            "Metric Format; otava: Apache Otava's table, with its configuration beside it; openmetrics: for Prometheus",
        ),
    ] = "rows",
    where: Filters = None,
    since: Since = None,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Export measured figures; other tools get those that are not void."""
    from streamgauge.results.index import export

    index, wanted, moment = existing(artifacts, database), filters_of(where), moment_of(since)
    rows = index.results(since=moment, **wanted)
    if form != "rows":
        line, facts = _exchanged(form, rows, out)
        tell(line, facts, as_json)
        return
    runs = {name: value for name, value in wanted.items() if name in ("benchmark", "run_id")}
    compared = export.comparisons(store_at(artifacts), index.results(since=moment, **runs), wanted)
    export.write([*rows, *compared], out)
    facts = {"results": len(rows), "comparisons": len(compared), "file": out}
    tell(f"{counted(len(rows), 'result')} and {counted(len(compared), 'comparison')}: {out}", facts, as_json)


def _exchanged(form: Form, rows: Sequence[Row], out: Path) -> tuple[str, dict[str, object]]:
    """Writes the rows' sound figures in that form; returns what was written as a line, and as facts."""
    from streamgauge.base.places import as_user_error, write_whole
    from streamgauge.records.claim import mark_of
    from streamgauge.results.exchange import bencher, openmetrics, otava
    from streamgauge.results.exchange.figures import sound

    if form == "bencher":  # an older figure must not stand for a void one
        rows = list({row["series_key"]: row for row in rows}.values())
    figures = sound(rows)
    if not figures:
        raise UserError("--where: found no figure that is not void; `streamgauge results list` lists all")
    void, texts = len(rows) - len(figures), {out: ""}
    notes = [f"{counted(void, 'void one')} left out"] if void else []
    if form == "otava":
        if out.suffix == ".yaml":
            raise UserError(f"--out: found {out}, allowed: another ending, as the configuration beside it has .yaml")
        table = otava.table_of(figures, out.name)
        figures, texts = table.figures, {out: table.csv, out.with_suffix(".yaml"): table.configuration}
        notes += [f"{counted(table.left_out, 'run')} left out for lack of a figure"] if table.left_out else []
    elif form == "bencher":
        figures = bencher.newest(figures)
        texts[out] = bencher.text_of(figures)
    else:
        texts[out] = openmetrics.text_of(figures)
    marks = [mark for one in figures if (mark := mark_of(one.claim))]
    if marks and form != "openmetrics":
        notes.append(f"{len(marks)} in doubt ({', '.join(sorted({*marks}))}), for which the format has no place")
    for path, text in texts.items():
        try:
            write_whole(path, text.encode())
        except OSError as problem:
            raise as_user_error(problem, path) from None
    files = ", ".join(map(str, texts))
    return "; ".join([f"{counted(len(figures), 'result')}: {files}", *notes]), {
        "results": len(figures),
        "files": list(texts),
    }


def import_(
    file: Annotated[Path, typer.Argument(help="a report of Bencher (JSON), or a table that Apache Otava reads (CSV)")],
    form: Annotated[Literal["bencher", "otava"], typer.Option("--as", help="what the file is")],
    benchmark: Annotated[
        str, typer.Option(help="the benchmark of figures whose names are not ours", show_default="the file's name")
    ] = "",
    at: Annotated[
        str | None,
        typer.Option(help="when a report was measured, which it does not tell", show_default="the file's time"),
    ] = None,
    machine: Annotated[str, typer.Option(help="label of the machine: its series are its own")] = "imported",
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add figures of another tool to the index, as a run of their own; the same file adds nothing twice."""
    from streamgauge.base.places import text_of_user
    from streamgauge.catalog import results
    from streamgauge.catalog.claims import claimed
    from streamgauge.records.result import Result
    from streamgauge.results.exchange import bencher, otava
    from streamgauge.results.exchange.figures import IMPORTED

    text = text_of_user(file)
    when = moment_of(at, "--at") or datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    benchmark = benchmark or file.name.partition(".")[0]
    content = "\n".join((benchmark, machine, when if form == "bencher" else "", text))
    run_id = f"{IMPORTED}{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    template = Result(
        benchmark, "", "", "", "", "", "", None, run_id, config_hash="", at=when, machine={"host": machine}, software={}
    )
    figures = (bencher if form == "bencher" else otava).figures_of(text, str(file), template)
    for name in (name for one in figures for name in results.measured(one).values()):
        if len(name) > (most := results.NAME_CHARACTERS) or "\0" in name:
            raise UserError(f"{file}: found the name {name[:40]!r}…, allowed: at most {most} characters, without NUL")
    run = store_at(artifacts).run(run_id)
    with claimed(run):
        there, damages = results.numbered(run)
        if damages:
            raise UserError(f"{damages[0].file}: {damages[0].what}; delete the folder {run}, and import again")
        known = there[-1][0] + 1 if there else 0  # a history has equal values; a killed import has left the first
        for one in figures[known:]:
            results.append(run, one)
    index = index_at(artifacts, database)
    count = index.add_run(run)
    tell(
        f"{count} new of {counted(len(figures), 'result')}: run {run_id}",
        {"new": count, "results": len(figures), "run": run_id},
        as_json,
    )
