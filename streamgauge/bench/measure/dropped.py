"""Says what an engine has dropped by itself in a trial: late events, and those before its first watermark."""

from __future__ import annotations

import numpy as np

from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.measurements.latency.record import DropKind, Dropped
from streamgauge.bench.oracle.batches import late_reported
from streamgauge.records.trial import Compared


def dropped(check: Compared | None, run: TrialRun) -> Dropped | None:
    """Returns the loss as the oracle knows it; if the output was not compared, as the engine counts it; else None."""
    offered, rules = run.observation.offered, run.details.get("rules")
    if check is not None and (count := check.get("late_events")) is not None:
        early = check.get("early_events") or 0
        sentence = f"it dropped {count:,} of {offered:,} events as late"
        if early:
            begins_ms = rules.begins_ms if rules else 0
            begin = np.datetime64(begins_ms, "ms") if begins_ms else "1970"
            sentence += f", {early:,} of them because they end before {begin}, where its watermark begins"
        kind: DropKind = "before the first watermark" if early else "late"
        return Dropped(kind=kind, sentence=sentence, count=count, offered=offered, early=early) if count else None
    reported = late_reported(run.details.get("system", {}), run.details.get("epochs", []))
    if not reported:
        return None
    counted_in = "groups of events" if rules and rules.late_counted == "groups" else "events"
    sentence = f"it dropped {reported:,} {counted_in} as late, by its own count"
    return Dropped(kind="by its own count", sentence=sentence, count=reported, offered=offered, counted_in=counted_in)
