"""The latency stage: one trial at each fraction of the sustainable rate, and at each rate for all cells alike."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from streamgauge.base.environment import environment
from streamgauge.base.errors import UserError
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.measured import application_of, software_of, speed_of
from streamgauge.bench.measurements.latency.record import LatencyRun, Quantiles
from streamgauge.bench.measurements.search.stage import publish
from streamgauge.bench.search.claims import claim_of
from streamgauge.catalog import results
from streamgauge.catalog.run_summary import LATENCY, search_of
from streamgauge.config import Latency
from streamgauge.records.measurement import TrialObservation
from streamgauge.records.result import Result
from streamgauge.records.trial import LATENCY_TRIALS, LatencyTrial, Summary, TrialResult

log = logging.getLogger("streamgauge")
#: with fewer hand-overs, one that is early or late changes the figure too much
_LEAST_HAND_OVERS = 6
_CUT = "its last events were not answered: "
#: quantiles that become results
_INDEXED = ("p50", "p90", "p99", "p999", "max")
#: metrics of a run, to which its load is added
_OF_LOAD = {*(f"event_latency_ms_{quantile}" for quantile in _INDEXED), "system_cpu_us_per_event"}


def measure(cell_run: CellRun, _: Latency) -> dict[str, object]:
    """Measures; returns facts for the log of stages. Raises UserError if the search found no rate."""
    return facts(run(cell_run))


def run(cell_run: CellRun) -> list[LatencyRun]:
    """Measures; returns the records of the runs. Raises UserError if the search found no rate."""
    sustainable(cell_run)
    with cell_run.ready(cell_run.benchmark.latency.cell_seconds(cell_run.benchmark)) as (bench, token):
        return run_ready(cell_run, bench, token)


def facts(runs: Sequence[LatencyRun]) -> dict[str, object]:
    """Facts of a cell's runs for the log of stages."""
    system = next((run.application for run in reversed(runs)), {})
    return {"runs": len(runs), "valid": sum(run.valid for run in runs), "system": system}


def run_ready(cell_run: CellRun, bench: ReadyCell, token: int) -> list[LatencyRun]:
    """Measures a ready cell; returns the records of the runs. Raises UserError if the search found no rate.

    A rate that does not count has no fractions: then only the rates that all cells share are measured.
    """
    plan, directory = cell_run.benchmark.latency, cell_run.directory
    rate = sustainable(cell_run)
    search = search_of(directory)
    runs: list[LatencyRun] = []
    loads = [(fraction, rate * fraction, False) for fraction in plan.fractions if rate]
    whole = rate or max(plan.rates, default=0.0)  # without a rate, shared ones are parts of their largest
    for fraction, load, common in [*loads, *((one / whole, one, True) for one in plan.rates)]:
        log.info("latency at %.6g events/s", load)
        measured = bench.trial(load, plan.seconds, token=token)
        trial = LatencyTrial(**vars(measured), fraction=fraction, common=common)
        trial.append(directory / LATENCY_TRIALS)
        runs.append(figures_of(fraction, measured, common=common))
        log.info("  %s", _one_line(runs[-1]))
    LatencyRun.write_all(directory / LATENCY, runs)
    publish(cell_run, search, runs)
    for figures in runs:  # only at the end: a stage that dies and is retried records nothing twice
        for result in results_of(cell_run, figures):
            results.append(cell_run.run_directory, result)
    return runs


def sustainable(cell_run: CellRun) -> float | None:
    """The rate in events/s that counts of this run's search; None if it found one that does not count.

    Raises UserError without one.
    """
    try:
        claim = claim_of(cell_run.searched())
    except (OSError, ValueError):
        raise UserError(f"{cell_run.cell.name}: no sustainable rate of this run; run the stage search first") from None
    if claim.kind == "none":
        raise UserError(f"{cell_run.cell.name}: latency cannot be measured. {claim.sentence}")
    return claim.rate_events_per_s


def asked_rate(cell_run: CellRun, rate: float | None, fraction: float) -> float:
    """The rate in events/s that a section asks for: its own, else a fraction of the sustainable one.

    Raises UserError without a rate that counts.
    """
    if rate is not None:
        return rate
    if (whole := sustainable(cell_run)) is None:
        name = cell_run.measurement
        raise UserError(f"{name}: {cell_run.cell.name} has no rate that counts; set {name}.rate, in events/s")
    return fraction * whole


def figures_of(fraction: float, measured: TrialResult, *, common: bool = False) -> LatencyRun:
    """The record of one run. common: all cells are offered its rate."""
    details, seen = measured.details, measured.observation
    # after an overflow, or where the system did not drain, the longest waits are not among the latencies
    cut = seen.overflow or details.get("drained") is False
    check = measured.check
    return LatencyRun(
        fraction=fraction,
        common=common,
        rate_events_per_s=seen.rate_events_per_s,
        valid=seen.invalid is None and not cut,
        outcome=measured.outcome,
        reason=seen.invalid or f"{_CUT if cut else ''}{measured.reason}",
        event_latency=_in_ms(details["event_latency_ns"]),
        processing_latency=_in_ms(details["processing_latency_ns"]),
        link_share=_in_ms(link) if (link := details["system"].get("link_slip_ns")) else None,
        latency_split={f"{part}_ms": _ms(ns) for part, ns in details["latency_split_ns"].items()},
        over_time=tuple(
            (epoch["at_s"], _ms(epoch["event_latency_ns"]["p50"]), _ms(epoch["event_latency_ns"]["p99"]))
            for epoch in details["epochs"]
            if epoch["at_s"] is not None and epoch["rows"]
        ),
        correct=measured.correct,
        late_drops_expected=check and check.get("expected_late"),
        late_drops_reported=check and check.get("reported_late"),
        late_drops_counted_in=check and check.get("late_counted"),
        late_events=check and check.get("late_events"),
        dropped=measured.dropped,
        lost_at_own_speed=measured.lost_at_own_speed,
        stream_seconds_per_second=speed_of(details),
        offered=seen.offered,
        taken=seen.taken,
        emitted=details["emitted"],
        emitted_outside=details["outside_event_latency_ns"]["count"],
        software=software_of(details),
        application=application_of(details),
        **cpu_of(measured),
    )


def _in_ms(summary: Summary) -> Quantiles:
    return Quantiles(
        count=summary["count"],
        p50_ms=_ms(summary["p50"]),
        p90_ms=_ms(summary["p90"]),
        p95_ms=_ms(summary["p95"]),
        p99_ms=_ms(summary["p99"]),
        p999_ms=_ms(summary["p99.9"]),
        max_ms=_ms(summary["max"]),
    )


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


class Cpu(TypedDict):
    """CPU time of the system: per event while events were offered, and apart from that of its drain and start."""

    system_cpu_us_per_event: float | None
    system_cpu_drain_s: float | None
    system_cpu_start_s: float | None


def cpu_of(measured: TrialResult) -> Cpu:
    """CPU of the system: µs per event while events were offered; apart from that, seconds of its start and drain.

    The first is taken between two hand-overs of rows, near the begin and the end. At any other instant, rows are in
    work, and nobody counts how many. A trial with few hand-overs has all CPU time, its drain included, over all events.
    An adapter that tells no CPU time meanwhile has one figure for the whole trial.
    """
    details, seen = measured.details, measured.observation
    marks, whole = details.get("cpu_marks", {}), details["system"].get("cpu_seconds")
    taken = max((sample.taken for sample in seen.clock), default=0)
    if "start" in marks and "end" in marks and taken:
        steady = marks["end"] - marks["start"]
        drain = marks.get("drained", marks["end"]) - marks["end"]
        between = cpu_between(details.get("cpu_track", ()), seen)
        if between is None and details.get("drained") and "drained" in marks:
            between = (marks["drained"] - marks["start"]) / seen.offered * 1e6
        return {
            "system_cpu_us_per_event": steady / taken * 1e6 if between is None else between,
            "system_cpu_drain_s": drain,
            "system_cpu_start_s": None if whole is None else max(0.0, whole - steady - drain),
        }
    per_event = None if whole is None or not seen.taken else whole / seen.taken * 1e6
    return {"system_cpu_us_per_event": per_event, "system_cpu_drain_s": None, "system_cpu_start_s": None}


def cpu_between(track: Sequence[tuple[float, float]], seen: TrialObservation) -> float | None:
    """CPU-µs per event from the first to the last hand-over; None if they are few or span less than half of the trial.

    track: (seconds since the start, CPU seconds), ascending. A hand-over that is a commit counts the rows of the one
    before it. That is the same for the first and the last, as long as the system is busy and commits regularly.
    """
    if not track:
        return None
    at, used = zip(*track, strict=True)
    end = min(at[-1], seen.seconds)
    inside = [one for one in seen.samples if one.warm and one.taken and at[0] <= one.at_s <= end]
    if len(inside) < _LEAST_HAND_OVERS or inside[-1].at_s - inside[0].at_s < seen.seconds / 2:
        return None
    if inside[-1].taken == inside[0].taken:
        return None
    before, after = np.interp([inside[0].at_s, inside[-1].at_s], at, used)
    return float(after - before) / (inside[-1].taken - inside[0].taken) * 1e6


def _one_line(run: LatencyRun) -> str:
    if not run.valid:
        return f"invalid: {run.reason}"
    event, link = run.event_latency, run.link_share
    if not event.count:
        return "no row was emitted"
    share = "" if link is None or link.p50_ms is None else f", the link's share of it {link.p50_ms:.0f} ms (p50)"
    share += f"; {run.dropped.sentence}" if run.dropped else ""
    return f"{run.outcome}: event-time latency p50 {event.p50_ms:.0f} ms, p99 {event.p99_ms:.0f} ms{share}"


def load_name(fraction: float, rate: float, common: bool) -> str:
    """The load in the name of a metric: 50pct of the cell's own rate, or 5000_per_s where all cells have that rate."""
    return f"{rate:g}_per_s" if common else f"{100 * fraction:g}pct"


def is_of_load(metric: str) -> bool:
    """True for a metric of `results_of`."""
    return metric.rpartition("_at_")[0] in _OF_LOAD


def results_of(cell_run: CellRun, run: LatencyRun) -> list[Result]:
    """Results of one trial: quantiles of its event-time latency in ms, and the system's CPU in µs per event.

    Those of a trial that did not settle are in doubt, but not void: a night would not see what slows a system so far.
    """
    load = load_name(run.fraction, run.rate_events_per_s, run.common)
    values = {f"event_latency_ms_{q}_at_{load}": ("ms", value) for q, value in run.event_latency.by_name(_INDEXED)}
    values[f"system_cpu_us_per_event_at_{load}"] = ("us", run.system_cpu_us_per_event)
    return [
        cell_run.result(
            metric, unit, value, samples=run.event_latency.count, valid=run.valid, reason=run.reason, claim=run.doubt,
            software={**environment().software, **run.software},
        )
        for metric, (unit, value) in values.items()
    ]  # fmt: skip
