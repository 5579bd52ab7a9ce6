"""The records of what was judged of a run's series, `judgements.jsonl`: changes, reruns, and what nights saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, with_config

from streamgauge.base.environment import Machine
from streamgauge.records.record import VERSION, WITH_CONSTANTS, Part
from streamgauge.stats.outcomes import Change, Comparison

Outcome = Literal[
    "regression",
    "improvement",
    "refuted",
    "open",
    "accepted",  # by a person: the regression is the new baseline
    "self",  # an A/A comparison of a series, which judges no change
    "release_check",  # a whole release check, which judges no change
    "look",  # what a night saw in a series, which judges no change
]
ACCEPTED: Outcome = "accepted"
LOOK: Outcome = "look"
SELF: Outcome = "self"
RELEASE_CHECK: Outcome = "release_check"


class Rerun(Part):
    """A change, and the comparison that confirmed or refuted it; without one, why it was not rerun."""

    change: Change
    comparison: Comparison | None = None
    against: str = ""  # what the rerun was compared with
    before: Machine = Field(default_factory=dict)  # software, and what else may explain a change
    after: Machine = Field(default_factory=dict)
    why: str = ""


class SelfTest(Part):
    """An A/A comparison of a series, with the values of both sides."""

    comparison: Comparison
    baseline: tuple[float, ...] = ()
    candidate: tuple[float, ...] = ()


class Acceptance(Part):
    """A person's reason for a regression as the new baseline."""

    reason: str
    author: str
    at: str


class ReleaseVerdict(Part):
    """The verdict of a release check, and its reasons."""

    verdict: str
    reasons: tuple[str, ...] = ()
    baseline: str = ""
    candidate: str = ""


class Step(Part):
    """A change of level, by the time of the first point of the new level."""

    at: str
    magnitude: float  # relative: +0.1 is 10 % up
    interval: tuple[float, float] | None  # of the magnitude, 95 %
    confidence: float


class Look(Part):
    """Changes of level that a night saw in a series, or that a rerun has confirmed, and the noise within levels."""

    steps: tuple[Step, ...] = ()
    noise: float | None = None
    detectable: float | None = None  # least step that a few more values would show
    reason: str = ""  # why the series was not judged


Evidence = Rerun | SelfTest | Acceptance | ReleaseVerdict | Look


@with_config(WITH_CONSTANTS)
@dataclass(frozen=True)
class Judgement:
    """A run's judgement of a change in a series, or what else it says of one (see Outcome)."""

    run_id: str
    series_key: str
    changed_at: str  # the first point of the new level; of what judges no change, when it was said
    outcome: Outcome
    magnitude: float
    evidence: Evidence
    version: Literal[1] = VERSION
