"""Names of metrics for people; commands and records use the names of programs."""

from __future__ import annotations

import re
from collections.abc import Callable

_NUMBER = r"[\d.e+-]+"
#: the end of the name of a figure that was measured at a load
_LOAD = rf"(?:_at_({_NUMBER})(pct|_per_s))?"
#: faults of a recovery, and its figures
_FAULTS = {"kill": "a kill", "restart": "a worker's death", "cut": "a cut of the link", "rescale": "a rescaling"}
_RECOVERY = {
    "seconds": "time until back after {}",
    "taken_again_seconds": "time until events are taken again after {}",
    "peak_age": "peak age after {}",
    "cpu_us_per_event": "CPU per event before {}",
    "wrong": "trials with wrong answers after {}",
    "read_again": "rows read again after {}",
    "lost_per_trial": "answers lost in a trial after {}",
    "doubled_per_trial": "answers doubled in a trial after {}",
}
_SCALING = {
    "rate": "rate", "efficiency": "efficiency", "relative_rate": "relative rate",
    "cost_per_billion": "money for a billion events", "cores": "CPUs",
}  # fmt: skip
_NAMES: list[tuple[str, Callable[[re.Match[str]], str]]] = [
    (r"sustainable_rate_events_per_s", lambda _: "sustainable rate"),
    (r"sustainable_rate_events_per_s_in_turns", lambda _: "sustainable rate in a release check"),
    (r"sustainable_events_per_yardstick_unit", lambda _: "sustainable rate per yardstick unit"),
    (
        rf"(event|processing)_latency_ms_(p\d+|max){_LOAD}",
        lambda m: f"{_quantile(m[2])} {m[1]}-time latency{_at(m[3], m[4])}",
    ),
    (rf"system_cpu_us_per_event{_LOAD}", lambda m: f"CPU per event{_at(m[1], m[2])}"),
    (r"soak_(\w+)_per_hour", lambda m: f"{m[1].replace('_', ' ')} an hour, in a long run"),
    (rf"catchup_seconds{_LOAD}", lambda m: f"time until live after a standstill{_at(m[1], m[2])}"),
    (r"catchup_taken_per_s", lambda _: "events/s while it catches up"),
    (r"catchup_hour_seconds", lambda _: "time after an hour of standstill, extrapolated"),
    (r"catchup_dropped", lambda _: "share of events dropped while it catches up"),
    (r"catchup_peak_(\w+)", lambda m: f"peak {m[1].replace('_', ' ')} while it catches up"),
    (
        rf"scaling_(rate|efficiency|relative_rate|cost_per_billion)_at_(?:(\w+)_)?({_NUMBER})",
        lambda m: f"{_SCALING[m[1]]} {f'with {m[2]} {m[3]}' if m[2] else f'on {_cpus(m[3])}'}",
    ),
    (
        r"scaling_(contention|coherency)(?:_of_(\w+))?",
        lambda m: f"{m[1]} of the scalability law{f', of {m[2]}' if m[2] else ''}",
    ),
    (rf"scaling_(\w+)_for_({_NUMBER})_per_s", lambda m: f"{_SCALING.get(m[1], m[1])} for {_rate(m[2])}"),
    (
        rf"recovery_({'|'.join(_FAULTS)})_({'|'.join(_RECOVERY)})(?:_at_checkpoints_every_(\w+))?",
        lambda m: f"{_RECOVERY[m[2]].format(_FAULTS[m[1]])}{_every(m[3])}",
    ),
    (r"query_seconds", lambda _: "query time"),
    (r"output_rows", lambda _: "rows of the answer"),
    (r"output_hash", lambda _: "hash of the answer"),
]


def for_people(metric: str) -> str:
    """Returns words for a metric, such as "p99 event-time latency at 80 %"; an unknown one loses its underscores."""
    for pattern, words in _NAMES:
        if match := re.fullmatch(pattern, metric):
            return words(match)
    return metric.replace("_", " ")


def _quantile(name: str) -> str:
    return {"p999": "p99.9", "max": "largest"}.get(name, name)


def _rate(number: str) -> str:
    return f"{float(number):.15g} events/s"


def _cpus(number: str) -> str:
    return "1 CPU" if number == "1" else f"{number} CPUs"


def _every(interval: str | None) -> str:
    return f", with checkpoints every {interval}" if interval else ""


def _at(load: str | None, unit: str | None) -> str:
    """The load: a part of the rate, or a rate that all cells share; empty for a figure without one."""
    if load is None:
        return ""
    return f" at {load}\u202f% of the rate" if unit == "pct" else f" at {_rate(load)}"
