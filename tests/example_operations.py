"""Records of what happens when a cell dies, falls behind, runs for long or has less of a CPU, for tests of the page."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from streamgauge.bench.measurements.catchup.record import CatchupRun, Peak, Repeat
from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck
from streamgauge.bench.measurements.recovery.section import Kind
from streamgauge.bench.measurements.recovery.stage import suffered_of
from streamgauge.bench.measurements.scaling.record import Checked, ScalingRun
from streamgauge.bench.measurements.scaling.section import Scaling
from streamgauge.bench.measurements.scaling.stage import carried_of, record_of
from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.measurements.soak.record import SoakRun
from streamgauge.bench.measurements.soak.stage import followed
from streamgauge.bench.search.estimate import spread_of
from streamgauge.bench.search.parts import Point
from streamgauge.config import Cell
from streamgauge.stats.catch_up import HOUR_S, needed
from streamgauge.stats.scalability import carried
from tests.example_run import Recorder
from tests.measure.scaled import WHOLE

MIB = 2**20
SCALING: dict[str, Any] = {
    "quotas": [1, 2, 4, 8], "blocks": 2, "demand": 60_000, "cost": {"core_hour": 0.045},
}  # fmt: skip
OPERATIONS: dict[str, Any] = {
    "recovery": {"faults": ["kill", "restart", "cut"], "checkpoint_intervals": ["1s", "5s"], "repeats": 2},
    "catchup": {"repeats": 2}, "soak": {}, "scaling": SCALING,
}  # fmt: skip


def record_operations(r: Recorder, system: str) -> None:
    """Writes all four for each cell of a system; on the late stream a kill loses answers, and memory grows."""
    for cell in r.benchmark.all_cells():
        if cell.system != system or cell.experiment == "late99":
            continue
        place, is_late = r.run / "cells" / cell.name, cell.experiment != "ordered"
        recovery(is_late).write(place / "recovery.json")
        catchup().write(place / "catchup.json")
        soak(is_late).write(place / "soak.json")
        scaling(cell, is_late).write(place / "scaling.json")
        for stage in OPERATIONS:
            r.stage(stage, seconds=90, outcome={"artifact": stage}, **cell.model_dump())


def falling(peak: float, seconds: float) -> tuple[tuple[float, float], ...]:
    """Ages from ten seconds before an instant on, which then rise to a peak and fall."""
    rising, after = ((at, max(0.2, min(at, peak))) for at in range(-10, int(peak))), range(int(peak), 40)
    return (*rising, *((float(at), max(0.2, peak * (1 - (at - peak) / seconds))) for at in after))


def struck(nth: int, seconds: float, lost: int) -> Struck:
    back_s = seconds * (1 + 0.1 * nth)
    return Struck(
        valid=not lost, struck_s=12.0 + nth, taken_again_s=0.8 * back_s, back_s=back_s, peak_age_s=0.8 * back_s,
        calm_age_s=1.1, calm_cpu_us=40.0 + nth, read_again=1200 * nth, offered=200_000, correct=not lost,
        wrong=f"output wrong: {lost} answers are missing" if lost else "", lost=lost, doubled=0, by_key=True,
        ages=falling(0.8 * back_s, back_s),
    )  # fmt: skip


def recovery(is_late: bool) -> RecoveryRun:
    brought: list[tuple[Kind, float, int]] = [("kill", 11.0, 1234 if is_late else 0), ("cut", 2.5, 0)]
    faults = [
        suffered_of(fault, "", [struck(nth, seconds, lost * nth) for nth in (0, 1)], interval)
        for interval in ("1s", "5s")
        for fault, seconds, lost in brought
    ]
    spared = [suffered_of("restart", "its executors run within its driver", [], interval) for interval in ("1s", "5s")]
    return RecoveryRun(
        plan="p", fraction=0.6, rate_events_per_s=12_000, seconds=60, cut_seconds=2, max_age_s=3,
        faults=(*faults, *spared),
    )  # fmt: skip


def catchup() -> CatchupRun:
    repeats = [
        Repeat(
            valid=True, live_s=live_s, taken_per_s=taken, offered=900_000, correct=True, dropped=42,
            ages=tuple((float(at), max(0.3, 300 * (1 - at / live_s))) for at in range(0, 320, 4)),
        )
        for live_s, taken in ((250.0, 22_000.0), (270.0, 21_000.0))
    ]  # fmt: skip
    taken = spread_of([one.taken_per_s for one in repeats])
    assert taken is not None
    return CatchupRun(
        plan="p", fraction=0.5, rate_events_per_s=10_000, behind_s=300, most_s=1200, max_age_s=3,
        live_s=spread_of([one.live_s for one in repeats]), taken_per_s=taken,
        hour=needed(HOUR_S, 10_000, taken.value, taken.interval), repeats=tuple(repeats),
        peaks=(
            Peak(name="state_rows", unit="rows", each=(4.1e4, 4.4e4)),
            Peak(name="resident_memory", unit="bytes", each=(900.0 * MIB, 960.0 * MIB)),
        ),
    )  # fmt: skip


def soak(leaks: bool) -> SoakRun:
    """20 minutes, in which memory may grow by 6 MiB a minute; the least of a heap's parts are too alike to judge."""
    moments = [2.0 * nth for nth in range(600)]
    wave = [math.sin(at * 1.7) + math.sin(at * 0.9) for at in moments]
    values: dict[str, list[float]] = {
        "age": [0.5 + 0.1 * one for one in wave],
        "event_latency_p99": [700 + 40 * one for one in wave],
        "state_rows": [4e4 + 100 * one for one in wave],
        "resident_memory": [MIB * (900 + leaks * at / 10 + one) for at, one in zip(moments, wave, strict=True)],
        "open_files": [180.0 + round(one) for one in wave],
        "disk": [MIB * (40 + (at > 300) * 20) for at in moments],
    }
    limits = {"age": 10.0, "resident_memory": 7000.0 * MIB, "open_files": 1024.0, "disk": 2.0**36}
    series = [followed(name, [*zip(moments, each, strict=True)], limits.get(name), 6) for name, each in values.items()]
    return SoakRun(
        plan="p", fraction=0.6, rate_events_per_s=12_000, seconds=1200, outcome="sustainable", valid=True, correct=True,
        offered=14_400_000, series=tuple(series), unknown=("heap_after_collection",),
    )  # fmt: skip


def scaling(cell: Cell, is_late: bool) -> ScalingRun:
    section = Scaling.model_validate(SCALING)
    each = 20_000.0 * (0.85 if is_late else 1.0)
    points = [
        Point(block, cpus, estimate_at(carried(cpus, each, 0.05, 0.01) * (1 + 0.01 * (-1) ** (block + nth))))
        for nth, cpus in enumerate(section.parts)
        for block in range(section.blocks)
    ]
    run = record_of("p", section, [carried_of(points, cpus, section.parts) for cpus in section.parts], 0.08)
    checked = Checked(rate_events_per_s=0.6 * each, outcome="sustainable", correct=True)
    percent = 20.0 if is_late else 0.0
    return run.model_copy(update={"cell": cell, "target_percent": percent, "checked": checked, "seconds": 300.0})


def estimate_at(rate: float) -> Estimate:
    return dataclasses.replace(WHOLE, rate_events_per_s=rate)
