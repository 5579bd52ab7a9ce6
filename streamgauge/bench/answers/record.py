"""Judges an answer to a query, and keeps what suites leave in a run's directory.

The files are answers, appended as they come, and the capability matrix that follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from streamgauge.base.jsonl import write_json
from streamgauge.base.words import counted
from streamgauge.bench.answers.capabilities import capabilities
from streamgauge.bench.workloads import Query
from streamgauge.records.answers import Answer, AnswerLine, HardQueries, Mode
from streamgauge.records.rules import Counted

ROWS, CAPABILITIES = "nexmark.jsonl", "capabilities.json"
Size = tuple[int, str]  # of an answer: rows, and their hash


@dataclass(frozen=True)
class Late:
    """Late rows of a run: what the engine counts as such, and how many were dropped."""

    counted: Counted
    expected: int = 0
    reported: int | None = 0  # None: the engine does not know it
    wrong_watermark: str | None = None  # see late_rows.Expectation


def short(query: Query) -> str:
    return query.name.rpartition(".")[2]


def judged(
    query: Query,
    mode: Mode,
    given: Size,
    wanted: Size,
    seconds: float,
    events: int,
    late: Late,
    output_bytes: int | None = None,
    state_rows: int | None = None,
) -> Answer:
    """Compares the answer given with the wanted one. A wrong watermark explains all else."""
    why = None
    if late.wrong_watermark is not None:
        why = late.wrong_watermark
    elif given[0] != wanted[0]:
        why = f"{counted(given[0], 'row')}, {wanted[0]} expected"
    elif given != wanted:
        why = f"{counted(given[0], 'row')} as expected, but with other values"
    elif late.reported not in (None, late.expected):
        why = f"{late.reported} late {late.counted} reported as dropped, {late.expected} expected"
    return Answer(
        query=short(query),
        mode=mode,
        status="correct" if why is None else "wrong",
        rows=given[0],
        hash=given[1],
        seconds=round(seconds, 3),
        late_drops_expected=late.expected,
        late_drops_reported=late.reported,
        late_drops_counted_in=late.counted,
        events_per_s=round(events / seconds, 1),
        output_bytes=output_bytes,
        state_rows=state_rows,
        why=why,
    )


def keep(directory: Path, line: AnswerLine) -> None:
    line.append(directory / ROWS)
    write_json(directory / CAPABILITIES, capabilities(AnswerLine.read_log(directory / ROWS)).to_json())


def keep_hard(directory: Path, record: HardQueries) -> None:
    """Writes the outcome of answers.hard_queries for the run's page."""
    record.write(directory / f"hard-{record.system}-{record.disorder_percent:g}.json")
