"""Records of a run: measured figures, and judgements of changes, as JSON lines in the run's directory.

A figure's record says what was measured, its value with an interval, when, on which machine, with which software.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import DAMAGED_LINE, append_json, numbered_jsonl
from streamgauge.catalog.run_log import environment
from streamgauge.records.claim import mark_of

T = TypeVar("T")

RESULTS = "results.jsonl"
JUDGEMENTS = "judgements.jsonl"
#: columns that say what is measured; with the machine they identify a series
MEASURED = ("benchmark", "experiment", "workload", "system", "mode", "metric", "unit")
#: why a figure is void whose stage was cleared and ran again
REPLACED = "replaced: its stage ran again in this run"


@dataclass(frozen=True)
class Result:
    """A measured figure. What it measures and the machine identify its series; software is an attribute."""

    benchmark: str
    experiment: str
    workload: str
    system: str
    mode: str  # streaming, batch
    metric: str  # name of the figure, such as event_latency_ms_p99_at_50pct
    unit: str
    value: float | None
    run_id: str
    config_hash: str
    low: float | None = None
    high: float | None = None
    samples: int = 1
    valid: bool = True  # False: void, with the reason
    reason: str = ""
    claim: str = ""  # of a rate: proven, at least, estimated …
    replaces: bool = False  # its stage may run again: it stands instead of what the run said of this before
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: dict[str, Any] = field(default_factory=lambda: environment()["machine"])
    software: dict[str, Any] = field(default_factory=lambda: environment()["software"])

    @property
    def text(self) -> str:
        """The value with its claim's mark, its unit and interval, and why it is void; a dash without a value."""
        if self.value is None:
            return "—"
        between = "" if self.low is None or self.high is None else f" ({self.low:,.6g} to {self.high:,.6g})"
        void = "" if self.valid else f"  void: {self.reason}"
        return f"{mark_of(self.claim)} {self.value:,.6g} {self.unit}{between}{void}".lstrip()


#: what identifies a machine; the rest of what is recorded of it may change with an update, as software does
_IDENTITY = ("host", "cpu", "cores")


def identity(machine: dict[str, Any]) -> dict[str, Any]:
    """Properties that identify a machine: its label (STREAMGAUGE_HOST) if it has one, CPU and cores."""
    return {name: machine[name] for name in _IDENTITY if machine.get(name) is not None}


def attributes(result: Result) -> dict[str, Any]:
    """Properties that may explain a change of the figure: software versions, and the rest of the machine's."""
    rest = {name: value for name, value in result.machine.items() if name not in _IDENTITY}
    return {**result.software, **rest, **({"claim": result.claim} if result.claim else {})}


def append(run: Path, result: Result) -> None:
    append_json(run / RESULTS, asdict(result))


def append_once(run: Path, result: Result) -> None:
    """Appends a figure unless the run already holds it, as a finished stage that runs again measures nothing new.

    Two figures are equal if all but time, machine and software is equal.
    """
    at, machine, software = result.at, result.machine, result.software
    if all(replace(known, at=at, machine=machine, software=software) != result for known in read(run)):
        append(run, result)


def read(run: Path) -> list[Result]:
    """The run's figures in the order in which they were measured. Raises UserError for an unreadable line."""
    figures, problems = numbered(run)
    if problems:
        raise UserError(f"{problems[0]}; delete the line")
    return [result for _, result in figures]


def numbered(run: Path) -> tuple[list[tuple[int, Result]], list[str]]:
    """The run's figures, each with its line's index (from 0), and one sentence for each unreadable line.

    Figures that a repeated stage replaced are void.
    """
    figures, problems = _records(Result, run / RESULTS)
    last = {_measured(one): number for number, one in figures if one.replaces}
    return [
        (number, one if number >= last.get(_measured(one), 0) else replace(one, valid=False, reason=REPLACED))
        for number, one in figures
    ], problems


def _measured(result: Result) -> tuple[str, ...]:
    return tuple(str(getattr(result, name)) for name in MEASURED)


@dataclass(frozen=True)
class Judgement:
    """A run's judgement of a change in a series. outcome: regression, improvement, refuted or open.

    The outcome accepted is a person's: the regression is the new baseline; the evidence has their name and reason.
    The outcome self is an A/A comparison of a series, release_check a whole release check: neither judges a change.
    """

    run_id: str
    series_key: str
    changed_at: str  # the first point of the new level
    outcome: str
    magnitude: float
    evidence: dict[str, Any]  # the change point, and the comparison that confirmed or refuted it


def judge(run: Path, judgement: Judgement) -> None:
    append_json(run / JUDGEMENTS, asdict(judgement))


#: the outcome of a regression that a person takes for the new baseline
ACCEPTED = "accepted"


def judged(run: Path) -> list[Judgement]:
    return [judgement for _, judgement in numbered_judgements(run)[0]]


def numbered_judgements(run: Path) -> tuple[list[tuple[int, Judgement]], list[str]]:
    """The run's judgements, each with its line's index, and one sentence for each unreadable line."""
    return _records(Judgement, run / JUDGEMENTS)


def _records(kind: type[T], path: Path) -> tuple[list[tuple[int, T]], list[str]]:
    reader: TypeAdapter[T] = _reader(kind.__name__)
    records, problems = [], []
    for line, value in numbered_jsonl(path):
        if value is None:
            problems.append(f"{path}: line {line}: {DAMAGED_LINE}")
            continue
        try:
            records.append((line - 1, reader.validate_json(json.dumps(value), strict=True)))
        except ValidationError as problem:
            first = problem.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            said = f"{where}: {first['msg']}" if where else first["msg"]
            problems.append(f"{path}: line {line}: no {kind.__name__.lower()} ({said})")
    return records, problems


@cache
def _reader(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter({"Result": Result, "Judgement": Judgement}[kind])
