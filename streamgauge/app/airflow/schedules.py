"""The cron schedules by which a benchmark's DAGs run."""

from __future__ import annotations

from streamgauge.base.errors import UserError
from streamgauge.config import Benchmark


def schedules(benchmark: Benchmark) -> dict[str, str]:
    """Maps the schedule keys that the benchmark file sets to their cron expressions."""
    nightly = benchmark.nightly.schedule if benchmark.nightly else None
    return {key: cron for key, cron in (("schedule", benchmark.schedule), ("nightly.schedule", nightly)) if cron}


def check(benchmark: Benchmark, where: str = "") -> None:
    """Raises UserError, which begins with `where`, for what is no cron expression; needs the extra `airflow`."""
    from croniter import croniter

    for key, schedule in schedules(benchmark).items():
        if not croniter.is_valid(schedule):
            raise UserError(f"{where}{key}: found {schedule!r}, allowed: a cron expression such as 0 3 * * * or @daily")
