"""Settings of the backends that metrics are pushed to."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from streamgauge.base.field_types import Delay, Model, SecretHeaders, check_delivery
from streamgauge.base.plugins import Parts
from streamgauge.base.units import Duration

#: classes that are called with their MetricsSink
SINKS = Parts(
    "sinks",
    {
        "console": "streamgauge.metrics.sinks.console:ConsoleSink",
        "http": "streamgauge.metrics.sinks.http:HttpSink",
        "graphite": "streamgauge.metrics.sinks.graphite:GraphiteSink",
        "otel": "streamgauge.metrics.sinks.otel:OtelSink",
    },
    "Class",
)


class MetricsSink(Model):
    """A backend that metrics are pushed to."""

    type: str = Field(description="console, http, graphite, otel, a registered name, or package.module:Class")
    url: str | None = Field(
        default=None, description="http: where to POST; otel: the collector's endpoint, by default that of the SDK"
    )
    host: str | None = Field(default=None, description="graphite: its host")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=2003, description="graphite: its port")
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")] = Field(
        default="streamgauge", description="graphite: first part of each metric's path"
    )
    headers_from_env: SecretHeaders = Field(
        default_factory=dict, description="header -> environment variable that holds its value (http, otel)"
    )
    timeout: Delay = Field(default=Duration.parse("5s"), description="longest time for one push")
    options: dict[str, Any] = Field(default_factory=dict, description="free settings of your own sink class")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for kind, key, value in (("http", "url", self.url), ("graphite", "host", self.host)):
            if self.type == kind and value is None:
                raise ValueError(f"type {kind} needs the key {key}")
        check_delivery(self.url, self.timeout)
        return self


class Metrics(Model):
    """Backends that a run's metrics are pushed to while it runs, and how often."""

    sinks: tuple[MetricsSink, ...] = Field(default=(), description="backends that get every push")
    period: Delay = Field(default=Duration.parse("5s"), description="time between two pushes; at least 100ms")
    buffer: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=60, description="pushes kept while the backend does not answer"
    )

    @field_validator("period")
    @classmethod
    def _long_enough(cls, period: Duration) -> Duration:
        if period < Duration.parse("100ms"):
            raise ValueError(f"found {period}, allowed: 100ms or more")
        return period
