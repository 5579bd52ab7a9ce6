"""The commands results, dashboard and gc: the index of what was measured, its page, and the disk space in use.

The commands that exchange figures with other tools stand in exchange.py.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.app.cli import exchange
from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, app, store_at, tell
from streamgauge.app.cli.indexed import Database, Filters, Since, existing, filters_of, index_at, moment_of
from streamgauge.base.errors import UserError
from streamgauge.base.places import write_whole
from streamgauge.base.units import parse_bytes
from streamgauge.base.words import counted, shown

if TYPE_CHECKING:
    from streamgauge.results.index import Index
    from streamgauge.results.index.result_index import Row

results = typer.Typer(no_args_is_help=True, help="List, export and rebuild the index of all results.")
app.add_typer(results, name="results")


@results.command("list")
def list_(
    where: Filters = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="largest number of results; the newest ones are listed")] = 50,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List measured figures, oldest first."""
    from streamgauge.records.claim import mark_of

    rows = existing(artifacts, database).results(limit=limit, since=moment_of(since), **filters_of(where))
    lines = []
    for row in rows:
        what = " ".join(str(row[name]) for name in ("benchmark", "experiment", "workload", "system", "mode"))
        value = "—" if row["value"] is None else f"{mark_of(row['claim'])} {shown(row['value'])}".lstrip()
        none = f"  {row['reason']}" if row["value"] is None and row["reason"] else ""
        void = none if row["valid"] else f"  void: {row['reason']}"
        lines.append(f"{row['at']}  {row['series_key']}  {what}  {row['metric']} {value} {row['unit']}{void}")
    tell("\n".join([*lines, counted(len(rows), "result")]), {"results": rows}, as_json)


@results.command("series")
def series_(
    where: Filters = None, artifacts: Artifacts = DEFAULT_ARTIFACTS, database: Database = None, as_json: AsJson = False
) -> None:
    """List series: what is measured, and on which machine."""
    heads = existing(artifacts, database).series(**filters_of(where))
    lines = [f"{head.key}  {head.text}  on {head.machine_text}" for head in heads]
    tell("\n".join([*lines, f"{len(heads)} series"]), {"series": [asdict(head) for head in heads]}, as_json)


@results.command()
def metrics(
    where: Filters = None, artifacts: Artifacts = DEFAULT_ARTIFACTS, database: Database = None, as_json: AsJson = False
) -> None:
    """List the metrics that were measured, with the number of their series and of their valid points."""
    by_metric: dict[tuple[str, str], list[Row]] = {}
    for row in existing(artifacts, database).results(**filters_of(where)):
        by_metric.setdefault((row["metric"], row["unit"]), []).append(row)
    rows = [
        {"metric": metric, "unit": unit, "series": len({row["series_key"] for row in points}),
         "valid": sum(row["valid"] and row["value"] is not None for row in points)}
        for (metric, unit), points in sorted(by_metric.items())
    ]  # fmt: skip
    lines = [f"{row['metric']}  in {row['unit']}: {row['series']} series, {row['valid']} valid points" for row in rows]
    tell("\n".join([*lines, counted(len(rows), "metric")]), {"metrics": rows}, as_json)


@results.command("history")
def history(key: Annotated[str, typer.Argument(help="key of a series, see `results series`")],
            out: Annotated[Path, typer.Argument(help="CSV to write: time,value")],
            artifacts: Artifacts = DEFAULT_ARTIFACTS, database: Database = None,
            as_json: AsJson = False) -> None:  # fmt: skip
    """Write a series as time,value, for `streamgauge changes`; void points become gaps."""
    points = existing(artifacts, database).history(key)
    if not points:
        raise UserError(f"found no series {key!r}; `streamgauge results series` lists them")
    lines = [f"{point.at},{point.value if point.is_sound else ''}\n" for point in points]
    try:
        write_whole(out, ("time,value\n" + "".join(lines)).encode())
    except OSError as problem:
        raise UserError(f"{out}: cannot be written: {problem.strerror}") from None
    tell(f"{counted(len(points), 'point')}: {out}", {"points": len(points), "file": out}, as_json)


results.command()(exchange.export)
results.command("import")(exchange.import_)


@results.command()
def rebuild(
    others: Annotated[bool, typer.Option("--others", help="also drop results whose records are not here")] = False,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Empty the index and fill it from the records (JSON lines) of all runs, all or nothing."""
    if not (runs := store_at(artifacts).runs()):
        raise UserError(
            f"{artifacts}/runs: found no run; rebuilding would empty the index; name the folder with --artifacts"
        )
    from streamgauge.results.index import default_url
    from streamgauge.results.index.result_index import rebuilt

    index, count = rebuilt(database or default_url(artifacts), runs, others=others)
    tell(f"{counted(count, 'result')} of {counted(len(runs), 'run')}", {"results": count, "runs": len(runs)}, as_json)
    _tell(index)


@results.command()
def add(artifacts: Artifacts = DEFAULT_ARTIFACTS, database: Database = None, as_json: AsJson = False) -> None:
    """Add results that the records of all runs hold and the index lacks; nothing is removed."""
    if not (runs := store_at(artifacts).runs()):
        raise UserError(f"{artifacts}/runs: found no run; name the folder with --artifacts")
    index = index_at(artifacts, database)
    count = sum(index.add_run(run) for run in runs)
    tell(f"{counted(count, 'new result')} of {counted(len(runs), 'run')}", {"new": count, "runs": len(runs)}, as_json)
    _tell(index)


@results.command()
def accept(
    key: Annotated[str, typer.Argument(help="key of a series, see `results series` or the page of all nights")],
    reason: Annotated[str, typer.Option(help="why its level is the new baseline; pages show it")],
    author: Annotated[str, typer.Option(help="who accepts it", show_default="your user name")] = "",
    since: Annotated[
        str | None, typer.Option(help="the regression that began at this time; by default the latest one")
    ] = None,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Accept a regression: its level becomes the baseline, and pages no longer show it as bad."""
    import getpass

    from streamgauge.app.nights import accepting

    try:
        author = author or getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        raise UserError("--author: this option is missing, and this user has no name; give the name here") from None
    judgement = accepting.accept(
        store_at(artifacts), existing(artifacts, database), key, reason=reason, author=author, since=since,
    )  # fmt: skip
    facts = {"series_key": key, "changed_at": judgement.changed_at, "magnitude": judgement.magnitude, "reason": reason}
    tell(f"accepted {judgement.magnitude:+.1%} since {judgement.changed_at}: {reason}", facts, as_json)


def _tell(index: Index) -> None:
    """Raises UserError if lines of the records were left out; a warning has named each of them."""
    if index.problems:
        raise UserError(
            f"left out {counted(len(index.problems), 'line')} of the records; mend or empty each, and run again"
        )


@app.command()
def dashboard(
    out: Annotated[Path, typer.Option(help="the HTML file to write")],
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page with every series over time, its changes marked."""
    from streamgauge.app.nights.series import looks
    from streamgauge.results.report import dashboard

    index = existing(artifacts, database)
    changes = dashboard.build(index, out, looks(index))
    tell("\n".join([*changes, f"page: {out}"]), {"page": out, "changes": changes}, as_json)


@app.command()
def gc(
    budget: Annotated[str, typer.Option(help="disk space that artifacts may take, such as 20GiB")] = "50GiB",
    keep_runs: Annotated[
        int, typer.Option(min=0, help="number of the newest runs of each benchmark that keep their data")
    ] = 3,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list what would be removed")] = False,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Remove leftovers, then data that can be made again, the least recently used first, until the budget is met."""
    from streamgauge.results.index import garbage_collection

    try:
        allowed = parse_bytes(budget)
    except ValueError as problem:
        raise UserError(f"--budget: {problem}") from None
    collected = garbage_collection.collect(store_at(artifacts), allowed, keep_runs=keep_runs, dry_run=dry_run)
    verb = "would remove" if dry_run else "removed"
    lines = [f"{verb}  {item.bytes / 2**20:10.1f} MiB  {item.path}  {item.why}" for item in collected.removed]
    before, after = (f"{size / 2**20:.1f} MiB" for size in (collected.bytes_before, collected.bytes_after))
    tell("\n".join([*lines, f"{before} before, {after} after, budget {budget}"]), asdict(collected), as_json)
