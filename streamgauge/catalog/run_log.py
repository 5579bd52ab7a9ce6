"""The log of one run (which stages ran, with what outcome) in append-only JSON lines."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from streamgauge.base.environment import environment
from streamgauge.base.errors import Outage, Skipped, UserError
from streamgauge.base.folders import telling_of_a_full_disk
from streamgauge.base.secrets import masked_message
from streamgauge.records.stages import Cause, StageLine, State

#: what to do about a run whose stages cannot be read
_TODO = "delete the file, or move the run's folder away"


class StageRecord(StageLine):
    """Attempt at a stage, in its latest state."""

    started_at: str

    @property
    def key(self) -> str | None:
        """The key of the artifact that it made or reused; None without one."""
        return None if (key := self.outcome.get("key")) is None else str(key)

    @property
    def reused(self) -> bool:
        return bool(self.outcome.get("reused"))


class Outcome(dict[str, object]):
    """Facts that a stage tells of itself, by name."""

    is_whole = True  # False: a later attempt goes on with the rest of the stage


class RunLog:
    """stages.jsonl of one run directory; one writer per stage attempt, readers at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path / "stages.jsonl"

    @contextmanager
    def stage(self, stage: str, scope: dict[str, str]) -> Iterator[Outcome]:
        """Records that a stage started, then that it is done or why it failed; the block fills the yielded outcome."""
        line = partial(StageLine, stage=stage, scope=scope, attempt=_attempt())
        with telling_of_a_full_disk(self.path):
            line(state="started", at=_now()).append(self._file)
            state: State
            begin = time.monotonic()
            outcome = Outcome()
            try:
                with telling_of_a_full_disk(self.path):
                    yield outcome
            except BaseException as problem:
                seconds, (error, cause) = round(time.monotonic() - begin, 3), _reason(problem)
                state = "skipped" if isinstance(problem, Skipped) else "failed"
                ended = line(state=state, at=_now(), seconds=seconds, outcome=outcome, error=error, cause=cause)
                with suppress(OSError):  # a full disk may have no room for this either; the problem itself counts
                    ended.append(self._file)
                raise
            seconds = round(time.monotonic() - begin, 3)
            state = "done" if outcome.is_whole else "partly"
            line(state=state, at=_now(), seconds=seconds, outcome=outcome, environment=environment()).append(self._file)

    def failed(self, stage: str, scope: dict[str, str], problem: Exception, attempt: str | None = None) -> None:
        """Records a failure of which the stage itself could tell nothing: it did not begin, or `attempt` was killed."""
        error, cause = _reason(problem)
        line = StageLine(
            stage=stage, scope=scope, attempt=attempt or _attempt(), state="failed", at=_now(), error=error, cause=cause
        )
        with telling_of_a_full_disk(self.path):
            line.append(self._file)

    def stages(self) -> list[StageRecord]:
        """Attempts at all stages in order of their start, each in its latest state. Raises Damaged."""
        attempts: dict[str, StageRecord] = {}
        for line in StageLine.read_log(self._file, _TODO):
            before = attempts.get(line.attempt)
            attempts[line.attempt] = StageRecord.model_construct(
                **dict(line), started_at=before.started_at if before else line.at
            )
        return list(attempts.values())

    def latest(self, stage: str, **scope: str) -> StageRecord | None:
        """The last attempt at a stage with exactly that scope; None without one."""
        matching = [s for s in self.stages() if s.stage == stage and s.scope == scope]
        return matching[-1] if matching else None


def _attempt() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"


def _reason(problem: BaseException) -> tuple[str, Cause]:
    if isinstance(problem, UserError):
        return str(problem)[:2000], "mistake"
    cause: Cause = "outage" if isinstance(problem, Outage) else "fault"
    return masked_message(f"{type(problem).__name__}: {problem}")[:2000], cause


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def known_run(runs: Sequence[Path], name: str) -> Path:
    """Directory of the run of that name. Raises UserError if there is none: a mistyped name must not create a run."""
    for run in runs:
        if run.name == name:
            return run
    known = ", ".join(run.name for run in runs[-5:]) or "none yet; `streamgauge run` makes one"
    raise UserError(f"run: found {name[:80]!r}, allowed: an existing run ({known})")
