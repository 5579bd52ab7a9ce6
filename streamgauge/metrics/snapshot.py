"""Snapshots, which are what is pushed: all metrics of a pipeline at one instant, cumulative since its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from streamgauge.metrics.registry import Metric


@dataclass(frozen=True)
class Snapshot:
    pipeline: str
    instance: str  # unique: a pipeline started again counts from zero
    at_ns: int  # wall time, ns since the epoch
    final: bool
    metrics: tuple[Metric, ...]

    def of(self, kind: str) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.kind == kind)

    def without(self, parts: frozenset[str]) -> Snapshot:
        """Copy without these kinds of metrics, and without committed values if "committed" is among the parts."""
        kept = (metric for metric in self.metrics if metric.kind not in parts)
        if "committed" in parts:
            kept = (replace(metric, committed=None) for metric in kept)
        return replace(self, metrics=tuple(kept))

    def body(self) -> dict[str, object]:
        """The snapshot for JSON, as docs/metrics.schema.json specifies it."""
        return {
            "pipeline": self.pipeline,
            "instance": self.instance,
            "at": iso(self.at_ns),
            "final": self.final,
            "counters": [_entry(m, lambda v: v["value"]) for m in self.of("counter")],
            "distributions": [_entry(m, dict) for m in self.of("distribution")],
            "gauges": [
                _entry(m, lambda v: {"value": v["value"], "timestamp": iso(v["timestamp_ns"])})
                for m in self.of("gauge")
            ],
        }


def _entry(metric: Metric, show: Callable[[dict[str, Any]], object]) -> dict[str, object]:
    return {
        "name": {"namespace": metric.namespace, "name": metric.name},
        "step": metric.step,
        "attempted": show(metric.attempted),
        "committed": None if metric.committed is None else show(metric.committed),
    }


def iso(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds")
