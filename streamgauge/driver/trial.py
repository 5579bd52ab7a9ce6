"""One trial: open, ready, start, watch, stop, drain, collect. Everything is bounded; every end has its reason."""

from __future__ import annotations

import time
import uuid
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.config import Workload
from streamgauge.driver.client import Connection, WireError
from streamgauge.driver.fleet import Drivers
from streamgauge.driver.schedule import NS, check_rate, check_seconds
from streamgauge.driver.split import Plans, batch_log, overall
from streamgauge.driver.system import SystemUnderTest, TrialSetup
from streamgauge.histogram import Histogram
from streamgauge.trial import Sample, TrialObservation, worst_clock

START_DELAY_NS = NS // 2
LOOK_S = 0.2
#: what nobody checks need not be worked off: a system under overload would be busy with its queues for a minute
CUT_SHORT_S = 1.0
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(frozen=True)
class Bounds:
    """How long a trial waits for what, and when it is the driver that limited it."""

    ready_s: float = 120.0
    drain_s: float = 60.0
    end_s: float = 60.0
    max_slip_s: float = 0.1
    max_clock_offset_s: float = 0.1
    warmup_batches: int = 3


@dataclass(frozen=True)
class TrialRun:
    """What a verdict may look at, and everything else that was seen."""

    observation: TrialObservation
    details: dict[str, Any]
    event_latency: Histogram
    processing_latency: Histogram


class _Ended(Exception):
    """The trial is invalid, for this reason."""


def run_trial(
    system: SystemUnderTest,
    fleet: Drivers,
    workload: Workload,
    *,
    rate: float,
    seconds: float,
    work: Path,
    bounds: Bounds | None = None,
    hold: bool | int = False,
    beyond_us: int = 0,
    warm_up: bool = False,
    attempt: str | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> TrialRun:
    """Runs one trial of a started system at `rate` events/s. Raises UserError for a bad rate or time only.

    hold: a probe; full queues, of so many rows if it is a number, hold the stream back instead of ending it.
    beyond_us: how far after the last event the sentinel must be. work: an empty directory for the system. warm_up: it counts for nothing. progress is told, several times a second, what each driver process says of itself.
    """
    check_rate(rate), check_seconds(seconds)
    trial = _Trial(system, fleet, bounds or Bounds(), attempt or uuid.uuid4().hex[:12], progress, beyond_us)
    setup = TrialSetup(trial.attempt, fleet.endpoints, workload, fleet.columns, fleet.tick, work, rate, warm_up)
    return trial.run(setup, rate, seconds, hold)


class _Taken(_Ended):
    """By another controller, which explains whatever else broke."""


class _Trial:
    def __init__(
        self,
        system: SystemUnderTest,
        fleet: Drivers,
        bounds: Bounds,
        attempt: str,
        progress: Callable[[dict[str, Any]], None] | None,
        beyond_us: int,
    ) -> None:
        self.attempt = attempt
        self._system, self._fleet, self._bounds, self._progress = system, fleet, bounds, progress
        self._beyond_us = beyond_us
        self._connections: list[Connection] = []
        self._invalid: str | None = None
        self._details: dict[str, Any] = {"attempt": attempt}

    def run(self, setup: TrialSetup, rate: float, seconds: float, hold: bool | int) -> TrialRun:
        try:
            figures, seen = self._measure(setup, rate, seconds, hold)
        finally:
            for connection in self._connections:
                connection.close()
        return self._result(rate, seconds, seen, figures)

    def _measure(
        self, setup: TrialSetup, rate: float, seconds: float, hold: bool | int
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The system's figures, and what each driver process saw."""
        begun = False
        try:
            self._connections = [Connection(endpoint) for endpoint in setup.endpoints]
            for connection in self._connections:
                connection.open(self.attempt, rate, seconds, hold=hold, beyond_us=self._beyond_us)
            self._details["clock_offset_ns"] = [connection.clock_offset() for connection in self._connections]
            begun = True
            self._system.begin_trial(setup)
            self._wait("the system was not ready", self._bounds.ready_s, lambda all_: all(s["ready"] for s in all_))
            at = time.time_ns() + START_DELAY_NS
            for connection, (offset, _) in zip(self._connections, self._details["clock_offset_ns"], strict=True):
                connection.start(at + offset)
            self._wait(
                "the driver did not finish",
                seconds + 30,
                lambda all_: all(s["finished"] for s in all_) or any(s["state"] == "overflow" for s in all_),
            )
            for connection in self._connections:
                connection.stop()
            self._drain(whole=not hold)
        except (_Ended, WireError) as problem:
            self._invalid = self._whose_fault(problem)
        patience = self._bounds.end_s if self._details.get("drained") else CUT_SHORT_S
        figures = self._system.end_trial(patience) if begun else {}
        try:
            seen = [connection.observe() for connection in self._connections]
            self._ours(seen)
            return figures, seen
        except _Taken as problem:
            self._invalid = str(problem)
        except WireError as problem:
            self._invalid = self._invalid or self._whose_fault(problem)
        return figures, []

    def _wait(self, what: str, longest_s: float, done: Callable[[list[dict[str, Any]]], bool]) -> bool:
        """Looks until done. Raises _Ended when something died or, given a reason, when the time is over."""
        deadline = time.monotonic() + longest_s
        while True:
            status = [connection.status() for connection in self._connections]
            self._ours(status)
            if self._progress is not None:
                self._progress({"attempt": self.attempt, "drivers": status})
            if done(status):
                return True
            if not self._system.alive():
                raise _Ended(self._system.failure or f"the system {self._system.name} died")
            if dead := self._fleet.dead() or _failure(status):
                raise _Ended(dead)
            if time.monotonic() > deadline:
                if what:
                    raise _Ended(f"{what} within {longest_s:g} s")
                return False
            time.sleep(LOOK_S)

    def _ours(self, status: Sequence[dict[str, Any]]) -> None:
        """Raises _Taken when a driver has another trial by now: nothing that it says is of this one."""
        for connection, told in zip(self._connections, status, strict=True):
            if told["attempt"] != self.attempt:
                raise _Taken(
                    f"driver {connection.endpoint.address} was given another trial in the middle of this one "
                    f"({told['attempt']}): two controllers share it"
                )

    def _drain(self, *, whole: bool) -> None:
        """Until everything is committed; a probe, or a trial that overflowed, only until its running batch has ended."""

        def done(all_: list[dict[str, Any]]) -> bool:
            some = not whole or any(s["overflow"] for s in all_)
            self._details["drained"] = all(s["committed"] == s["offered"] for s in all_)
            return all(s["batches_after_end"] > 0 for s in all_) if some else self._details["drained"]

        self._wait("", self._bounds.drain_s, done)

    def _whose_fault(self, problem: Exception) -> str:
        """A broken connection is most often a dead process, which shows a moment later: name it."""
        for _ in range(10 if isinstance(problem, WireError) else 1):
            if dead := self._fleet.dead() or (None if self._system.alive() else self._system.failure):
                return dead
            time.sleep(LOOK_S / 2)
        return str(problem)

    def _result(self, rate: float, seconds: float, seen: list[dict[str, Any]], figures: dict[str, Any]) -> TrialRun:
        slip, event, processing = Histogram(), Histogram(), Histogram()
        epochs: list[dict[str, Any]] = []
        log = batch_log(figures)
        for observed in seen:
            plans = Plans(observed["samples"])
            slip.merge(Histogram.from_dict(observed["slip"]))
            for report in observed["reports"]:
                try:
                    epochs.append(_epoch(report, observed["start_wall_ns"], plans, log, event, processing))
                except (ValueError, KeyError, TypeError, IndexError) as problem:
                    self._invalid = self._invalid or f"the report of epoch {report['epoch']} is unusable: {problem!r}"
        slipped_s = (slip.quantile(0.99) or 0) / NS
        if self._invalid is None and slipped_s > self._bounds.max_slip_s:
            self._invalid = (
                f"the driver limited this trial: its schedule slipped by {slipped_s:.3f} s (p99), allowed: "
                f"{self._bounds.max_slip_s:g} s; lower the rate, or give the driver more processes or a CPU of its own"
            )
        host = worst_clock(epoch["clock_offset_ns"] for epoch in epochs if epoch["clock_offset_ns"])
        self._invalid = self._invalid or self._apart(host)
        sentinels = sum(s["partitions"] for s in seen if s["state"] == "stopped")
        samples = _samples(seen, self._bounds.warmup_batches)
        offered = sum(sum(s["offered"]) for s in seen) - sentinels
        self._details |= {
            "system": figures,
            "system_clock_offset_ns": host,
            "drivers": [{k: v for k, v in s.items() if k not in ("samples", "reports", "slip", "ok")} for s in seen],
            "slip_ns": summary(slip),
            "emitted": sum(epoch["rows"] for epoch in epochs),
            "negative_latencies": sum(epoch["negative"] for epoch in epochs),
            "epochs": epochs,
            "event_latency_ns": summary(event),
            "processing_latency_ns": summary(processing),
            "latency_split_ns": overall((epoch["rows"], epoch["latency_split_ns"]) for epoch in epochs),
        }
        taken = min(offered, sum(sum(s["planned"]) for s in seen))
        overflow = any(s["overflow"] for s in seen)
        observation = TrialObservation(rate, seconds, samples, offered, taken, overflow, self._invalid)
        return TrialRun(observation, self._details, event, processing)

    def _apart(self, host: tuple[int, int] | None) -> str | None:
        """Why the clocks that stamp offers and emissions are not in step: a latency would be wrong by as much."""
        first, *others = self._details.get("clock_offset_ns") or [(0, 0)]
        among = [(offset - first[0], error + first[1]) for offset, error in others]
        worst = worst_clock([*among, *([host] if host else [])])
        if worst is None or abs(worst[0]) + worst[1] <= self._bounds.max_clock_offset_s * NS:
            return None
        whose = "the system's and the first driver's" if worst == host else "two drivers'"
        return (
            f"{whose} clocks differ by {worst[0] / NS:.3f} ± {worst[1] / NS:.3f} s, allowed: "
            f"{self._bounds.max_clock_offset_s:g} s; keep the hosts' clocks in step (NTP), or raise replay.max_clock_offset"
        )


def _failure(status: Sequence[dict[str, Any]]) -> str | None:
    return next((f"the driver failed: {s['failure']}" for s in status if s["failure"]), None)


def summary(histogram: Histogram) -> dict[str, Any]:
    """Count, mean and the usual quantiles; None where nothing was counted."""
    quantiles = {name: histogram.quantile(q) for name, q in QUANTILES.items()}
    return {"count": histogram.count, "mean": histogram.mean, **quantiles}


def _epoch(
    report: dict[str, Any],
    start_wall_ns: int,
    plans: Plans,
    log: dict[int, dict[str, Any]],
    event: Histogram,
    processing: Histogram,
) -> dict[str, Any]:
    """One point of the latency over time; adds it to the totals. log: the engine's micro-batches by number."""
    body = report["body"]
    own, other = Histogram.from_dict(body["event_latency"]), Histogram.from_dict(body["processing_latency"])
    event.merge(own)
    processing.merge(other)
    walls = body.get("emitted_wall_ns") or None
    clock = body.get("clock_offset_ns")
    mean = body.get("emitted_mean_wall_ns") or (sum(walls) / 2 if walls else 0)
    return {
        "epoch": report["epoch"],
        "at_s": (walls[1] - start_wall_ns) / NS if walls else None,
        "rows": body["rows"],
        "negative": body["negative"],
        "checksum": body.get("checksum"),
        "clock_offset_ns": (int(clock[0]), int(clock[1])) if clock else None,
        "event_latency_ns": summary(own),
        "processing_latency_ns": summary(other),
        "latency_split_ns": plans.split(walls, mean, own, other, log.get(report["epoch"])) if walls else None,
        "batch": body.get("batch", {}),
    }


def _samples(seen: Sequence[dict[str, Any]], warmup: int) -> tuple[Sample, ...]:
    """One sample per micro-batch: those of the first process, joined with the nearest of every other one.

    The batch that ran when the stream ended counts until the next one was planned; if that never came, until the end.
    """
    each = [_within(s) for s in seen if s["start_wall_ns"]]
    if not each or not all(each):
        return ()
    start = min(s["start_wall_ns"] for s in seen)
    joined = []
    for number, (wall, *own) in enumerate(each[0]):
        near = [own, *(_nearest(other, wall) for other in each[1:])]
        age, backlog, taken = max(n[0] for n in near), sum(n[1] for n in near), sum(n[2] for n in near)
        joined.append(Sample((wall - start) / NS, age, int(backlog), int(taken), number >= warmup))
    return tuple(joined)


def _within(observed: dict[str, Any]) -> list[list[Any]]:
    samples: list[list[Any]] = observed["samples"]
    final = observed["final"]
    if final is None:
        return samples
    inside = [s for s in samples if s[0] <= final[0]]
    after = samples[len(inside) : len(inside) + 1]
    if after:
        return inside + after
    stuck = [*final[:3], inside[-1][3] if inside else 0]  # what was planned last never ended
    return [*inside, stuck]


def _nearest(samples: list[list[Any]], wall: int) -> list[Any]:
    at = bisect_left(samples, wall, key=lambda sample: sample[0])
    close = samples[max(0, at - 1) : at + 1]
    found: list[Any] = min(close, key=lambda sample: abs(sample[0] - wall))[1:]
    return found
