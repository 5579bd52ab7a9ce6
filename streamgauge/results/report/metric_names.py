"""Names of metrics for people; commands and records use the names of programs."""

from __future__ import annotations

import re
from collections.abc import Callable

_NUMBER = r"[\d.e+-]+"
#: faults of a recovery, and its figures
_FAULTS = {"kill": "a kill", "restart": "a worker's death", "cut": "a cut of the link", "rescale": "a rescaling"}
_RECOVERY = {
    "seconds": "time until back after {}",
    "taken_again_seconds": "time until events are taken again after {}",
    "peak_age": "peak age after {}",
    "cpu_us_per_event": "CPU per event before {}",
    "wrong": "trials with wrong answers after {}",
}
_NAMES: list[tuple[str, Callable[[re.Match[str]], str]]] = [
    (r"sustainable_rate_events_per_s", lambda _: "sustainable rate"),
    (r"sustainable_rate_events_per_s_in_turns", lambda _: "sustainable rate in a release check"),
    (r"sustainable_events_per_yardstick_unit", lambda _: "sustainable rate per yardstick unit"),
    (
        rf"(event|processing)_latency_ms_(p\d+|max)(?:_at_({_NUMBER})pct)?",
        lambda m: f"{_quantile(m[2])} {_of(m[1])} latency{_at(m[3])}",
    ),
    (
        rf"(event|processing)_latency_ms_(p\d+|max)_at_({_NUMBER})_per_s",
        lambda m: f"{_quantile(m[2])} {_of(m[1])} latency at {_rate(m[3])}",
    ),
    (rf"system_cpu_us_per_event(?:_at_({_NUMBER})pct)?", lambda m: f"CPU per event{_at(m[1])}"),
    (rf"system_cpu_us_per_event_at_({_NUMBER})_per_s", lambda m: f"CPU per event at {_rate(m[1])}"),
    (r"soak_(\w+)_per_hour", lambda m: f"{m[1].replace('_', ' ')} an hour, in a long run"),
    (r"catchup_seconds", lambda _: "time until live after a standstill"),
    (rf"catchup_seconds_at_({_NUMBER})_per_s", lambda m: f"time until live after a standstill at {_rate(m[1])}"),
    (r"catchup_taken_per_s", lambda _: "events/s while it catches up"),
    (r"catchup_hour_seconds", lambda _: "time after an hour of standstill, extrapolated"),
    (r"catchup_peak_(\w+)", lambda m: f"peak {m[1].replace('_', ' ')} while it catches up"),
    (rf"scaling_rate_at_({_NUMBER})", lambda m: f"rate on {_cpus(m[1])}"),
    (rf"scaling_efficiency_at_({_NUMBER})", lambda m: f"efficiency on {_cpus(m[1])}"),
    (r"scaling_(contention|coherency)", lambda m: f"{m[1]} of the scalability law"),
    (rf"scaling_cores_for_({_NUMBER})_per_s", lambda m: f"CPUs for {_rate(m[1])}"),
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


def _of(kind: str) -> str:
    return {"event": "event-time", "processing": "processing-time"}[kind]


def _quantile(name: str) -> str:
    return {"p999": "p99.9", "max": "largest"}.get(name, name)


def _rate(number: str) -> str:
    return f"{float(number):.15g} events/s"


def _cpus(number: str) -> str:
    return "1 CPU" if number == "1" else f"{number} CPUs"


def _every(interval: str | None) -> str:
    return f", with checkpoints every {interval}" if interval else ""


def _at(percent: str | None) -> str:
    return f" at {percent}\u202f% of the rate" if percent else ""
