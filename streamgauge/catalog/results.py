"""Records of a run: measured figures, and judgements of changes, as JSON lines in the run's directory.

A figure's record says what was measured, its value with an interval, when, on which machine, with which software.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamgauge.base.jsonl import append_json, read_jsonl
from streamgauge.catalog.runs import environment

RESULTS = "results.jsonl"
JUDGEMENTS = "judgements.jsonl"


@dataclass(frozen=True)
class Result:
    """A measured figure. What it measures and the machine identify its series; software is an attribute."""

    benchmark: str
    experiment: str
    workload: str
    system: str
    mode: str  # streaming, batch
    metric: str  # ends in its unit
    unit: str
    value: float | None
    run_id: str
    config_hash: str
    low: float | None = None
    high: float | None = None
    samples: int = 1
    valid: bool = True  # False: void, with the reason
    reason: str = ""
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: dict[str, Any] = field(default_factory=lambda: environment()["machine"])
    software: dict[str, Any] = field(default_factory=lambda: environment()["software"])


def append(run: Path, result: Result) -> None:
    append_json(run / RESULTS, asdict(result))


def append_once(run: Path, result: Result) -> None:
    """Appends a figure unless the run holds it: a finished stage that runs again measures nothing new.

    Time, machine and software are not compared.
    """
    at, machine, software = result.at, result.machine, result.software
    if all(replace(known, at=at, machine=machine, software=software) != result for known in read(run)):
        append(run, result)


def read(run: Path) -> list[Result]:
    """The run's figures in the order in which they were measured."""
    return [Result(**record) for record in read_jsonl(run / RESULTS)]


@dataclass(frozen=True)
class Judgement:
    """A run's judgement of a change in a series. outcome: regression, improvement, refuted or open.

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


def judged(run: Path) -> list[Judgement]:
    return [Judgement(**record) for record in read_jsonl(run / JUDGEMENTS)]
