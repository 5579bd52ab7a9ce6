"""Logs of a run: measured figures, and judgements of changes, as JSON lines in the run's directory.

A figure's record says what was measured, its value with an interval, when, on which machine, with which software.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from streamgauge.base.environment import Machine
from streamgauge.base.errors import Damaged
from streamgauge.base.jsonl import DAMAGED_LINE, EMPTY_LINE, append_json, numbered_jsonl
from streamgauge.records.judgement import Judgement
from streamgauge.records.record import wrong_version
from streamgauge.records.result import Result

T = TypeVar("T", Result, Judgement)

RESULTS = "results.jsonl"
JUDGEMENTS = "judgements.jsonl"
#: columns that say what is measured; with the machine they identify a series
MEASURED = ("benchmark", "experiment", "workload", "system", "mode", "metric", "unit")
#: most characters of each of their names, as a database holds them
NAME_CHARACTERS = 200
#: why a figure is void whose stage was cleared and ran again
REPLACED = "replaced: its stage ran again in this run"
#: what identifies a machine; the rest of what is recorded of it may change with an update, as software does
_IDENTITY = ("host", "cpu", "cores")


def identity(machine: Machine) -> Machine:
    """Properties that identify a machine: its label (STREAMGAUGE_HOST) if it has one, CPU and cores."""
    return {name: machine[name] for name in _IDENTITY if machine.get(name) is not None}


def attributes(result: Result) -> dict[str, Any]:
    """Properties that may explain a change of the figure: software versions, and the rest of the machine's."""
    rest = {name: value for name, value in result.machine.items() if name not in _IDENTITY}
    return {**result.software, **rest, **({"claim": result.claim} if result.claim else {})}


def measured(result: Result) -> dict[str, str]:
    """Fields that say what a figure measures, by the names of MEASURED."""
    values = vars(result)
    return {name: values[name] for name in MEASURED}


def append(run: Path, result: Result) -> None:
    append_json(run / RESULTS, _adapter("Result").dump_python(result, mode="json"))


def append_once(run: Path, result: Result) -> None:
    """Appends a figure unless the run already holds it, as a finished stage that runs again measures nothing new.

    Two figures are equal if all but time, machine and software is equal.
    """
    at, machine, software = result.at, result.machine, result.software
    if all(replace(known, at=at, machine=machine, software=software) != result for known in read(run)):
        append(run, result)


def read(run: Path) -> list[Result]:
    """The run's figures in the order in which they were measured. Raises Damaged for an unreadable line."""
    figures, problems = numbered(run)
    if problems:
        raise problems[0]
    return [result for _, result in figures]


def numbered(run: Path) -> tuple[list[tuple[int, Result]], list[Damaged]]:
    """The run's figures, each with its line's index (from 0), and what is wrong with each unreadable line.

    Figures that a repeated stage replaced are void.
    """
    figures, problems = _records(Result, run / RESULTS)
    last = {tuple(measured(one).values()): number for number, one in figures if one.replaces}
    return [
        (number, replace(one, valid=False, reason=REPLACED))
        if number < last.get(tuple(measured(one).values()), 0)
        else (number, one)
        for number, one in figures
    ], problems


def judge(run: Path, judgement: Judgement) -> None:
    append_json(run / JUDGEMENTS, _adapter("Judgement").dump_python(judgement, mode="json"))


def numbered_judgements(run: Path) -> tuple[list[tuple[int, Judgement]], list[Damaged]]:
    """The run's judgements, each with its line's index, and what is wrong with each unreadable line."""
    return _records(Judgement, run / JUDGEMENTS)


def judgement_of(values: Mapping[str, Any]) -> Judgement:
    """A judgement from its fields, beside which there may be others. Raises ValueError."""
    judgement: Judgement = _adapter("Judgement").validate_python(values)
    return judgement


def _records(kind: type[T], path: Path) -> tuple[list[tuple[int, T]], list[Damaged]]:
    records: list[tuple[int, T]] = []
    problems: list[Damaged] = []
    try:
        for line, value, torn in numbered_jsonl(path):
            if torn:  # it never counted as written
                continue
            try:
                records.append((line - 1, _record(kind, value)))
            except ValueError as problem:
                problems.append(Damaged(f"{path}: line {line}", str(problem), EMPTY_LINE))
    except Damaged as unreadable:
        problems.append(unreadable)
    return records, problems


def _record(kind: type[T], value: Any) -> T:
    """A record from the value of its line. Raises ValueError, which says what is wrong with it."""
    if value is None:
        raise ValueError(DAMAGED_LINE)
    if isinstance(value, dict) and (wrong := wrong_version(value)):
        raise ValueError(wrong)
    try:
        record: T = _adapter(kind.__name__).validate_json(json.dumps(value), strict=True)
        return record
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise ValueError(f"no {kind.__name__.lower()} ({said})") from None


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter({"Result": Result, "Judgement": Judgement}[kind])
