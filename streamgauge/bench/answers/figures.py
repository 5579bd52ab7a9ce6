"""Makes the results of a suite: how long each query took, and what it answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from streamgauge.base.canonical import canonical
from streamgauge.base.environment import environment
from streamgauge.bench.answers.functional import CORRECT, HASH, ROWS, SUPPORTED
from streamgauge.config import Benchmark, Experiment
from streamgauge.records.answers import Answer
from streamgauge.records.result import Result

SECONDS = "query_seconds"


def results_of(
    benchmark: Benchmark,
    experiment: Experiment,
    system: str,
    run_id: str,
    answer: Answer,
    events: int,
    software: Mapping[str, str],
    *,
    timed: bool,
) -> list[Result]:
    """Results of one answer on this many events.

    software: the system's versions, where they are not this process's. timed: includes the seconds. Figures of an
    incorrect answer are void; whether it is supported, and correct, are results of their own. The first is void where
    nothing was answered in time, the second unless the answer was compared.
    """
    answered = answer.status != "unchecked" or answer.rows is not None
    supported, correct = answer.status != "unsupported", answer.status == "correct"
    # 48 bits of the hash: a float holds them exactly
    hashed = None if answer.hash is None else float(int(answer.hash[:12], 16))
    return [
        Result(
            benchmark.name, experiment.name, answer.query, system, answer.mode, metric, unit, value, run_id,
            asked(benchmark, experiment, events), valid=valid, reason="" if correct else answer.why or answer.status,
            replaces=True, software={**environment().software, **software},
        )
        for metric, unit, value, valid in (
            (SECONDS, "s", answer.seconds, correct),
            (ROWS, "rows", answer.rows, correct),
            (HASH, "hash", hashed, correct),
            (SUPPORTED, "yes", float(supported), answered),
            (CORRECT, "yes", float(correct), answer.status in ("correct", "wrong")),
        )
        if timed or metric != SECONDS
    ]  # fmt: skip


def asked(benchmark: Benchmark, experiment: Experiment, events: int) -> str:
    """Hash (16 hex digits) of everything that decides what the queries answer."""
    parts = (benchmark.source, benchmark.scale, experiment)
    return hashlib.sha256("".join([*map(canonical, parts), str(events)]).encode()).hexdigest()[:16]
