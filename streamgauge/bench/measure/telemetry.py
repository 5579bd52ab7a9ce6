"""Publishes a trial as metrics: its state while it runs, and its figures as soon as it has ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from streamgauge import metrics
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.trial_request import Watch
from streamgauge.metrics.pipeline import push
from streamgauge.records.driver import DriverFigures

log = logging.getLogger("streamgauge")
PROGRESS_SECONDS = 5.0


def state(rate: float | None, offered: int, taken: int) -> None:
    """Sets gauges of the running trial: rate in events/s (None in a closed loop), events offered, taken, waiting."""
    if rate is not None:
        metrics.gauge("trial", "rate_events_per_s").set(rate)
    values: dict[str, float] = {"offered": offered, "taken": taken, "backlog": offered - taken}
    for name, value in values.items():
        metrics.gauge("trial", name).set(value)


def done(run: TrialRun) -> None:
    """Adds an ended trial to the totals over all trials, records its latencies in ns, and pushes all metrics."""
    seen, details = run.observation, run.details
    state(seen.rate_events_per_s, seen.offered, seen.taken)
    from streamgauge.bench.oracle.batches import late_reported

    late = late_reported(details.get("system", {}), details.get("epochs", []))
    totals = {"trials": 1, "events_offered": seen.offered, "events_taken": seen.taken, "late_events": late}
    for name, value in totals.items():
        metrics.counter("trial", name).inc(value)
    _spread("event_latency_ns", run.event_latency)
    _spread("processing_latency_ns", run.processing_latency)
    push()


def _spread(name: str, seen: Histogram) -> None:
    metrics.distribution("trial", name).update_summary(seen.count, seen.sum, seen.min, seen.max)


class Progress:
    """Sets gauges while a trial runs, and writes a log line every few seconds."""

    def __init__(self, rate: float | None, watch: Watch | None = None) -> None:
        """watch: is called each time, too."""
        self._rate, self._watch = rate, watch
        self._next = time.monotonic() + PROGRESS_SECONDS

    def __call__(self, drivers: Sequence[DriverFigures]) -> None:
        if self._watch is not None:
            self._watch(drivers)
        offered = sum(sum(driver["offered"]) for driver in drivers)
        planned = sum(sum(driver["planned"]) for driver in drivers)
        if not offered:
            return
        state(self._rate, offered, planned)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_SECONDS
            at = "in a closed loop" if self._rate is None else f"at {self._rate:.6g} events/s"
            log.info("  %s: offered %d, taken %d, waiting %d", at, offered, planned, offered - planned)
