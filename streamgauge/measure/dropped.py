"""Says what an engine has dropped by itself in a trial: late events, and those before its first watermark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from streamgauge.driver.observed import TrialRun
from streamgauge.oracle.batches import Rules, late_reported


@dataclass(frozen=True)
class Dropped:
    """Events that are in no answer; kind: who says so, and the reason where it is the engine's first watermark."""

    kind: Literal["late", "before the first watermark", "by its own count"]
    count: int
    offered: int
    early: int = 0  # of them, those before the engine's first watermark
    counted_in: str = "events"

    @property
    def sentence(self) -> str:
        told = f"it dropped {self.count:,} of {self.offered:,} events as late"
        if self.kind == "before the first watermark":
            return f"{told}, {self.early:,} of them because they end before 1970, where its watermark begins"
        if self.kind == "by its own count":
            return f"it dropped {self.count:,} {self.counted_in} as late, by its own count"
        return told

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"sentence": self.sentence}


def dropped(check: Mapping[str, Any] | None, run: TrialRun) -> Dropped | None:
    """Returns the loss as the oracle knows it; if the output was not compared, as the engine counts it; else None."""
    offered, figures = run.observation.offered, run.details.get("system", {})
    if check is not None and check.get("late_events") is not None:
        count, early = int(check["late_events"]), int(check.get("early_events", 0))
        return Dropped("before the first watermark" if early else "late", count, offered, early) if count else None
    epochs: Sequence[Mapping[str, Any]] = run.details.get("epochs", ())
    reported = late_reported(figures, epochs)
    counted = Rules(**figures.get("rules", {})).late_counted
    counted_in = "groups of events" if counted == "groups" else "events"
    return Dropped("by its own count", reported, offered, counted_in=counted_in) if reported else None
