"""A pipeline's metrics from start to stop: the driver's registry, the link to Spark, and the pusher."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.metrics import scope
from streamgauge.metrics.pusher import Pusher
from streamgauge.metrics.registry import Metric, Registry
from streamgauge.metrics.sinks import Sink, make_sink
from streamgauge.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamgauge.metrics.spark_link import SparkLink

log = logging.getLogger("streamgauge")
_lock = threading.Lock()
_running: Pipeline | None = None


def start(
    spark: SparkSession | None = None,
    *,
    sinks: Iterable[Mapping[str, Any] | Sink] = (),
    name: str = "pipeline",
    period: str = "5s",
    buffer: int = 60,
) -> Pipeline:
    """Starts to collect and to push; use it as a context manager, or call stop().

    sinks: as in the benchmark file, or objects with a name, write(snapshot) and close(). name: the pipeline's name in
    backends. Raises UserError for wrong settings, or if another pipeline's metrics run in this process.
    """
    given = list(sinks)
    described = [sink for sink in given if isinstance(sink, Mapping)]
    settings = config.parse(config.Metrics, {"sinks": described, "period": period, "buffer": buffer}, "metrics")
    ready = [sink for sink in given if not isinstance(sink, Mapping)]
    return Pipeline(settings, name, ready).start(spark)


class Pipeline:
    """Collects from its start, pushes every period and a last time when it stops; query() works at any time."""

    def __init__(self, settings: config.Metrics | None, name: str, sinks: Iterable[Sink] = ()) -> None:
        """Prepares a pipeline. Without settings nothing is pushed, and Spark's workers count nothing."""
        self.name, self.instance = name, uuid.uuid4().hex[:12]
        self.registry = Registry()
        self._settings = settings
        self._link: SparkLink | None = None
        self._pusher: Pusher | None = None
        if settings is not None:
            made = [make_sink(sink, f"metrics.sinks.{number}") for number, sink in enumerate(settings.sinks)]
            self._pusher = Pusher([*made, *sinks], self._snapshot, settings.period.seconds, settings.buffer)

    def start(self, spark: SparkSession | None = None) -> Self:
        """Starts to collect. Raises UserError if another pipeline's metrics run in this process."""
        global _running
        with _lock:
            if _running is not None:
                raise UserError(f"metrics of {_running.name!r} are already running in this process; stop them first")
            _running = self
        scope.use(self.registry)
        if self._pusher is not None:
            self._pusher.start()
        if spark is not None:
            self.attach(spark)
        return self

    def attach(self, spark: SparkSession) -> None:
        """Counts the tasks of this session as well from now on. Never raises: a failure is logged."""
        if self._settings is None:
            return
        try:
            from streamgauge.metrics.spark_link import SparkLink

            self._link = SparkLink(spark, self.registry)
        except Exception as problem:  # Spark Connect has no such way to its executors
            log.warning("metrics: tasks of this Spark session cannot be counted; only driver code is: %s", problem)

    def settle(self) -> None:
        if self._link is not None:
            self._link.settle()

    def query(
        self, namespace: str | None = None, name: str | None = None, step: str | None = None
    ) -> tuple[Metric, ...]:
        """Metrics that match all given arguments, also when the pipeline has stopped."""
        self.settle()
        return self.registry.query(namespace, name, step)

    def push(self) -> None:
        """Pushes once now, besides the periodic pushes; does not wait for backends."""
        if self._pusher is not None:
            self._pusher.push()

    def stop(self) -> None:
        """Pushes a last time, waits a few seconds at most for backends, and ends all threads. Safe to call twice.

        Call it before the session stops.
        """
        global _running
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._pusher is not None:
            self._pusher.stop()
        with _lock:
            if _running is self:
                _running = None

    def _snapshot(self, final: bool) -> Snapshot:
        return Snapshot(self.name, self.instance, time.time_ns(), final, self.registry.query())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def settle() -> None:
    if _running is not None:
        _running.settle()


def push() -> None:
    """Pushes once now if a pipeline's metrics run in this process."""
    if _running is not None:
        _running.push()
