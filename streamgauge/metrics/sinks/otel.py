"""Sends metrics through OpenTelemetry's SDK: each value is an instrument `namespace.name[.count|.sum|.min|.max|.mean]`.

Its attributes are step and state (attempted, committed). Counters, counts and sums are cumulative sums that may go
down; the rest are gauges, whose own timestamps OpenTelemetry has no place for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from streamgauge.base.errors import UserError
from streamgauge.config import MetricsSink
from streamgauge.metrics.registry import Metric
from streamgauge.metrics.sinks import in_ascii
from streamgauge.metrics.sinks.http import secret_headers
from streamgauge.metrics.snapshot import Snapshot

try:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExportResult, MetricReader, MetricsData
    from opentelemetry.sdk.resources import Resource
except ImportError as problem:
    raise UserError(f"otel cannot be loaded: {problem}; install streamgauge[otel]") from None

_NOT_NAME = re.compile(r"[^A-Za-z0-9_./-]")
SUMS = {("counter", "value"), ("distribution", "count"), ("distribution", "sum")}


class OtelSink:
    """Sends by OTLP over HTTP, or lets a given reader collect."""

    name = "otel"

    def __init__(self, settings: MetricsSink, reader: MetricReader | None = None) -> None:
        self._timeout_ms = int(settings.timeout.seconds * 1000)
        headers = secret_headers(settings.headers_from_env)
        self.secrets = tuple(headers.values())
        self._reader = reader or _Exporting(settings, headers)
        self._provider: MeterProvider | None = None
        self._now: dict[tuple[str, str], list[tuple[dict[str, str], Any]]] = {}
        self._known: set[tuple[str, str]] = set()

    def write(self, snapshot: Snapshot) -> None:
        if self._provider is None:
            about = {"service.name": snapshot.pipeline, "service.instance.id": snapshot.instance}
            self._provider = MeterProvider([self._reader], Resource.create(about), shutdown_on_exit=False)
        meter = self._provider.get_meter("streamgauge.metrics")
        self._now = {}
        for metric in snapshot.metrics:
            _observe(metric, self._now)
        for name, sort in self._now.keys() - self._known:
            make = meter.create_observable_up_down_counter if sort == "sum" else meter.create_observable_gauge
            make(name, callbacks=[self._callback(name, sort)])
            self._known.add((name, sort))
        self._reader.collect(self._timeout_ms)

    def close(self) -> None:
        if self._provider is not None:
            self._provider.shutdown(1000)

    def _callback(self, name: str, sort: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: [Observation(value, attributes) for attributes, value in self._now.get((name, sort), [])]


class _Exporting(MetricReader):
    """Collects only on demand, as the pusher keeps the time, and raises if the export fails."""

    def __init__(self, settings: MetricsSink, headers: dict[str, str]) -> None:
        super().__init__()
        self._exporter = OTLPMetricExporter(
            endpoint=settings.url, headers=headers, timeout=int(max(1, settings.timeout.seconds))
        )

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any) -> None:
        if self._exporter.export(metrics_data, timeout_millis) is not MetricExportResult.SUCCESS:
            raise ConnectionError("the collector did not take them")

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        self._exporter.shutdown(timeout_millis)


def _observe(metric: Metric, into: dict[tuple[str, str], list[tuple[dict[str, str], Any]]]) -> None:
    for state, figures in (("attempted", metric.attempted), ("committed", metric.committed)):
        for what, value in (figures or {}).items():
            if what != "timestamp_ns" and value is not None:
                name = f"{metric.namespace}.{metric.name}"[:240] + ("" if what == "value" else f".{what}")
                name = in_ascii(name, _NOT_NAME)  # an SDK refuses other characters, and another beginning
                name = name if name[0].isascii() and name[0].isalpha() else f"m_{name}"
                sort = "sum" if (metric.kind, what) in SUMS else "gauge"
                into.setdefault((name, sort), []).append(({"step": metric.step, "state": state}, value))
