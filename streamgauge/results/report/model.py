"""Derives what the page shows of a cell's search: the cost of a batch, and what limits the rate."""

from __future__ import annotations

import dataclasses
import math
import statistics

from streamgauge.bench.measurements.search.record import Constraint, Estimate, SearchAnswer
from streamgauge.bench.search.estimate import geometric_mean
from streamgauge.results.report.formatting import count, number


def estimates(search: SearchAnswer | None) -> dict[int, Estimate]:
    """Maps the number of each process to its estimate; one without a finite rate and backlog is left out."""
    return {
        one.process or nth: one
        for nth, one in enumerate(search.processes if search else (), 1)
        if math.isfinite(one.rate_events_per_s) and math.isfinite(one.backlog_rows)
    }


def typical(search: SearchAnswer | None) -> Estimate | None:
    """Merges the processes' estimates into one; None if there is none.

    Costs and backlogs are means, the rate is the geometric mean, and the other fields are those of the last process.
    """
    processes = list(estimates(search).values())
    if not processes:
        return None
    costs = [one.batch_cost_s for one in processes if one.batch_cost_s is not None]
    return dataclasses.replace(
        processes[-1],
        rate_events_per_s=geometric_mean([one.rate_events_per_s for one in processes]),
        backlog_rows=statistics.fmean(one.backlog_rows for one in processes),
        batch_cost_s=statistics.fmean(costs) if costs else None,
        row_cost_s=statistics.fmean(one.row_cost_s for one in processes),
        row_growth_s=statistics.fmean(one.row_growth_s for one in processes),
    )


def fixed_share(estimate: Estimate) -> float | None:
    """Share (0 to 1) of the batch cost in a batch's time at the limit; None for an engine without micro-batches."""
    whole = estimate.cost.seconds(estimate.backlog_rows)
    return None if estimate.batch_cost_s is None or whole <= 0 else estimate.batch_cost_s / whole


#: names of the constraints that are not called so themselves
LIMITS = {"age": "allowed age", "system": "engine's speed"}


def limited_by(search: SearchAnswer | None) -> tuple[str, str]:
    """The binding constraint in two or three words, and a phrase that explains it; both empty if it is unknown."""
    if search is None or search.constraint is None:
        return "", ""
    caps = [one.cap_rows for one in search.processes if one.cap_rows]
    cap = f" of {count(max(caps))} rows" if caps else ""
    age = number(search.allowed_age_s, "s")
    meanings: dict[Constraint, str] = {
        "age": f"at a higher rate events would wait for longer than the allowed {age}",
        "batch cap": f"the engine takes no larger batch than its cap{cap}; raise the system's batch_rows to see more",
        "queue memory": "the driver's queues hold no more rows (replay.max_memory_mb)",
        "system": "the engine takes no more events per second, however many wait",
        "driver's ceiling": "more was not offered: the engine may carry more",
    }
    return LIMITS.get(search.constraint, search.constraint), meanings[search.constraint]
