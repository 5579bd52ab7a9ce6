"""Records of a query in a mode, and the files that suites leave in a run's directory.

The files are rows, appended as they come, and the capability matrix that follows from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from streamgauge.base.errors import Outage
from streamgauge.base.jsonl import append_json, read_jsonl, write_json, write_record
from streamgauge.bench.answers.capabilities import capabilities
from streamgauge.bench.engines.spark.application import reason
from streamgauge.bench.engines.spark.engine import is_alive
from streamgauge.bench.workloads import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, CAPABILITIES = "nexmark.jsonl", "capabilities.json"
Mode = Literal["batch", "streaming"]
MODES: tuple[Mode, ...] = ("batch", "streaming")
Status = Literal["correct", "unchecked", "unsupported", "wrong"]
Answer = tuple[int, str]  # rows, and their hash
#: beginning of Spark's message; it names the run of the query that failed, and so differs every time
_FAILED = re.compile(r"^\[STREAM_FAILED\].*? terminated with exception: ")


@dataclass(frozen=True)
class Record:
    """Outcome of a query in a mode. rows, hash: of what its rule compares. why: the reason, unless it is correct.

    unchecked: the query was answered, and nobody can say if the answer is right; without rows, it was too slow.
    """

    query: str
    mode: Mode
    status: Status
    rows: int | None = None
    hash: str | None = None
    seconds: float | None = None
    late_drops_expected: int | None = None
    late_drops_reported: int | None = None
    late_drops_counted_in: str = "none"
    events_per_s: float | None = None
    output_bytes: int | None = None
    state_rows: int | None = None
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def short(query: Query) -> str:
    return query.name.rpartition(".")[2]


def judged(
    query: Query,
    mode: Mode,
    given: Answer,
    wanted: Answer,
    seconds: float,
    events: int,
    output_bytes: int | None,
    counted: str,
    expected: int = 0,
    reported: int | None = 0,
    state_rows: int | None = None,
    wrong_watermark: str | None = None,
) -> Record:
    """Compares the answer given with the wanted one, and returns the record.

    counted: what the engine counts as late (see oracle.batches.Rules). expected, reported: how many of these were
    dropped; None if the engine does not know it. wrong_watermark: see late_rows.Expectation.
    """
    why = None
    if given[0] != wanted[0]:
        why = f"{given[0]} rows, {wanted[0]} expected"
    elif given != wanted:
        why = f"{given[0]} rows as expected, but with other values"
    elif reported not in (None, expected):
        why = f"{reported} late {counted} reported as dropped, {expected} expected"
    elif wrong_watermark is not None:
        why = wrong_watermark
    return Record(
        short(query),
        mode,
        "correct" if why is None else "wrong",
        *given,
        round(seconds, 3),
        expected,
        reported,
        counted,
        round(events / seconds, 1),
        output_bytes,
        state_rows,
        why,
    )


def unsupported(spark: SparkSession, query: Query, mode: Mode, problem: Exception) -> Record:
    """Record of a query that failed, with the engine's own message. Raises Outage if the engine itself is gone."""
    if not is_alive(spark):
        raise Outage(f"Spark ended in the middle of {short(query)} in {mode}: {reason(str(problem))}") from problem
    why = _FAILED.sub("", reason(str(problem) or type(problem).__name__))
    return Record(short(query), mode, "unsupported", why=why)


def keep(directory: Path, row: Mapping[str, Any]) -> None:
    append_json(directory / ROWS, dict(row))
    write_json(directory / CAPABILITIES, capabilities(read_jsonl(directory / ROWS)))


def keep_hard(directory: Path, system: str, disorder_percent: float, record: Mapping[str, Any]) -> None:
    """Writes the outcome of answers.hard_queries for the run's page."""
    about = {"system": system, "disorder_percent": disorder_percent}
    write_record(directory / f"hard-{system}-{disorder_percent:g}.json", {**about, **record})
