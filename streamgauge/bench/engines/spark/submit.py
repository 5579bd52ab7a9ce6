"""Builds the spark-submit command of a system: which Spark, which Python, which settings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from streamgauge.bench.engines.spark import real_time
from streamgauge.bench.engines.spark.engine import TRANSPORT, state_store
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.streams.stages.private_conf import REDACTED, parted, written
from streamgauge.streams.stages.session import LOG4J, driver_address

OPTIONS = "spark.driver.extraJavaOptions"


def environment(system: SparkSettings, library: Path | None) -> dict[str, str]:
    """Returns the environment of the spark-submit process; library: a folder or zip that holds this package."""
    python = system.python or sys.executable
    kept = {
        k: v
        for k, v in os.environ.items()
        if k == "SPARK_CONF_DIR" or not k.startswith(("PYSPARK_", "SPARK_", "PYTHONPATH"))
    }
    return kept | {
        "SPARK_HOME": str(system.home()),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": str(library),
    }


def command(system: SparkSettings, application: Path, private: Path, options: Sequence[str] = ()) -> list[str]:
    """The command of spark-submit; private: a folder for secret settings, and for what Spark leaves when it is killed.

    Raises UserError for a variable of the environment that is not set.
    """
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,(\d+))?\])?", system.master)
    cores = None if local is None else local[1] or "1"
    # without a second number, a local Spark tries every task only once
    master = system.master if local is None else f"local[{cores},{local[2] or 4}]"
    made = [str(system.home() / "bin" / "spark-submit"), "--master", master, "--driver-memory", system.memory]
    made += ["--name", f"streamgauge {system.name}", *options]
    if added := system.jars():
        made += ["--jars", ",".join(map(str, added))]
    shown, hidden = parted(conf(system, cores, private), f"systems.{system.name}.conf")
    for key, value in shown.items():
        made += ["--conf", f"{key}={value}"]
    if hidden:
        made += ["--properties-file", str(written(hidden, private, system.home()))]
    return [*made, str(application)]


def conf(system: SparkSettings, cores: str | None, private: Path) -> dict[str, str]:
    """Returns the Spark settings of a system; cores: of a local master, which may be *; None for another master.

    private: a folder for temporary files of a local master.
    """
    options = [f"-Dlog4j2.configurationFile={LOG4J}"]
    if cores is not None:
        options.append(f"-Djava.io.tmpdir={private}")
    if system.cpus:  # it will be pinned to them when it is warm
        options.append(f"-XX:ActiveProcessorCount={len(system.cpus)}")
    options += [given] if (given := system.conf.get(OPTIONS)) else []
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",  # the trial's own log of offsets and watermarks
        "spark.sql.streaming.stopTimeout": "30s",
        **REDACTED,
        **TRANSPORT,
        **state_store(system),
        **(real_time.SETTINGS if system.mode == "real-time" else {}),
    }
    if cores is not None:
        settings["spark.local.dir"] = str(private)
        count = len(system.cpus or ()) or os.cpu_count() or 1 if cores == "*" else int(cores)
        if system.mode == "real-time":  # all its tasks run at once: one slot is for the source
            count = max(1, count - 1)
        settings["spark.sql.shuffle.partitions"] = str(count)
    elif system.workers is not None:  # a local cluster: one task for each core of it, too
        settings["spark.sql.shuffle.partitions"] = str(system.workers)
    return settings | driver_address(system.master) | system.conf | {OPTIONS: " ".join(options)}
