"""Faults that a trial of Spark cannot take, by its settings."""

from __future__ import annotations

import re

from streamgauge.bench.driver.system import Fault
from streamgauge.bench.engines.spark.settings import SparkSettings


def spared_by(system: SparkSettings) -> dict[Fault, str]:
    """Says which faults a trial of it cannot take, and why."""
    spared: dict[Fault, str] = {}
    if not system.master.startswith("local-cluster"):
        where = "within its driver" if system.is_local else "on hosts that are not ours"
        spared["restart"] = f"its executors run {where}"
    if not system.is_local:
        spared["cut"] = "its executors reach the driver from other hosts"
        spared["quota"] = "its executors run on other hosts"
    if system.mode == "real-time":
        spared["kill"] = "Real-time Mode keeps the account of its batches in the process that is killed"
    elif "://" in (system.checkpoints or ""):
        spared["kill"] = "its checkpoints are not on this host"
    if not re.match(r"local\[\d", system.master):
        spared["rescale"] = "its master names no number of threads, as local[2] does"
    elif "kill" in spared:
        spared["rescale"] = spared["kill"]
    return spared
