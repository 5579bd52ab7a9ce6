"""Systems that a suite of queries can be asked of by name: settings of the built-in Spark."""

from __future__ import annotations

from collections.abc import Mapping

from streamgauge.errors import UserError
from streamgauge.link.engine import PROVIDER, ROCKSDB
from streamgauge.link.finite import GLOBAL_WATERMARK

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
SYSTEMS: Mapping[str, Mapping[str, str]] = {
    "spark": {PROVIDER: ROCKSDB},
    "spark-changelog": {
        PROVIDER: ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
    "spark-hdfs": {PROVIDER: HDFS},
    "spark-one-watermark": {PROVIDER: ROCKSDB, **GLOBAL_WATERMARK},
}


def system(name: str) -> Mapping[str, str]:
    """Raises UserError naming what there is."""
    if name not in SYSTEMS:
        raise UserError(f"--system: found {name!r}, allowed: {', '.join(SYSTEMS)}")
    return SYSTEMS[name]
