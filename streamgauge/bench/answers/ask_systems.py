"""Asks systems the suite's queries: each in a process and an environment of its own, all at the same time."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.bench.answers.finite_stream import Events
from streamgauge.bench.engines.processes import Led
from streamgauge.bench.engines.spark import submit
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.records.answers import MODES, Answer, ForeignAnswer
from streamgauge.streams.stages.session import library_zip

log = logging.getLogger("streamgauge")
PATIENCE_S = 1800.0
_APPLICATION = Path(__file__).with_name("suite_application.py")
_ERROR = ("Error: ", "Exception: ", "ERROR ")


def ask(
    systems: Mapping[str, SparkSettings], queries: Sequence[str], events: Events, work: Path
) -> dict[str, list[ForeignAnswer]]:
    """Maps each system's key to its answers; there are fewer than asked for if its process ended early.

    Raises UserError, in one line, for a system without any answer: its Spark or its environment does not start.
    """
    work.mkdir(parents=True, exist_ok=True)
    pq.write_table(events.rows, work / "events.parquet", compression="lz4")
    archive = library_zip()
    shutil.unpack_archive(archive, work / "library")  # the queries' SQL is read as files
    shutil.rmtree(archive.parent)
    with ExitStack() as stack:
        started = {}
        for key, system in systems.items():
            private = Path(stack.enter_context(TemporaryDirectory(prefix="streamgauge-")))
            started[key] = _start(system, queries, work, key, private)
            stack.callback(started[key].end)
        deadline = time.monotonic() + PATIENCE_S
        for key, session in started.items():
            try:
                session.leader.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("%s did not end its queries within %.0f s", systems[key].name, PATIENCE_S)
    answers = {key: ForeignAnswer.read_log(work / f"{key}.jsonl") for key in systems}
    for key, system in systems.items():
        if not answers[key]:
            raise UserError(f"systems.{system.name}: no query ran: {_last_words(work / f'{key}.log')}")
    return answers


def unanswered(answers: Iterable[Answer], queries: Sequence[str]) -> list[Answer]:
    """An answer for each query and mode that has none, with the reason."""
    known = {(one.query, one.mode) for one in answers}
    missing = [(query, mode) for mode in MODES for query in queries if (query, mode) not in known]
    why = "the system's process ended before it answered"
    return [Answer(query=query, mode=mode, status="unchecked", why=why) for query, mode in missing]


def _start(system: SparkSettings, queries: Sequence[str], work: Path, key: str, private: Path) -> Led:
    given = {
        "events": str(work / "events.parquet"),
        "out": str(work / f"{key}.jsonl"),
        "work": str(work / key),
        "queries": list(queries),
        "modes": list(MODES),
    }
    unpinned = system.model_copy(update={"cpus": None})  # systems run side by side here, and are not timed
    command = [*submit.command(unpinned, _APPLICATION, private), json.dumps(given)]
    return Led(command, submit.environment(system, work / "library"), work / f"{key}.log")


def _last_words(log_file: Path) -> str:
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.strip() for line in lines if any(mark in line for mark in _ERROR)]
    return f"{errors[-1][:300] if errors else 'no error message in the log'}; see {log_file}"
