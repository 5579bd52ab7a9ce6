"""What is asked of a running Spark through its JVM: classes by name, garbage collection, versions."""

from __future__ import annotations

from pyspark.sql import SparkSession

_STREAMING = "org.apache.spark.sql.execution.streaming"
#: the package changed with Spark 4.1
_FILE_SYSTEM_BASED = (
    f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    f"{_STREAMING}.FileSystemBasedCheckpointFileManager",
)


def checkpoint_manager(spark: SparkSession) -> str | None:
    """The class that writes checkpoints through the plain file system; None when this Spark has none."""
    loader = spark._jvm.org.apache.spark.util.Utils
    return next((name for name in _FILE_SYSTEM_BASED if loader.classIsLoadable(name)), None)


def gc_seconds(spark: SparkSession) -> float:
    """Since the JVM's start, all collectors."""
    beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    return sum(int(bean.getCollectionTime()) for bean in beans) / 1000


def versions(spark: SparkSession) -> dict[str, str]:
    system = spark._jvm.java.lang.System
    return {"spark": spark.version, "java": str(system.getProperty("java.version"))}
