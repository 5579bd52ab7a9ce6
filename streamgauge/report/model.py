"""Derives what the page shows of a cell's search: the cost of a batch, what limits the rate, the settled age."""

from __future__ import annotations

import dataclasses
import math
import statistics

from streamgauge.report.blocks import count, number
from streamgauge.report.run_records import Json
from streamgauge.search import verdict
from streamgauge.search.estimate import Estimate, geometric_mean

_FIELDS = {one.name for one in dataclasses.fields(Estimate)}


def estimates(search: Json) -> dict[int, Estimate]:
    """Maps the number of each process to its estimate; one without a finite rate and backlog is left out."""
    found: dict[int, Estimate] = {}
    for nth, one in enumerate(search.get("processes") or [], 1):
        estimate = Estimate(**{key: value for key, value in one.items() if key in _FIELDS})
        if math.isfinite(estimate.rate_events_per_s) and math.isfinite(estimate.backlog_rows):
            found[one.get("process", nth)] = estimate
    return found


def typical(search: Json) -> Estimate | None:
    """Merges the processes' estimates into one; None if there is none.

    Costs and backlogs are means, the rate is the geometric mean, and the other fields are those of the last process.
    """
    found = list(estimates(search).values())
    if not found:
        return None
    costs = [one.batch_cost_s for one in found if one.batch_cost_s is not None]
    return dataclasses.replace(
        found[-1],
        rate_events_per_s=geometric_mean([one.rate_events_per_s for one in found]),
        backlog_rows=statistics.fmean(one.backlog_rows for one in found),
        batch_cost_s=statistics.fmean(costs) if costs else None,
        row_cost_s=statistics.fmean(one.row_cost_s for one in found),
    )


def batch_s(estimate: Estimate, rows: float) -> float:
    """Seconds that a warm process takes for a batch of this many rows."""
    return (estimate.batch_cost_s or 0.0) + estimate.row_cost_s * rows


def fixed_share(estimate: Estimate) -> float | None:
    """Share (0 to 1) of the batch cost in a batch's time at the limit; None for an engine without micro-batches."""
    whole = batch_s(estimate, estimate.backlog_rows)
    return None if estimate.batch_cost_s is None or whole <= 0 else estimate.batch_cost_s / whole


def limited_by(search: Json) -> tuple[str, str]:
    """The binding constraint in two or three words, and a phrase that explains it; both empty if it is unknown."""
    caps = [one["cap_rows"] for one in search.get("processes") or [] if one.get("cap_rows")]
    cap = f" of {count(max(caps))} rows" if caps else ""
    age = number(search.get("allowed_age_s"), "s")
    words = {
        "age": ("allowed age", f"at a higher rate events would wait for longer than the allowed {age}"),
        "batch cap": (
            "batch cap",
            f"the engine takes no larger batch than its cap{cap}; raise the system's batch_rows to see more",
        ),
        "queue memory": ("queue memory", "the driver's queues hold no more rows (replay.max_memory_mb)"),
        "system": ("engine's speed", "the engine takes no more events per second, however many wait"),
        "driver's ceiling": ("driver's ceiling", "more was not offered: the engine may carry more"),
    }
    return words.get(search.get("constraint") or "", ("", ""))


def settled_age(trial: Json) -> float | None:
    """The median age in seconds over the second half of a trial's samples; None without samples."""
    seen = trial.get("observation") or {}
    samples = seen.get("samples") or seen.get("clock") or []
    return verdict.settled_age([(sample["at_s"], sample["age_s"]) for sample in samples])
