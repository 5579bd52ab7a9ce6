"""The soak stage: one long trial, whose series are judged level or growing."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import numpy as np

from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.measured import software_of
from streamgauge.bench.measure.vitals import Vitals
from streamgauge.bench.measurements.latency.stage import asked_rate
from streamgauge.bench.measurements.soak.record import Followed, SoakRun
from streamgauge.bench.measurements.soak.section import Soak
from streamgauge.records.trial import TrialResult
from streamgauge.stats.trend import full, kept_points, lowest, trend

log = logging.getLogger("streamgauge")
Points = Sequence[tuple[float, float]]
#: what is followed, with its unit
UNITS = {
    "age": "s",
    "event_latency_p50": "ms",
    "event_latency_p99": "ms",
    "state_rows": "rows",
    "state_bytes": "bytes",
    "heap_after_collection": "bytes",
    "resident_memory": "bytes",
    "open_files": "files",
    "disk": "bytes",
}


def measure(cell_run: CellRun, section: Soak) -> dict[str, object]:
    """Measures; returns facts for the log of stages. Raises UserError if the search found no rate."""
    rate = asked_rate(cell_run, section.rate, section.fraction)
    vitals = Vitals(section.every_seconds)
    with cell_run.ready(section.cell_seconds(cell_run.benchmark)) as (bench, token):
        log.info("soak at %.6g events/s for %g minutes", rate, section.minutes)
        measured = bench.trial(rate, section.seconds, token=token, look=vitals)
    run = record_of(cell_run, section, measured, vitals)
    run.write(cell_run.directory / "soak.json")
    log.info("  %s", sentence_of(run))
    void = "" if run.valid else run.reason
    for one in run.series:
        is_clear = one.kind != "not clear"  # else the soak is sound, and no figure is known
        cell_run.keep(
            one.metric, f"{one.unit}/h", one.per_hour if is_clear else None,
            interval=one.interval if is_clear else None, samples=one.samples, void=void,
            remark="" if is_clear else one.reason, software=run.software,
        )  # fmt: skip
    return {"growing": [one.name for one in run.growing], "valid": run.valid, "correct": run.correct}


def record_of(cell_run: CellRun, section: Soak, measured: TrialResult, vitals: Vitals) -> SoakRun:
    """The record of the run that was watched."""
    seen, details = measured.observation, measured.details
    over_time = _of_trial(measured) | vitals.series
    limits = vitals.limits | {"age": cell_run.benchmark.search.max_age.seconds}
    known = [name for name in UNITS if over_time.get(name)]
    collections = [value for _, value in over_time.get("collections", ())]
    drained = details.get("drained") is not False
    return SoakRun(
        plan=cell_run.plan_key,
        fraction=None if section.rate else section.fraction,
        rate_events_per_s=seen.rate_events_per_s,
        seconds=section.seconds,
        outcome=measured.outcome,
        valid=seen.invalid is None and not seen.overflow and drained,
        reason=seen.invalid or measured.reason,
        correct=measured.correct,
        lost_at_own_speed=measured.lost_at_own_speed,
        offered=seen.offered,
        series=tuple(followed(name, over_time[name], limits.get(name), len(known), collections) for name in known),
        unknown=tuple(name for name in UNITS if name not in known),
        software=software_of(details),
    )


def _of_trial(measured: TrialResult) -> dict[str, Points]:
    """Age and latencies over time, as driver and sink have seen them."""
    epochs = measured.details.get("epochs", ())
    series: dict[str, Points] = {"age": [(one.at_s, one.age_s) for one in measured.observation.clock if one.warm]}
    for quantile in ("p50", "p99"):
        found = [(epoch["at_s"], epoch["event_latency_ns"][quantile]) for epoch in epochs if epoch["steady"]]
        series[f"event_latency_{quantile}"] = [(at, ns / 1e6) for at, ns in found if at is not None and ns is not None]
    return series


def followed(
    name: str, points: Points, limit: float | None, series: int, collections: Sequence[float] = ()
) -> Followed:
    """Judges a series. series: number of those that are judged together. collections: until each sample of a heap."""
    at, values = np.array(points).T
    of_heap = ""
    if name == "heap_after_collection":
        after = np.diff(collections, prepend=collections[0]) > 0
        of_heap = f"{after.sum()} of {after.size} samples follow a collection; "
        at, values = lowest(at[after], values[after])
    course = trend(at, values, series=series)
    return Followed(
        name=name,
        unit=UNITS[name],
        kind=course.kind,
        reason=course.reason and of_heap + course.reason,
        samples=course.samples,
        apart=course.apart,
        level=course.level,
        per_hour=course.per_hour,
        low=_finite(course.low),
        high=_finite(course.high),
        limit=limit,
        full=full(course, limit) if limit is not None else None,
        points=kept_points(at, values),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def sentence_of(run: SoakRun) -> str:
    """Says what grows, at what rate, and when it would be full."""
    if not run.valid:
        return f"invalid: {run.reason}"
    if not run.growing:
        unclear = ", ".join(one.name for one in run.series if one.kind == "not clear")
        if all(one.kind == "not clear" for one in run.series):
            return f"it is not clear whether anything grows{unclear and f': {unclear}'}"
        return f"nothing grows{unclear and f'; not clear: {unclear}'}"
    return "; ".join(one.growth for one in run.growing)
