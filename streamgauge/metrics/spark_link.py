"""The link to a running Spark: tells workers where the collector is, takes committed counts, follows micro-batches."""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Any

from streamgauge.metrics.collector import Collector
from streamgauge.metrics.registry import Batch, Registry
from streamgauge.metrics.values import Report
from streamgauge.metrics.worker import VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("streamgauge")
SETTLE_MS = 2_000


class SparkLink:
    """The link to one session; close it before the session stops. Functions given to Spark in between carry it."""

    def __init__(self, spark: SparkSession, registry: Registry) -> None:
        from pyspark.accumulators import AccumulatorParam

        class Reports(AccumulatorParam[Any]):
            """Passes the counts of an attempt that Spark keeps to the registry; the accumulator itself stays empty."""

            def zero(self, value: Any) -> Any:
                return value

            def addInPlace(self, value1: Any, value2: Any) -> Any:
                try:
                    link._succeeded(value2)
                except Exception as problem:  # it must not reach Spark's event loop, which waits here
                    link._once("committed values are incomplete", problem)
                return value1

        link = self
        self._spark, self._registry = spark, registry
        self._context = spark.sparkContext
        self._stages: dict[int, Any] = {}
        self._warned: set[str] = set()
        conf = self._context.getConf()
        host = str(conf.get("spark.driver.host") or "127.0.0.1")
        self._collector = Collector(registry.heard, conf.get("spark.driver.bindAddress") or host)
        self._accumulator = self._context.accumulator(None, Reports())
        where = [host, self._collector.port, self._collector.token, self._accumulator.aid]
        self._context.environment[VARIABLE] = json.dumps(where)
        registry.batch_of_thread = self._batch_of_thread
        self._listener = self._listen()

    def close(self) -> None:
        from pyspark.accumulators import _accumulatorRegistry

        self.settle()
        self._registry.batch_of_thread = lambda: None
        self._context.environment.pop(VARIABLE, None)
        _accumulatorRegistry.pop(self._accumulator.aid, None)
        if self._listener is not None:
            try:
                self._spark.streams.removeListener(self._listener)
            except Exception as problem:
                self._once("the session ended before its metrics", problem)
        self._collector.close()

    def settle(self) -> None:
        """Waits up to SETTLE_MS for Spark's pending events of finished micro-batches."""
        if self._listener is not None:
            try:
                self._context._jsc.sc().listenerBus().waitUntilEmpty(SETTLE_MS)
            except Exception as problem:
                self._once("news of finished micro-batches may come late", problem)

    def _succeeded(self, report: Report) -> None:
        stage = report["stage"]
        if stage not in self._stages:
            self._stages[stage] = self._identity(stage)
            if len(self._stages) > 10_000:
                self._stages.pop(next(iter(self._stages)))
        self._registry.succeeded(report, self._stages[stage])

    def _identity(self, stage: int) -> tuple[str, int]:
        """Identity of a stage that is the same in its reruns.

        A later job makes lost shuffle files again under another stage id: only the shuffle's own id stays. Called while
        Spark's scheduler waits, so the scheduler knows the stage.
        """
        try:
            known = self._context._jsc.sc().dagScheduler().stageIdToStage().get(stage)
            if known.isDefined() and known.get().getClass().getSimpleName() == "ShuffleMapStage":
                return "shuffle", int(known.get().shuffleDep().shuffleId())
        except Exception as problem:
            self._once("stages rerun under another id are counted twice", problem)
        return "stage", stage

    def _batch_of_thread(self) -> tuple[Batch, str] | None:
        """The micro-batch whose foreachBatch function runs on this thread, which is never the main one."""
        if threading.current_thread() is threading.main_thread():
            return None
        try:
            local = self._context.getLocalProperty
            if (number := local("streaming.sql.batchId")) is None:
                return None
            return Batch(local("sql.streaming.queryId"), int(number)), local("spark.jobGroup.id")
        except Exception as problem:
            self._once("micro-batches of the driver's own metrics are not known", problem)
            return None

    def _listen(self) -> Any:
        from pyspark.sql.streaming.listener import StreamingQueryListener

        registry = self._registry

        class Listener(StreamingQueryListener):
            def onQueryStarted(self, event: Any) -> None: ...

            def onQueryProgress(self, event: Any) -> None:
                if "addBatch" in event.progress.durationMs:  # it ran, and its commit is written
                    registry.finished(Batch(str(event.progress.id), int(event.progress.batchId)))

            def onQueryIdle(self, event: Any) -> None: ...

            def onQueryTerminated(self, event: Any) -> None: ...

        try:
            listener = Listener()
            self._spark.streams.addListener(listener)
            return listener
        except Exception as problem:
            self._once("metrics of a query's last micro-batch stay uncommitted", problem)
            return None

    def _once(self, what: str, problem: Exception) -> None:
        if what not in self._warned:
            self._warned.add(what)
            log.warning("metrics: %s (%s)", what, str(problem).splitlines()[0] if str(problem) else type(problem))
