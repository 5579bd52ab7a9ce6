"""The table that Apache Otava reads: a row for each run, with its time, its commit, and a column for each series."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import yaml

from streamgauge.base.environment import Software
from streamgauge.base.errors import UserError
from streamgauge.base.printing import as_cell
from streamgauge.base.words import counted
from streamgauge.records.result import Result
from streamgauge.results.exchange.figures import IMPORTED, PARTS, name_of, named, require_one_machine
from streamgauge.stats.suspects import higher_is_better

TIME = "time"
#: columns that are no metrics, even if all their cells are numbers
_ATTRIBUTES = ("commit", "branch", "version", "run")
_DOTTED = "%Y.%m.%d %H:%M:%S %z"  # of Otava's own examples


@dataclass(frozen=True)
class Table:
    """The table, the configuration that names its columns, and its figures. left_out: number of runs that lack one."""

    csv: str
    configuration: str
    figures: list[Result]
    left_out: int


def table_of(figures: Sequence[Result], file: str) -> Table:
    """Table of whole runs: Otava refuses an empty cell. figures: oldest first. Raises UserError.

    A history that was imported is one run, of which each moment has a row.
    """
    require_one_machine(figures, "otava")
    units = {f"{name_of(one)}/{one.metric}": one.unit for one in figures}
    runs: dict[tuple[str, str], dict[str, Result]] = {}
    for one in figures:
        moment = one.at if one.run_id.startswith(IMPORTED) else ""
        runs.setdefault((one.run_id, moment), {})[f"{name_of(one)}/{one.metric}"] = one
    whole = {run: row for run, row in runs.items() if row.keys() == units.keys()}
    if not whole:
        raise UserError(
            f"--where: found no run that has all {counted(len(units), 'figure')}, allowed: one or more; "
            f"name fewer, such as by metric={figures[-1].metric}"
        )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([TIME, "commit", "run", *units])
    for (run, _), row in whole.items():
        first = min(row.values(), key=lambda one: one.at)
        commit = (first.software.get("commit") or "").rstrip("+")
        writer.writerow([first.at, commit, as_cell(run), *(repr(row[name].value) for name in units)])
    metrics = {
        name: {"column": name, "direction": 1 if higher_is_better(name.rpartition("/")[2], unit) else -1}
        for name, unit in units.items()
    }
    test = {"type": "csv", "file": file, "time_column": TIME, "attributes": ["commit", "run"], "metrics": metrics}
    configuration = yaml.safe_dump({"tests": {"streamgauge": test}}, sort_keys=False, width=1000)
    written = [one for row in whole.values() for one in row.values()]
    return Table(out.getvalue(), configuration, written, len(runs) - len(whole))


def figures_of(text: str, where: str, template: Result) -> list[Result]:
    """Figures of a table: each column of numbers is a metric, the others are kept beside them. Raises UserError.

    template: what each figure has that the table does not tell. An empty cell is no figure.
    """
    header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    if TIME not in header or len(set(header)) < len(header):
        raise UserError(f"{where}: header: found {', '.join(header)[:80]!r}, allowed: a column {TIME}, each name once")
    rows = [row for row in rows if row]
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise UserError(
                f"{where}: row {number}: found {counted(len(row), 'field')}, allowed: {len(header)}, as in the header"
            )
    cells = {name: [row[place].strip() for row in rows] for place, name in enumerate(header)}
    if len(branches := set(cells.get("branch", []))) > 1:
        raise UserError(f"{where}: branch: found {len(branches)} branches, allowed: one, as each has its own history")
    numbers = {
        name: [_number(cell) if cell else None for cell in column]
        for name, column in cells.items()
        if name not in (TIME, *_ATTRIBUTES)
        and any(column)
        and all(_number(cell) is not None for cell in column if cell)
    }
    if not numbers:
        raise UserError(f"{where}: found no column of numbers beside {TIME}")
    others = [name for name in header if name not in (TIME, *numbers)]
    figures = []
    for place, moment in enumerate(cells[TIME]):
        software: Software = {name: cells[name][place] for name in others}
        at = _moment(moment, f"{where}: row {place + 2}: {TIME}")
        for name, column in numbers.items():
            if (value := column[place]) is not None:
                figures.append(replace(_of_column(template, name), value=value, at=at, software=software))
    return figures


def _of_column(template: Result, column: str) -> Result:
    """Returns the template with the names of a column of ours, or with another tool's column as its metric."""
    *parts, metric = column.split("/", len(PARTS))
    return named(template, "/".join(parts), metric) if len(parts) == len(PARTS) else named(template, "", column)


def _number(cell: str) -> float | None:
    return float(cell) if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", cell) else None


def _moment(text: str, where: str) -> str:
    """The time as the index has it: UTC, whole seconds. Raises UserError."""
    for read in (datetime.fromisoformat, lambda one: datetime.strptime(one, _DOTTED), _of_epoch):
        try:
            moment = read(text)
        except (ValueError, OverflowError, OSError):
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
    raise UserError(f"{where}: found {text[:40]!r}, allowed: ISO-8601, seconds since 1970, or 2024.01.31 3:00:00 +0100")


def _of_epoch(text: str) -> datetime:
    return datetime.fromtimestamp(float(text), UTC)
