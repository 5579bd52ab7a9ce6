"""Puts what the driver processes observed of a trial together: samples, epochs, latencies, clock doubts. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.clock import worst_clock
from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.driver.split import Plans, batch_log, overall
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.records.driver import DriverFigures, DriverSamples, EpochReport, Observed, QueueSample
from streamgauge.records.measurement import Sample, TrialObservation
from streamgauge.records.trial import Details, EngineBatch, Epoch, Summary, SystemFigures

Kind = Literal["samples", "clock"]
#: no trial lasts so long, nor the backlog before it
LONGEST_LATENCY_NS = 366 * 86_400 * NS


def observation(request: TrialRequest, seen: Sequence[DriverSamples]) -> TrialObservation:
    """Observation of a trial for the verdict, from what each driver process has seen so far."""
    return TrialObservation(
        request.rate,
        request.seconds,
        _samples(seen, "samples", request.settling_s),
        sum(sum(s["offered"]) for s in seen),
        sum(sum(s["planned"]) for s in seen),
        any(s["overflow"] for s in seen) and not any(s["hold"] for s in seen),
        clock=_samples(seen, "clock", request.settling_s),
        behind_s=request.behind_s,
        batch_noise=request.batch_noise,
        uncommitted=any(s["overflow"] and s["uncommitted"] for s in seen),
    )


@dataclass
class Latencies:
    """Histograms of one part of a trial, ns."""

    event: Histogram = field(default_factory=Histogram)
    processing: Histogram = field(default_factory=Histogram)


@dataclass(frozen=True)
class Collected:
    """Figures of a trial that has ended, by drivers and system; `invalid` tells why they measure nothing."""

    details: Details  # for the trial's record
    spans: list[Latencies]  # those asked for, or the steady part
    invalid: str | None


@dataclass(frozen=True)
class TrialRun:
    """Outcome of a trial: its observation for the verdict, and all figures.

    spans: event-time latencies of each part that was asked for. Other latencies: of the first, or of the steady part.
    """

    observation: TrialObservation
    details: Details
    event_latency: Histogram
    processing_latency: Histogram
    spans: tuple[Histogram, ...] = ()


def collect(
    request: TrialRequest,
    seen: Sequence[Observed],
    figures: SystemFigures,
    clock_offsets: Sequence[tuple[int, int]],
    asked: Sequence[tuple[int, int]] = (),
) -> Collected:
    """Epochs and latencies of a trial that has ended.

    seen: what each driver process observed. figures: the system's own, with its log of micro-batches where it keeps
    one. clock_offsets: of each driver's clock to ours, and its error bound, ns. asked: walls, ns, of the parts whose
    latencies are kept apart; none: the steady part.
    """
    bounds, by_watermark = request.bounds, request.by_watermark
    slip, outside = Histogram(), Latencies()  # outside: cold batches, the drain, and windows closed by the sentinel
    spans = [Latencies() for _ in asked or (None,)]
    epochs: list[Epoch] = []
    invalid = stepped(seen, bounds.max_clock_offset_s)  # it explains what else is wrong
    log = batch_log(figures)
    for observed in seen:
        if observed["refused"] is not None:
            invalid = invalid or f"a report was refused: {observed['refused']}"
        plans = Plans(observed["samples"])
        slip.merge(Histogram.from_dict(observed["slip"]))
        for report in observed["reports"]:
            try:
                begin, end = observed["start_wall_ns"], (observed["final"] or [2**63])[0]
                steady = (begin + round(request.settling_s * NS), end)
                parts = _Parts(asked or (steady,), by_watermark, spans, outside)
                epochs.append(_epoch(report, begin, parts, plans, log))
            except (ValueError, KeyError, TypeError, IndexError) as problem:
                invalid = invalid or f"the report of epoch {report['epoch']} is unusable: {problem!r}"
    slipped_s = (slip.quantile(0.99) or 0) / NS
    if invalid is None and slipped_s > bounds.max_slip_s:
        invalid = (
            f"the driver limited this trial: its schedule slipped by {slipped_s:.3f} s (p99), allowed: "
            f"{bounds.max_slip_s:g} s; lower the rate, or give the driver more processes or a CPU of its own"
        )
    invalid = invalid or _link_limited(figures, bounds)
    system_clock = worst_clock(epoch["clock_offset_ns"] for epoch in epochs if epoch["clock_offset_ns"])
    invalid = invalid or _apart(clock_offsets, system_clock, bounds.max_clock_offset_s)
    compared = figures.get("check")
    if compared is None or not compared["wrong"]:
        invalid = invalid or _early(epochs)
    steady_epochs = [epoch for epoch in epochs if epoch["steady"]]
    details: Details = {
        "system_clock_offset_ns": system_clock,
        "slip_ns": summary(slip),
        "emitted": sum(epoch["rows"] for epoch in epochs),
        "negative_latencies": sum(epoch["negative"] for epoch in epochs),
        "epochs": epochs,
        "event_latency_ns": summary(spans[0].event),
        "processing_latency_ns": summary(spans[0].processing),
        "outside_event_latency_ns": summary(outside.event),
        "latency_split_ns": overall((epoch["rows"], epoch["latency_split_ns"]) for epoch in steady_epochs),
    }
    return Collected(details, spans, invalid)


def stepped(seen: Sequence[DriverFigures], allowed_s: float) -> str | None:
    """Reason why times and rates say nothing: a driver's clock was set meanwhile; else None."""
    worst_s = max((one["clock_step_ns"] for one in seen), default=0) / NS
    if worst_s <= allowed_s:
        return None
    return (
        f"the driver's clock was set meanwhile, by {worst_s:.3f} s in all, allowed: {allowed_s:g} s; let NTP adjust it "
        "slowly, or raise replay.max_clock_offset"
    )


def _link_limited(figures: SystemFigures, bounds: Bounds) -> str | None:
    """Reason why a link between driver and system was what limited the trial, by the adapter's account; else None."""
    if figures.get("invalid"):
        return str(figures["invalid"])
    slip = figures.get("link_slip_ns")
    slipped_s = ((slip and slip["p99"]) or 0) / NS
    if slipped_s <= bounds.max_slip_s:
        return None
    return (
        f"the link to the system limited this trial: rows were handed on {slipped_s:.3f} s late (p99), allowed: "
        f"{bounds.max_slip_s:g} s; lower the rate, or give the link a host or CPUs of its own"
    )


def _early(epochs: Sequence[Epoch]) -> str | None:
    """Reason why the latencies say nothing: rows were emitted before their events, beyond the clocks' error; else None.

    A report that does not tell its lowest latency has counted none that the clocks' error explains.
    """
    rows, lead_ns = 0, 0
    for epoch in epochs:
        lead = -(epoch["least_ns"] or -1)
        if epoch["negative"] and (epoch["least_ns"] is None or lead > sum(map(abs, epoch["clock_offset_ns"] or ()))):
            rows, lead_ns = rows + epoch["negative"], max(lead_ns, lead)
    if not rows:
        return None
    return (
        f"{rows:,} of {sum(epoch['rows'] for epoch in epochs):,} answers came before the events that they answer, by "
        f"up to {lead_ns / NS:.3f} s, more than the clocks may be off: they answer others, whose ids may be the same "
        "(replay.ids), or a clock was set"
    )


def _apart(drivers: Sequence[tuple[int, int]], system: tuple[int, int] | None, allowed_s: float) -> str | None:
    """Reason why a latency would be wrong: the clocks that stamp offers and emissions are too far apart; else None."""
    among = [(b - a, error + other) for (a, error), (b, other) in combinations(drivers, 2)]
    worst = worst_clock([*among, *([system] if system else [])])
    if worst is None or abs(worst[0]) + worst[1] <= allowed_s * NS:
        return None
    whose = "the system's and the first driver's" if worst == system else "two drivers'"
    return (
        f"{whose} clocks differ by {worst[0] / NS:.3f} ± {worst[1] / NS:.3f} s, allowed: "
        f"{allowed_s:g} s; keep the hosts' clocks in step (NTP), or raise replay.max_clock_offset"
    )


def summary(histogram: Histogram) -> Summary:
    """Count, mean and the usual quantiles; None where nothing was counted."""
    return {
        "count": histogram.count,
        "mean": histogram.mean,
        "p50": histogram.quantile(0.5),
        "p90": histogram.quantile(0.9),
        "p95": histogram.quantile(0.95),
        "p99": histogram.quantile(0.99),
        "p99.9": histogram.quantile(0.999),
        "max": histogram.quantile(1.0),
    }


@dataclass(frozen=True)
class _Parts:
    """The parts of a trial whose latencies count, walls in ns; if answers wait for the watermark; and all latencies."""

    spans: Sequence[tuple[int, int]]
    by_watermark: bool
    latencies: list[Latencies]
    outside: Latencies


def _epoch(
    report: EpochReport,
    start_wall_ns: int,
    parts: _Parts,
    plans: Plans,
    log: dict[int, EngineBatch],
) -> Epoch:
    """Returns one point of the latency over time, and adds it to the totals of its part.

    An epoch is steady when it began within such a part, even if its last rows came out later: leaving those out
    would hide the longest waits. Cold batches, the drain, and windows that the sentinel closes are kept apart.
    log: the engine's micro-batches by number. Without it an epoch begins when its rows were offered, on average. If
    they waited for the watermark, the sentinel's may have let them out, so there it counts when they came out.
    """
    body = report["body"]
    own, other = Histogram.from_dict(body["event_latency"]), Histogram.from_dict(body["processing_latency"])
    if (longest := max(own.max or 0, other.max or 0)) > LONGEST_LATENCY_NS:
        raise ValueError(f"found a latency of {longest / NS:.4g} s, allowed: at most a year")
    walls = body.get("emitted_wall_ns") or None
    batch = log.get(report["epoch"])
    mean = body.get("emitted_mean_wall_ns") or (sum(walls) / 2 if walls else 0)
    begun = batch["at"] * NS if batch else mean - (0 if parts.by_watermark else other.mean or 0)
    within = [one for (since, end), one in zip(parts.spans, parts.latencies, strict=True) if since <= begun <= end]
    latencies = within[0] if within and walls else parts.outside
    latencies.event.merge(own)
    latencies.processing.merge(other)
    clock = body.get("clock_offset_ns")
    return {
        "epoch": report["epoch"],
        "at_s": (walls[1] - start_wall_ns) / NS if walls else None,
        "rows": body["rows"],
        "steady": latencies is not parts.outside,
        "negative": body.get("negative", 0),
        "least_ns": body.get("least_ns"),
        "checksum": body.get("checksum"),
        "clock_offset_ns": (int(clock[0]), int(clock[1])) if clock else None,
        "event_latency_ns": summary(own),
        "processing_latency_ns": summary(other),
        "latency_split_ns": plans.split(walls, mean, own, other, batch) if walls and body.get("split", True) else None,
        "batch": body.get("batch"),
    }


def _samples(seen: Sequence[DriverSamples], kind: Kind, settling_s: float) -> tuple[Sample, ...]:
    """The samples of the first process, each joined with the nearest of every other one.

    kind: `samples` has one per micro-batch, `clock` one every 100 ms. The batch that ran when the stream ended counts
    until the next one was planned; if that never came, until the end.
    """
    each = [_within(s, kind) for s in seen if s["start_wall_ns"]]
    if not each or not all(each):
        return ()
    start = min(s["start_wall_ns"] for s in seen)
    samples = []
    for wall, *own in each[0]:
        near = [own, *(nearest(other, wall) for other in each[1:])]
        age_s, backlog, taken = max(n[0] for n in near), sum(n[1] for n in near), sum(n[2] for n in near)
        at_s = (wall - start) / NS
        samples.append(Sample(at_s, age_s, int(backlog), int(taken), at_s >= settling_s))
    return tuple(samples)


def _within(observed: DriverSamples, kind: Kind) -> list[QueueSample]:
    samples, final = observed[kind], observed.get("final")
    if final is None:
        return samples
    inside = [s for s in samples if s[0] <= final[0]]
    after = samples[len(inside) : len(inside) + 1]
    if after or kind == "clock":
        return inside + after
    wall, age_s, backlog, _ = final
    return [*inside, (wall, age_s, backlog, inside[-1][3] if inside else 0)]  # what was planned last never ended


def nearest(samples: Sequence[QueueSample], wall: int) -> tuple[float, int, int]:
    """Age, backlog and rows taken of the sample nearest to that wall time."""
    at = bisect_left(samples, wall, key=lambda sample: sample[0])
    _, age_s, backlog, taken = min(samples[max(0, at - 1) : at + 1], key=lambda sample: abs(sample[0] - wall))
    return age_s, backlog, taken


def joined(before: DriverSamples, after: DriverSamples) -> DriverSamples:
    """The later status, with the samples of both; some may be in both."""
    return {
        **after,
        "samples": _longer(before["samples"], after["samples"]),
        "clock": _longer(before["clock"], after["clock"]),
    }


def _longer(before: list[QueueSample], after: list[QueueSample]) -> list[QueueSample]:
    last = before[-1][0] if before else 0
    return before + [sample for sample in after if sample[0] > last]
