"""Backends for metrics: one small class each, called by a thread of its own. `write` raises if it did not deliver."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from streamgauge.base import variables
from streamgauge.base.errors import UserError
from streamgauge.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from streamgauge.config import MetricsSink

#: type -> module:class, each called with its MetricsSink
SINKS = {
    "console": "streamgauge.metrics.sinks.console:ConsoleSink",
    "http": "streamgauge.metrics.sinks.http:HttpSink",
    "graphite": "streamgauge.metrics.sinks.graphite:GraphiteSink",
    "otel": "streamgauge.metrics.sinks.otel:OtelSink",
}


@runtime_checkable
class Sink(Protocol):
    """A backend. name: for the log.

    Optional attributes: `lacks`, which of counter, distribution, gauge and committed it has no place for; `secrets`,
    texts that must not get into a log.
    """

    name: str

    def write(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


def make_sink(settings: MetricsSink, where: str) -> Sink:
    """Makes the sink that one entry of the configuration describes. Raises UserError if it cannot be made."""
    target = SINKS.get(settings.type, settings.type)
    module, colon, name = target.partition(":")
    if not colon:
        raise UserError(f"{where}.type: found {settings.type!r}, allowed: {', '.join(SINKS)}, or package.module:Class")
    given = {"url": settings.url, "options": settings.options}
    settings = settings.model_copy(update=variables.filled(given, where))
    try:
        made = getattr(importlib.import_module(module), name)(settings)
    except UserError as problem:
        raise UserError(f"{where}: {problem}") from None
    except ImportError as problem:
        extra = "; install streamgauge[otel]" if settings.type == "otel" else ""
        raise UserError(f"{where}.type: {target} cannot be imported: {problem}{extra}") from None
    except (AttributeError, TypeError) as problem:
        raise UserError(f"{where}.type: {target} cannot be made: {problem}") from None
    if not isinstance(made, Sink):
        raise UserError(f"{where}.type: {target} is no sink; it needs name, write(snapshot) and close()")
    return made
