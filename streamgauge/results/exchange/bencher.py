"""Bencher's Metric Format (BMF): a JSON object with name → measure → value and its bounds.

The bounds are the figure's 90 % interval, and in a soak one of 95 % over all its series. That of a rate from one
process leaves out how much fresh processes differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, FiniteFloat, StringConstraints, TypeAdapter, ValidationError

from streamgauge.base.errors import UserError
from streamgauge.records.result import Result
from streamgauge.results.exchange.figures import name_of, named, require_one_machine

#: units of the measures that every project of Bencher has
_UNITS = {"latency": "ns", "throughput": "operations/s"}


class _Metric(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: FiniteFloat
    lower_value: FiniteFloat | None = None
    upper_value: FiniteFloat | None = None


_Name = Annotated[str, StringConstraints(min_length=1)]
_REPORT: TypeAdapter[dict[_Name, dict[_Name, _Metric]]] = TypeAdapter(dict[_Name, dict[_Name, _Metric]])


def newest(figures: Sequence[Result]) -> list[Result]:
    """The newest figure of each series. figures: oldest first. Raises UserError for those of several machines."""
    require_one_machine(figures, "bencher")
    return list({(name_of(one), one.metric): one for one in figures}.values())


def text_of(figures: Sequence[Result]) -> str:
    """Text of figures, one of each series."""
    report: dict[str, dict[str, dict[str, float]]] = {}
    for one in figures:
        assert one.value is not None
        bounds = {"lower_value": one.low, "upper_value": one.high}
        metric = {"value": one.value} | {name: bound for name, bound in bounds.items() if bound is not None}
        report.setdefault(name_of(one), {})[one.metric] = metric
    return json.dumps(report, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def figures_of(text: str, where: str, template: Result) -> list[Result]:
    """Figures of a report. template: what each has that the format does not tell. Raises UserError."""
    try:
        report = _REPORT.validate_json(text)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise UserError(f"{where}: {key or 'the file'}: {first['msg']}; allowed: name → measure → value") from None
    return [
        replace(
            named(template, name, measure, _UNITS.get(measure, "")),
            value=metric.value,
            low=metric.lower_value,
            high=metric.upper_value,
        )
        for name, measures in report.items()
        for measure, metric in measures.items()
    ]
