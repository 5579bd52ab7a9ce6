"""The record of a run's stages, `stages.jsonl`: a line as an attempt at a stage begins, and one as it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from streamgauge.base.environment import Environment
from streamgauge.records.record import Line

State = Literal["started", "done", "partly", "failed", "skipped"]
Cause = Literal[
    "mistake",  # of the user, which no retry mends
    "outage",  # which a retry may mend
    "fault",  # of anything else
]


def named(stage: str, scope: Mapping[str, str]) -> str:
    """Returns words for a stage with what it runs for, such as "generate late20"."""
    return " ".join([stage, *scope.values()])


class StageLine(Line):
    """State of an attempt at a stage at one moment; started and not ended: it is running, or was killed.

    partly: it ended well, but a later attempt measures the rest.
    """

    stage: str
    scope: dict[str, str]  # experiment, workload, system: whichever it has
    attempt: str
    state: State
    at: str
    seconds: float | None = None
    outcome: dict[str, Any] = Field(default_factory=dict)  # facts that the stage tells of itself
    error: str | None = None
    cause: Cause | None = None
    environment: Environment | None = None  # of an attempt that ended well

    @property
    def what(self) -> str:
        return named(self.stage, self.scope)
