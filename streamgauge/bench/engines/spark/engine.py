"""Asks a running Spark through its JVM (classes by name, garbage collection, versions), and changes its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from streamgauge.base.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamgauge.bench.engines.spark.settings import SparkSettings

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
#: the old behaviour: one watermark for all operators of a query
GLOBAL_WATERMARK = {"spark.sql.streaming.statefulOperator.allowMultiple": "false"}
_STREAMING = "org.apache.spark.sql.execution.streaming"
#: the packages changed with Spark 4.1
_STATE_WRITER = (
    "org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter",
    "org.apache.spark.sql.execution.streaming.StateStoreWriter",
)
_FILE_SYSTEM_BASED = (
    f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    f"{_STREAMING}.FileSystemBasedCheckpointFileManager",
)


#: results travel to the sink in large pieces; a limit in bytes would be checked after each row, at 0.3 CPU-µs a row
TRANSPORT = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}


def one_watermark(conf: Mapping[str, str]) -> bool:
    """True if all operators of a query share one watermark. conf: settings of a system, or of a running session."""
    return any(conf.get(key, "true").lower() == value for key, value in GLOBAL_WATERMARK.items())


def state_store(system: SparkSettings) -> dict[str, str]:
    provider = ROCKSDB if system.state_store == "rocksdb" else HDFS
    return {PROVIDER: provider, CHANGELOG: str(system.changelog_checkpointing).lower()}


def checkpoint_manager(spark: SparkSession) -> str | None:
    """Name of the class that writes checkpoints through the plain file system; None if this Spark has none."""
    return _loadable(spark, _FILE_SYSTEM_BASED)


def state_writer(spark: SparkSession) -> Any:
    """The Java class of all plan nodes that keep state."""
    return spark._jvm.org.apache.spark.util.Utils.classForName(_loadable(spark, _STATE_WRITER), True, False)


def _loadable(spark: SparkSession, names: tuple[str, ...]) -> str | None:
    loader = spark._jvm.org.apache.spark.util.Utils
    return next((name for name in names if loader.classIsLoadable(name)), None)


def is_alive(spark: SparkSession) -> bool:
    """False when the application or its JVM has ended."""
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False


def gc_seconds(spark: SparkSession) -> float:
    """Seconds that all garbage collectors have used since the JVM's start."""
    return sum(int(one.getCollectionTime()) for one in _collectors(spark)) / 1000


def heap(spark: SparkSession) -> dict[str, float]:
    """Heap of the driver that is in use, and the largest that it may have, in bytes; and its collections so far."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    used = int(runtime.totalMemory()) - int(runtime.freeMemory())
    collections = sum(int(one.getCollectionCount()) for one in _collectors(spark))
    return {"heap": used, "heap_limit": int(runtime.maxMemory()), "collections": collections}


def _collectors(spark: SparkSession) -> Any:
    return spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()


def remove(spark: SparkSession, folder: str) -> None:
    """Removes a folder from any file system that Spark knows; leaves what cannot be removed."""
    from py4j.protocol import Py4JError

    path = spark._jvm.org.apache.hadoop.fs.Path(folder)
    with suppress(Py4JError):
        path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).delete(path, True)


def versions(spark: SparkSession) -> dict[str, str]:
    system = spark._jvm.java.lang.System
    return {"spark": spark.version, "java": str(system.getProperty("java.version"))}


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Changes settings of the session within a `with` block. Raises UserError for one that a session cannot change."""
    from pyspark.errors import AnalysisException

    before: dict[str, str | None] = {}
    try:
        for key, value in wanted.items():
            old = spark.conf.get(key, None)
            try:
                spark.conf.set(key, value)
            except AnalysisException as problem:
                said = str(problem).splitlines()[0]
                raise UserError(f"{key}: cannot be set in a running session ({said}); leave it out") from None
            before[key] = old
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
