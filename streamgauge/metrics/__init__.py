"""Counters, distributions and gauges of a running pipeline, pushed to the backend that a user already has.

See docs/metrics.md. The code that runs in Spark's tasks imports only the standard library; `update_many` needs numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamgauge.metrics import scope
from streamgauge.metrics.handles import (
    Counter,
    Distribution,
    Gauge,
    counted_for,
    counter,
    current_step,
    distribution,
    gauge,
    step,
)
from streamgauge.metrics.registry import Metric
from streamgauge.metrics.scope import collected, merge

if TYPE_CHECKING:
    from streamgauge.metrics.pipeline import Pipeline

__all__ = [
    "Counter",
    "Distribution",
    "Gauge",
    "Metric",
    "collected",
    "counted_for",
    "counter",
    "current_step",
    "distribution",
    "gauge",
    "merge",
    "query",
    "start",
    "step",
]


def start(spark: Any = None, **settings: Any) -> Pipeline:
    """Starts to collect and to push: see `streamgauge.metrics.pipeline.start`."""
    from streamgauge.metrics.pipeline import start

    return start(spark, **settings)


def query(namespace: str | None = None, name: str | None = None, step: str | None = None) -> tuple[Metric, ...]:
    """Metrics of the pipeline that runs in this process, or ran last, that match all given arguments."""
    from streamgauge.metrics.pipeline import settle

    settle()
    return scope.registry().query(namespace, name, step)
