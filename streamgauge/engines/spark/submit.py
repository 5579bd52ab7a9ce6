"""Builds the spark-submit command of a system: which Spark, which Python, which settings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.config import System
from streamgauge.engines.spark.engine import TRANSPORT, state_store
from streamgauge.spark.session import driver_address

OPTIONS = "spark.driver.extraJavaOptions"
_LOG4J = Path(__file__).parents[2] / "spark" / "log4j2.properties"


def spark_home(system: System) -> Path:
    """Returns the system's spark_home, else the PySpark beside its Python, else the built-in one. Raises UserError."""
    where = f"systems.{system.name}"
    if system.spark_home is not None:
        home = Path(system.spark_home)
    elif system.python is not None and "/" in system.python:
        if not Path(system.python).exists():
            raise UserError(f"{where}.python: found {system.python}, which does not exist; `make spark-env` builds one")
        beside = Path(system.python).parents[1]
        homes = [*beside.glob("lib/python3*/site-packages/pyspark")]
        if not homes:
            raise UserError(f"{where}.python: found {system.python}, which has no PySpark; give spark_home")
        home = homes[0]
    else:
        try:  # no import: within a spark-submit it would find the zip that Spark has put first on the path
            home = Path(str(distribution("pyspark").locate_file("pyspark")))
        except PackageNotFoundError:
            raise UserError(f"{where}: Spark is not installed; install the extra `jobs` or give spark_home") from None
    if not (home / "bin" / "spark-submit").exists():
        raise UserError(f"{where}.spark_home: found {home}, which has no bin/spark-submit")
    return home


def environment(system: System, library: Path | None) -> dict[str, str]:
    """Returns the environment of the spark-submit process; library: a folder or zip that holds this package."""
    python = system.python or sys.executable
    kept = {
        k: v
        for k, v in os.environ.items()
        if k == "SPARK_CONF_DIR" or not k.startswith(("PYSPARK_", "SPARK_", "PYTHONPATH"))
    }  # fmt: skip
    return kept | {
        "SPARK_HOME": str(spark_home(system)),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": str(library),
    }


def command(system: System, application: Path, options: Sequence[str] = ()) -> list[str]:
    local = re.fullmatch(r"local\[(\d+|\*)\]", system.master)
    # without a second number, a local Spark tries every task only once
    master = f"local[{local[1]},4]" if local else system.master
    made = [str(spark_home(system) / "bin" / "spark-submit"), "--master", master, "--driver-memory", system.memory]
    made += ["--name", f"streamgauge {system.name}", *options]
    for key, value in conf(system, local[1] if local else None).items():
        made += ["--conf", f"{key}={value}"]
    return [*made, str(application)]


def conf(system: System, cores: str | None) -> dict[str, str]:
    """Returns the Spark settings of a system; cores: of a local master, which may be *; None for another master."""
    options = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"]
    if system.cpus:  # it will be pinned to them when it is warm
        options.append(f"-XX:ActiveProcessorCount={len(system.cpus)}")
    options += [given] if (given := system.conf.get(OPTIONS)) else []
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",  # the trial's own log of offsets and watermarks
        "spark.sql.streaming.stopTimeout": "30s",
        **TRANSPORT,
        **state_store(system),
    }
    if cores is not None:
        count = len(system.cpus or ()) or os.cpu_count() or 1 if cores == "*" else int(cores)
        found |= {"spark.sql.shuffle.partitions": str(count), "spark.driver.host": "127.0.0.1"}
        found["spark.driver.bindAddress"] = "127.0.0.1"
    return found | driver_address(system.master) | system.conf | {OPTIONS: " ".join(options)}
