"""Figures that leave for other tools, and the names that they bear there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from streamgauge.base.errors import UserError
from streamgauge.catalog.results import identity, measured
from streamgauge.records.result import Result
from streamgauge.results.index.result_index import Row

#: what a name consists of; the metric stands apart
PARTS = ("benchmark", "experiment", "workload", "system", "mode")
#: how the name of a run begins that is a file of another tool
IMPORTED = "imported-"
#: modes of our figures; an imported one has none
_MODES = ("streaming", "batch", "quick", "")
_SLASH = "%2F"  # within a part, as another tool's name may have one
_OF_ROW = {one.name for one in fields(Result)}


def sound(rows: Sequence[Row]) -> list[Result]:
    """Figures of the index's rows, in their order, without void ones: no other format can say that one is void."""
    kept = [row for row in rows if row["valid"] and row["value"] is not None]
    return [Result(**{name: value for name, value in row.items() if name in _OF_ROW}) for row in kept]


def name_of(figure: Result) -> str:
    """Name of what the figure measures, without its metric: flights/late20/sums/spark/streaming."""
    fields_of = measured(figure)
    return "/".join(fields_of[part].replace("/", _SLASH) for part in PARTS)


def named(template: Result, name: str, metric: str, unit: str = "") -> Result:
    """Returns the template with a name of ours, or with another tool's name as its experiment."""
    parts = [part.replace(_SLASH, "/") for part in name.split("/")]
    benchmark, experiment, workload, system, mode = (
        parts
        if len(parts) == len(PARTS) and parts[0] and parts[-1] in _MODES
        else (template.benchmark, name, "", "", "")
    )
    return replace(
        template, benchmark=benchmark, experiment=experiment, workload=workload, system=system, mode=mode,
        metric=metric, unit=unit,
    )  # fmt: skip


def require_one_machine(figures: Sequence[Result], form: str) -> None:
    """Raises UserError for figures of several machines, which the format would mix."""
    machines = {str(identity(one.machine)) for one in figures}
    if len(machines) > 1:
        raise UserError(
            f"--where: found figures of {len(machines)} machines, allowed: one for --as {form}; name a run_id"
        )
