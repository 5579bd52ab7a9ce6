"""The benchmark file as frozen models, checked at load. Messages name the key, what was found, what is allowed."""

from __future__ import annotations

from streamgauge.bench.measurements.latency.section import Latency
from streamgauge.bench.measurements.search.section import Search
from streamgauge.config.benchmark import RESERVED, Benchmark, Cell, Overrides, pick
from streamgauge.config.measuring import (
    RELEASE_CATCHUP,
    RELEASE_METRICS,
    RELEASE_RATE,
    Offered,
    Promise,
    Release,
    Replay,
    Workload,
)
from streamgauge.config.metrics import Metrics, MetricsSink
from streamgauge.config.nightly import Nightly, Notifier, Webhook
from streamgauge.config.reading import BENCHMARK, fingerprint, keep, load, of_run, parse, schema
from streamgauge.config.systems import System
from streamgauge.descriptions.nexmark import Nexmark
from streamgauge.descriptions.source import Source, TimeColumn
from streamgauge.descriptions.streams import DELAY_PARAMETERS, DelaySpec, Experiment

__all__ = [
    "BENCHMARK",
    "DELAY_PARAMETERS",
    "RELEASE_CATCHUP",
    "RELEASE_METRICS",
    "RELEASE_RATE",
    "RESERVED",
    "Benchmark",
    "Cell",
    "DelaySpec",
    "Experiment",
    "Latency",
    "Metrics",
    "MetricsSink",
    "Nexmark",
    "Nightly",
    "Notifier",
    "Offered",
    "Overrides",
    "Promise",
    "Release",
    "Replay",
    "Search",
    "Source",
    "System",
    "TimeColumn",
    "Webhook",
    "Workload",
    "fingerprint",
    "keep",
    "load",
    "of_run",
    "parse",
    "pick",
    "schema",
]
