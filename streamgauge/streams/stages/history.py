"""Finds a Spark application's event log, which a history server shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: in Spark's own configuration: the address that a person's browser has for the history server
SERVER = "spark.streamgauge.historyServer"


def application(session: SparkSession) -> dict[str, str]:
    """Describes a session's application: `id`; `events`, the folder of its event log; `history`, its page.

    `events` is there if a log is kept, `history` if the server's address is known too.
    """
    conf, names = session.sparkContext.getConf(), {"id": session.sparkContext.applicationId}
    if conf.get("spark.eventLog.enabled", "false") == "true":
        names["events"] = str(conf.get("spark.eventLog.dir", "file:/tmp/spark-events"))
        if server := conf.get(SERVER):
            names["history"] = f"{server.rstrip('/')}/history/{names['id']}/"
    return names
