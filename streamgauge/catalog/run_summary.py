"""Summarises a run from its records: how its stages ended, how many figures it has, and whether it has a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from streamgauge.base.errors import UserError
from streamgauge.bench.measurements.scaling.record import DisorderInCpus, ScalingRun, disorder_in_cpus
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog import results
from streamgauge.catalog.results import MEASURED
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.records.comparison import Comparison
from streamgauge.records.loss import Loss
from streamgauge.records.result import Result

T = TypeVar("T")

PAGE = "index.html"
SEARCH, LATENCY, SCALING = "search.json", "latency.json", "scaling.json"  # in a cell's directory
#: what tells a figure from the others of a benchmark
FIGURE = tuple(name for name in MEASURED if name not in ("benchmark", "unit"))


@dataclass(frozen=True)
class Summary:
    """Summary of a run: how its stages ended, and what it has measured."""

    run: str
    started_at: str | None = None  # None: its stages cannot be read
    stages: dict[str, int] = field(default_factory=dict)  # state -> count
    figures: int = 0  # sound ones
    page: str | None = None  # its path
    problem: str | None = None  # what of its records cannot be read


def of_each(runs: Iterable[Path], read: Callable[[Path], T]) -> tuple[dict[Path, T], dict[Path, str]]:
    """Reads something of each run. Returns it by run, and why others cannot be read, as these must fail no command."""
    values: dict[Path, T] = {}
    problems: dict[Path, str] = {}
    for run in runs:
        try:
            values[run] = read(run)
        except UserError as problem:
            problems[run] = str(problem)
    return values, problems


def summaries(runs: Iterable[Path]) -> list[Summary]:
    """Summaries of those of which anything is recorded: first those that cannot be read, then by their start."""
    readable, problems = of_each(runs, summary)
    unreadable = [Summary(run.name, page=_page(run), problem=why) for run, why in problems.items()]
    return [*unreadable, *sorted(filter(None, readable.values()), key=lambda one: str(one.started_at))]


def last_attempts(path: Path) -> list[StageRecord]:
    """The last attempt at each stage of a run, in the order of their starts."""
    latest = {(stage.stage, *stage.scope.items()): stage for stage in RunLog(path).stages()}
    return sorted(latest.values(), key=lambda stage: stage.started_at)


def began(path: Path) -> str | None:
    """Time at which the run's first stage began, in its first attempt; None if none has begun."""
    return min((stage.started_at for stage in RunLog(path).stages()), default=None)


def summary(path: Path) -> Summary | None:
    """Summary of a run; None if nothing of it is recorded. Raises Damaged."""
    stages = last_attempts(path)
    if not stages:
        return None
    states = Counter("running or killed" if stage.state == "started" else stage.state for stage in stages)
    figures, problems = results.numbered(path)
    return Summary(
        run=path.name,
        started_at=began(path),
        stages=dict(states),
        figures=sum(one.is_sound for _, one in figures),
        page=_page(path),
        problem=str(problems[0]) if problems else None,
    )


def _page(run: Path) -> str | None:
    return str(run / PAGE) if has(run, PAGE) else None


def has(run: Path, name: str) -> bool:
    """True if a run has that file; False also if this user may not look into its folder."""
    try:
        return (run / name).exists()
    except PermissionError:
        return False


def search_of(cell: Path) -> SearchAnswer:
    """Returns the record of the search in a cell's directory. Raises OSError, or Damaged."""
    return SearchAnswer.read(cell / SEARCH, "delete the file, and run the stage search again")


def comparisons(path: Path) -> list[Comparison]:
    """Returns the comparisons of the cells of a run that shared their processes, in the order of the cells' names."""
    searches = _searches(path)
    claims = {name: search.claim for name, search in searches.items() if search.claim}
    return [one.among(claims) for search in searches.values() for one in search.compared]


def losses(path: Path) -> dict[str, Loss]:
    """Returns what each searched cell of a run loses at its stream's own speed, by the cell's name."""
    searches = _searches(path)
    return {name: search.lost_at_own_speed for name, search in searches.items() if search.lost_at_own_speed}


def in_cpus(path: Path) -> dict[str, DisorderInCpus]:
    """Returns what the disorder of each cell of a run costs in CPUs, as far as they were scaled, by the cell's name."""
    return disorder_in_cpus(ScalingRun.read(cell / SCALING) for cell in _cells_with(path, SCALING))


def _searches(path: Path) -> dict[str, SearchAnswer]:
    return {cell.name: search_of(cell) for cell in _cells_with(path, SEARCH)}


def _cells_with(path: Path, name: str) -> list[Path]:
    """Directories of the cells of a run that have a file of that name."""
    cells = path / "cells"
    folders = sorted(cells.iterdir()) if cells.is_dir() else []  # a store knows no pattern with a slash
    return [cell for cell in folders if (cell / name).exists()]


def figures(path: Path) -> dict[tuple[str, ...], Result]:
    """The last sound figure of each kind that a run measured, by the parts of its name (FIGURE)."""
    name_of = attrgetter(*FIGURE)
    return {name_of(one): one for one in results.read(path) if one.is_sound}


def shared(before: dict[tuple[str, ...], Result], after: dict[tuple[str, ...], Result]) -> list[tuple[str, ...]]:
    """Names of the figures that both runs have of one benchmark on one kind of machine, in the order of `after`."""
    return [
        key
        for key, one in after.items()
        if key in before
        and before[key].benchmark == one.benchmark
        and results.identity(before[key].machine) == results.identity(one.machine)
    ]
