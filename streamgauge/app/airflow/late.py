"""The function that Airflow's triggerer calls when a night misses its deadline."""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger("streamgauge")


async def warn(benchmark: str, **context: Any) -> None:
    """Writes a warning to the triggerer's log; Airflow itself lists the missed deadline of the run."""
    run = (context.get("context") or {}).get("dag_run") or {}
    log.warning("%s: the night %s is late: it has not ended within its estimated time", benchmark,
                run.get("run_id", "") if isinstance(run, dict) else run)  # fmt: skip
