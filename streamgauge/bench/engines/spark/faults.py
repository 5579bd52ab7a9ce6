"""Faults that a trial of Spark cannot take, by its settings."""

from __future__ import annotations

import re

from streamgauge.bench.driver.system import Fault
from streamgauge.bench.engines.spark.settings import SparkSettings


def spared_by(system: SparkSettings) -> dict[Fault, str]:
    """Says which faults a trial of it cannot take, and why."""
    spared: dict[Fault, str] = {}
    if not system.master.startswith("local-cluster"):
        is_local = system.master.startswith("local")
        spared["restart"] = f"its executors run {'within its driver' if is_local else 'on hosts that are not ours'}"
    if not system.master.startswith("local"):
        spared["cut"] = "its executors reach the driver from other hosts"
        spared["quota"] = "its executors run on other hosts"
    if system.mode == "real-time":
        spared["kill"] = "Real-time Mode keeps the account of its batches in the process that is killed"
    elif "://" in (system.checkpoints or ""):
        spared["kill"] = "its checkpoints are not on this host"
    if not doubled(system.master):
        spared["rescale"] = "its master names no number of threads, as local[2] does"
    elif "kill" in spared:
        spared["rescale"] = spared["kill"]
    return spared


def doubled(master: str) -> str:
    """A local master with twice the threads; empty for one that names no number of them."""
    local = re.fullmatch(r"local\[(\d+)(,\d+)?\]", master)
    return f"local[{2 * int(local[1])}{local[2] or ''}]" if local else ""
