"""Publishes a trial as metrics: its state while it runs, its figures when it is done, pushed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge import metrics
from streamgauge.histogram import Histogram
from streamgauge.metrics.pipeline import push

if TYPE_CHECKING:
    from streamgauge.measure.cell import Measured


def state(rate: float | None, offered: int, taken: int) -> None:
    """Sets gauges of the running trial: rate in events/s (None in a closed loop), events offered, taken, waiting."""
    if rate is not None:
        metrics.gauge("trial", "rate_events_per_s").set(rate)
    values: dict[str, float] = {"offered": offered, "taken": taken, "backlog": offered - taken}
    for name, value in values.items():
        metrics.gauge("trial", name).set(value)


def done(measured: Measured) -> None:
    """Adds an ended trial to the totals over all trials, records its latencies in ns, and pushes all metrics."""
    seen = measured.observation
    state(seen.rate_events_per_s, seen.offered, seen.taken)
    batches = measured.run.details.get("system", {}).get("batches") or []
    late = sum(batch["dropped"] for batch in batches)
    totals = {"trials": 1, "events_offered": seen.offered, "events_taken": seen.taken, "late_events": late}
    for name, value in totals.items():
        metrics.counter("trial", name).inc(value)
    _spread("event_latency_ns", measured.run.event_latency)
    _spread("processing_latency_ns", measured.run.processing_latency)
    push()


def _spread(name: str, seen: Histogram) -> None:
    metrics.distribution("trial", name).update_summary(seen.count, seen.sum, seen.min, seen.max)
