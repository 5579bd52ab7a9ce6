"""The outcome of a trial with its verdict, and the software that it measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamgauge.driver.observed import TrialRun
from streamgauge.search.records import TrialObservation, Verdict

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Measured:
    """A trial with its verdict; a wrong output makes it invalid."""

    observation: TrialObservation
    verdict: Verdict
    run: TrialRun
    check: dict[str, Any] | None  # expected and reported rows, checksums, late drops; None: not checked

    @property
    def correct(self) -> bool | None:
        return None if self.check is None else self.check["wrong"] is None

    def record(self) -> dict[str, Any]:
        """The trial as a JSON object."""
        return {
            "rate_events_per_s": self.observation.rate_events_per_s,
            "seconds": self.observation.seconds,
            "outcome": self.verdict.outcome,
            "reason": self.verdict.reason,
            "figures": self.verdict.figures,
            "observation": dataclasses.asdict(self.observation),
            "correct": self.correct,
            "check": self.check,
            "details": self.run.details,
        }


def software_of(details: Mapping[str, Any]) -> dict[str, str]:
    """Versions of the measured system, from a trial's details: they may be others than ours."""
    found: dict[str, str] = details.get("system", {}).get("software", {})
    return found


def application_of(details: Mapping[str, Any]) -> dict[str, str]:
    """Application id and event log of the measured Spark (see streamgauge.spark.history)."""
    found: dict[str, str] = details.get("system", {}).get("application", {})
    return found
