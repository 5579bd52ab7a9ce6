"""The system under test as a spark-submit application: one warm session, a new query for each trial.

The adapter (`spark_system.py`) sends commands as JSON lines on a loopback connection; each is answered by one line. The
application ends by itself when that connection closes. It needs only the standard library, PySpark, pyarrow, numpy and
pydantic, so that it runs in another Spark's environment.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder: its modules must not shadow top-level ones
    import streamgauge.streams.stages  # noqa: F401 - prefers the installed PySpark

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamgauge.bench import workloads
from streamgauge.bench.driver.client import of_each
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.engines.spark import queries, real_time
from streamgauge.bench.engines.spark.connections import options_of, salts_of
from streamgauge.bench.engines.spark.engine import checkpoint_manager, gc_seconds, heap, one_watermark, remove, versions
from streamgauge.bench.engines.spark.progress import batch_of, batches_of, ran
from streamgauge.bench.engines.spark.sink import MeasuringSink
from streamgauge.bench.engines.spark.source import Link
from streamgauge.bench.workloads import Spec
from streamgauge.streams.stages.session import application

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

READY_SECONDS = 180.0  # a cluster's executors start with the first batch
#: source and sink of each kind of link
LINKS = {"python": ("streamgauge", "streamgauge-sink"), "jvm": ("streamgauge.Link", "streamgauge.Sink")}
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


class Application:
    """Runs one trial at a time; every public method answers one command."""

    def __init__(self, spark: SparkSession, file_manager: str) -> None:
        self._spark = spark
        self._query: StreamingQuery | None = None
        self._asked = workloads.find("passthrough")
        self._real_time = False
        self._endpoints: tuple[Endpoint, ...] = ()
        self._attempt = self._checkpoint = ""
        self._gc = 0.0
        for source in (Link, MeasuringSink):
            spark.dataSource.register(source)
        named = spark.conf.get(MANAGER, None)  # by the user's own conf
        if named is None and file_manager == "filesystem" and (manager := checkpoint_manager(spark)):
            spark.conf.set(MANAGER, manager)

    def begin(self, command: dict[str, Any]) -> dict[str, object]:
        """Starts the trial's query; tells every driver that it is ready once it waits for rows.

        A query that is resumed from its checkpoint has rows to take, and is not waited for.
        """
        spec = Spec(**command["spec"])
        self._endpoints = tuple(Endpoint(**endpoint) for endpoint in command["endpoints"])
        self._attempt, self._checkpoint = command["attempt"], command["checkpoint"]
        self._asked, self._real_time = workloads.find(spec.query), command["mode"] == "real-time"
        self._gc = gc_seconds(self._spark)
        try:
            self._query = self._started(command, spec)
            if not command["resumed"]:
                self._wait_until_waiting()
        except Exception as problem:
            query, self._query = self._query, None
            if query is not None:
                query.stop()
                if not command["resumed"]:
                    remove(self._spark, self._checkpoint)
            said = reason(str(problem).replace(self._checkpoint, "…"))  # a folder of this trial alone
            # the errors that Spark has names for, before any row was read
            if self._real_time and (isinstance(problem, PySparkException) or said.startswith("[")):
                return {"unsupported": said}
            raise
        of_each(self._endpoints, self._attempt, lambda wire: wire.ready(self._attempt))
        return {}

    def _started(self, command: dict[str, Any], spec: Spec) -> StreamingQuery:
        asked = self._asked
        source, sink = LINKS[command["link"]]
        options = options_of(self._endpoints, self._attempt)
        reader = self._spark.readStream.format(source).options(**options, batch_rows=command["batch_rows"])
        roles = ["alone"] if asked.streams == 1 else ["lead", *["follow"] * (asked.streams - 1)]
        frames = [reader.option("role", role).option("real_time", self._real_time).load() for role in roles]
        result = queries.run(frames, spec)
        writer = result.writeStream.format(sink).options(**options, salts=salts_of(result.columns))
        if self._real_time:
            trigger = {"realTime": f"{command['trigger_ms'] or real_time.BATCH_MS} milliseconds"}
        else:
            trigger = {"processingTime": f"{command['trigger_ms']} milliseconds"}
        writer = writer.outputMode("update" if self._real_time else queries.OUTPUT_MODE)
        return writer.option("checkpointLocation", self._checkpoint).trigger(**trigger).start()

    def state(self, _: dict[str, Any]) -> dict[str, object]:
        return {"failure": self._failure()}

    def vitals(self, _: dict[str, Any]) -> dict[str, object]:
        """Returns the heap in use and its limit, and the state after the last micro-batch."""
        vitals: dict[str, float] = heap(self._spark)
        last = None if self._query is None else self._query.lastProgress
        if last is not None and ran(report := json.loads(last.json)):
            batch = batch_of(report, self._asked.streams)
            vitals |= {name: batch[name] for name in ("state_rows", "state_bytes") if name in batch}
        return {"vitals": vitals}

    def account(self, _: dict[str, Any]) -> dict[str, object]:
        """Returns the micro-batches so far."""
        return {"batches": [] if self._query is None else batches_of(reports_of(self._query), self._asked.streams)}

    def end(self, command: dict[str, Any]) -> dict[str, object]:
        """Lets the query process what was offered, for at most timeout_s, and ends it; returns its figures."""
        query = self._query
        if query is None:
            return {"figures": {}}
        whole = threading.Event()
        last = threading.Thread(target=self._drain, args=(query, whole), daemon=True)
        last.start()
        last.join(command["timeout_s"])
        drained = whole.is_set() and self._failure() is None
        failure = self._failure()
        query.stop()
        remove(self._spark, self._checkpoint)
        self._query = None
        reports = reports_of(query)
        batches = batches_of(reports, self._asked.streams)
        queues = sum(endpoint.partitions for endpoint in self._endpoints)
        account = real_time.account(reports, self._asked, queues) if self._real_time else {"batches": batches}
        return {
            "figures": {
                **account,
                "epochs": len(batches),
                "drained": drained,
                "failure": failure,
                "gc_seconds": round(gc_seconds(self._spark) - self._gc, 3),
                "checkpoint_manager": self._spark.conf.get(MANAGER, None) or "default",
                "application": application(self._spark),
                "software": versions(self._spark),
            },
            "one_watermark": one_watermark(self._spark.conf),
        }

    def _drain(self, query: StreamingQuery, whole: threading.Event) -> None:
        try:
            if self._real_time:
                real_time.drain(query, self._endpoints, self._attempt)
            else:
                query.processAllAvailable()
            whole.set()
        except Exception:  # the query's own failure, which `_failure` reports, or a driver's
            return

    def _failure(self) -> str | None:
        """Reason why the query ended by itself; None if it runs or was never started."""
        if self._query is None or self._query.isActive:
            return None
        problem = self._query.exception()
        return "the query ended by itself" if problem is None else reason(str(problem))

    def _wait_until_waiting(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while self._query is not None and time.monotonic() < deadline:
            if failure := self._failure():
                raise RuntimeError(failure)
            if self._real_time and real_time.runs(self._spark, self._query):
                return
            if not self._real_time and self._query.status["message"].startswith("Waiting"):
                return
            time.sleep(0.02)
        raise RuntimeError(f"the query did not begin to wait for rows within {READY_SECONDS:.0f} s")


def reports_of(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(progress.json) for progress in query.recentProgress]


def reason(text: str) -> str:
    """Line of a JVM or Python trace that tells the cause: the last raised error, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if not line.startswith("at ") and ("Error: " in line or "Exception: " in line)]
    return (raised[-1] if raised else lines[0] if lines else "no reason given")[:500]


def _end_with_parent(control: socket.socket) -> None:
    """Ends this process when the adapter's connection closes, so that an adapter that died leaves no system behind."""
    while control.recv(1, socket.MSG_PEEK):
        time.sleep(0.3)
    os._exit(3)


def main() -> None:
    control = socket.create_connection(("127.0.0.1", int(os.environ.pop("STREAMGAUGE_CONTROL_PORT"))))
    lines = control.makefile("rw", encoding="utf-8")

    def say(answer: Mapping[str, object]) -> None:
        lines.write(json.dumps(answer) + "\n")
        lines.flush()

    threading.Thread(target=_end_with_parent, args=(control.dup(),), daemon=True).start()
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    application = Application(spark, os.environ.get("STREAMGAUGE_FILE_MANAGER", "default"))
    say({"secret": os.environ.pop("STREAMGAUGE_CONTROL_SECRET")})
    commands = {"begin": application.begin, "state": application.state, "end": application.end}
    commands |= {"vitals": application.vitals, "account": application.account}
    while (line := lines.readline()) and (command := json.loads(line))["do"] != "exit":
        try:
            say({"ok": True, **commands[command["do"]](command)})
        except Exception as problem:
            say({"ok": False, "error": reason(str(problem)) if str(problem) else type(problem).__name__})
    spark.stop()


if __name__ == "__main__":
    main()
