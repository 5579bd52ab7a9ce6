"""One trial: open, ready, start, watch, stop, drain, collect. Everything is bounded; every end has its reason."""

from __future__ import annotations

import time
import uuid
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from streamgauge.config import Workload
from streamgauge.driver.client import Connection, WireError
from streamgauge.driver.fleet import Drivers
from streamgauge.driver.schedule import NS, check_rate, check_seconds
from streamgauge.driver.split import Plans, batch_log, overall
from streamgauge.driver.system import SystemUnderTest, TrialSetup
from streamgauge.histogram import Histogram
from streamgauge.search.records import Batch, Sample, TrialObservation, worst_clock

START_DELAY_NS = NS // 2
LOOK_S = 0.2
#: what nobody checks need not be worked off: a system under overload would be busy with its queues for a minute
CUT_SHORT_S, CUT_WAIT_S = 1.0, 20.0
#: events/s offered in a closed loop: more than any system takes, so that what it takes decides
OVERLOAD = 1e8
LONGEST_LADDER_S, LONGEST_WINDOW_S = 3600.0, 180.0
#: rows of a backlog that a driver process prepares in a second, with a reserve
PREPARED_PER_S = 2e6
Progress = Callable[[dict[str, Any]], None]
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(frozen=True)
class Bounds:
    """How long a trial waits for what, and when it is the driver that limited it."""

    ready_s: float = 120.0
    drain_s: float = 60.0
    end_s: float = 60.0
    max_slip_s: float = 0.1
    max_clock_offset_s: float = 0.1
    settle_s: float = 0.0  # the first seconds of a trial that began with empty queues, which no verdict looks at


@dataclass(frozen=True)
class TrialRun:
    """What a verdict may look at, and everything else that was seen; latencies are those of the steady part."""

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
    behind_s: float = 0.0,
    batch_noise: float | None = None,
    over: Callable[[TrialObservation], bool] | None = None,
    beyond_us: int = 0,
    attempt: str | None = None,
    progress: Progress | None = None,
) -> TrialRun:
    """Runs one open-loop trial of a started system at `rate` events/s. Raises UserError for a bad rate or time only.

    behind_s: it begins with a backlog of that age. over: asked now and then whether what was seen is enough; `seconds`
    is the longest then. beyond_us: how far after the last event the sentinel must be. work: an empty directory for the
    system. progress is told, several times a second, what each driver process says of itself.
    """
    check_rate(rate), check_seconds(seconds)
    trial = _Trial(system, fleet, bounds or Bounds(), attempt or uuid.uuid4().hex[:12], progress)
    setup = TrialSetup(trial.attempt, fleet.endpoints, workload, fleet.columns, fleet.tick, work, rate)
    plan = _Plan(rate, seconds, behind_s, batch_noise)

    def watch() -> None:
        trial.watch(plan, over)
        trial.stop_and_drain()

    return trial.run(plan, lambda: trial.begin(setup, plan, beyond_us), watch)


class ClosedLoop:
    """A warm system that always finds so many rows waiting: a ladder of windows in one query.

    Every window begins and ends with a hand-over, so the batch that runs when its rows change belongs to none.
    """

    def __init__(
        self,
        system: SystemUnderTest,
        fleet: Drivers,
        workload: Workload,
        *,
        work: Path,
        continuous: bool,
        bounds: Bounds | None = None,
        beyond_us: int = 0,
        attempt: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._trial = _Trial(system, fleet, bounds or Bounds(), attempt or uuid.uuid4().hex[:12], progress)
        self._setup = TrialSetup(
            self._trial.attempt, fleet.endpoints, workload, fleet.columns, fleet.tick, work, OVERLOAD
        )
        self._plan = _Plan(OVERLOAD, LONGEST_LADDER_S)
        self._beyond_us, self._continuous = beyond_us, continuous
        self._begun = False
        self.invalid: str | None = None

    def window(
        self, rows: int, enough: Callable[[Sequence[Batch]], bool], longest_s: float = LONGEST_WINDOW_S
    ) -> tuple[Batch, ...]:
        """The batches of a window, up to the one after which `enough` says so; `invalid` tells why there are none."""
        try:
            if not self._begun:
                self._begun = True
                self._trial.begin(self._setup, self._plan, self._beyond_us, hold=rows)
            else:
                self._trial.hold(rows)
            return self._watch(enough, time.monotonic() + longest_s)
        except (_Ended, WireError) as problem:
            self.invalid = self._trial.whose_fault(problem)
            return ()

    def pause(self, longest_s: float = 60.0) -> None:
        """Returns once the system has ended its batch and nothing waits."""
        try:
            self._trial.hold(0)
            self._trial.wait(
                "", longest_s, lambda all_: all(s["committed"] == s["planned"] == s["offered"] for s in all_)
            )
        except (_Ended, WireError) as problem:
            self.invalid = self._trial.whose_fault(problem)

    def close(self) -> TrialRun:
        """Ends the query in the middle of whatever it does; what it answered is checked by nobody."""
        return self._trial.run(self._plan, lambda: None, self._trial.cut)

    def _watch(self, enough: Callable[[Sequence[Batch]], bool], deadline: float) -> tuple[Batch, ...]:
        since = max(status["wall_ns"] for status in self._trial.status())
        seen: list[tuple[int, int]] = []  # (wall, rows taken before), of the first driver process's instants
        while time.monotonic() < deadline:
            told = self._trial.samples(since)
            each = [s["clock" if self._continuous else "samples"] for s in told]
            if each and all(each):
                seen += [(wall, sum(_nearest(other, wall)[2] for other in each)) for wall, *_ in each[0]]
                since = seen[-1][0]
            batches = self._batches(seen, min(s["start_wall_ns"] for s in told))
            if enough(batches):
                return batches
            time.sleep(LOOK_S / 2)
        raise _Ended(f"a window of {len(seen)} hand-overs was not long enough within {LONGEST_WINDOW_S:g} s")

    def _batches(self, seen: Sequence[tuple[int, int]], start_ns: int) -> tuple[Batch, ...]:
        """One batch between each two instants."""
        pairs = pairwise(seen)
        found = [Batch((b[0] - start_ns) / NS, b[1] - a[1], (b[0] - a[0]) / NS) for a, b in pairs]
        return tuple(batch for batch in found if batch.rows > 0 or self._continuous)


@dataclass(frozen=True)
class _Plan:
    rate: float
    seconds: float
    behind_s: float = 0.0
    batch_noise: float | None = None


class _Taken(_Ended):
    """Another controller took our driver; later errors follow from that."""


class _Trial:
    def __init__(
        self, system: SystemUnderTest, fleet: Drivers, bounds: Bounds, attempt: str, progress: Progress | None
    ) -> None:
        self.attempt = attempt
        self._system, self._fleet, self._bounds, self._progress = system, fleet, bounds, progress
        self._connections: list[Connection] = []
        self._invalid: str | None = None
        self._details: dict[str, Any] = {"attempt": attempt}
        self._begun = False

    def run(self, plan: _Plan, begin: Callable[[], None], watch: Callable[[], None]) -> TrialRun:
        """Begins, watches, ends and collects; whatever breaks on the way makes the trial invalid."""
        try:
            try:
                begin()
                watch()
            except (_Ended, WireError) as problem:
                self._invalid = self.whose_fault(problem)
            figures, seen = self._collect()
        finally:
            for connection in self._connections:
                connection.close()
        return self._result(plan, seen, figures)

    def begin(self, setup: TrialSetup, plan: _Plan, beyond_us: int, hold: int | None = None) -> None:
        """Opens the queues, starts the system's query, and starts the clock once the system is ready."""
        self._connections = [Connection(endpoint) for endpoint in setup.endpoints]
        for connection in self._connections:
            connection.open(
                self.attempt, plan.rate, plan.seconds, hold=hold, behind_s=plan.behind_s, beyond_us=beyond_us
            )
        self._details["clock_offset_ns"] = [connection.clock_offset() for connection in self._connections]
        self._begun = True
        self._system.begin_trial(setup)
        self.wait("the system was not ready", self._bounds.ready_s, lambda all_: all(s["ready"] for s in all_))
        backlog = plan.behind_s * plan.rate / len(self._connections)
        at = time.time_ns() + START_DELAY_NS + round(backlog / PREPARED_PER_S * NS)
        for connection, (offset, _) in zip(self._connections, self._details["clock_offset_ns"], strict=True):
            connection.start(at + offset)
        self._mark_cpu("start")

    def watch(self, plan: _Plan, over: Callable[[TrialObservation], bool] | None) -> None:
        """Returns when the driver has offered everything, a queue overflowed, or `over` has seen enough."""
        seen: list[dict[str, Any]] = []

        def done(all_: list[dict[str, Any]]) -> bool:
            if over is not None and all_[0]["start_wall_ns"]:
                told = self.samples(max((s[0] for s in seen[0]["clock"]), default=0) if seen else 0)
                if not seen:
                    seen.extend({**one, "final": None} for one in told)
                else:
                    for one, new in zip(seen, told, strict=True):
                        one["clock"], one["samples"] = one["clock"] + new["clock"], one["samples"] + new["samples"]
                if over(self._observation(plan, seen)):
                    return True
            return all(s["finished"] for s in all_) or any(s["state"] == "overflow" for s in all_)

        patience = plan.seconds + 30 + plan.behind_s * plan.rate / PREPARED_PER_S
        self.wait("the driver did not finish", patience, done)
        self._mark_cpu("end")

    def hold(self, rows: int) -> None:
        """Keeps so many rows waiting, over all driver processes."""
        for connection in self._connections:
            connection.hold(rows)

    def status(self) -> list[dict[str, Any]]:
        """What each driver process says of itself."""
        return [connection.status() for connection in self._connections]

    def samples(self, since_ns: int) -> list[dict[str, Any]]:
        """New samples of each driver process; raises _Ended when something died."""
        told = [connection.samples(since_ns) for connection in self._connections]
        self._check_alive(told)
        if self._progress is not None:
            self._progress({"attempt": self.attempt, "drivers": told})
        return told

    def stop_and_drain(self) -> None:
        """Ends the offering, and waits until everything is committed; after an overflow, until the batch has ended."""
        for connection in self._connections:
            connection.stop()
        self._drain(whole=True)

    def cut(self) -> None:
        """Ends the offering, and waits for the running batch alone."""
        if self._begun:
            for connection in self._connections:
                connection.stop()
            self._drain(whole=False)

    def wait(self, what: str, longest_s: float, done: Callable[[list[dict[str, Any]]], bool]) -> bool:
        """Looks until done. Raises _Ended when something died or, given a reason, when the time is over."""
        deadline = time.monotonic() + longest_s
        while True:
            status = self.status()
            self._check_alive(status)
            if self._progress is not None:
                self._progress({"attempt": self.attempt, "drivers": status})
            if done(status):
                return True
            if time.monotonic() > deadline:
                if what:
                    raise _Ended(f"{what} within {longest_s:g} s")
                return False
            time.sleep(LOOK_S)

    def whose_fault(self, problem: Exception) -> str:
        """One line that names what broke: a broken connection is most often a dead process, which shows a moment later."""
        for _ in range(10 if isinstance(problem, WireError) else 1):
            if dead := self._fleet.dead() or (None if self._system.alive() else self._system.failure):
                return dead
            time.sleep(LOOK_S / 2)
        return str(problem)

    def _check_alive(self, status: Sequence[dict[str, Any]]) -> None:
        self._ours(status)
        if not self._system.alive():
            raise _Ended(self._system.failure or f"the system {self._system.name} died")
        if dead := self._fleet.dead() or _failure(status):
            raise _Ended(dead)

    def _collect(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The system's figures, and what each driver process saw."""
        patience = self._bounds.end_s if self._details.get("drained") else CUT_SHORT_S
        figures = self._system.end_trial(patience) if self._begun else {}
        self._mark_cpu("drained")
        try:
            seen = [connection.observe() for connection in self._connections]
            self._ours(seen)
            return figures, seen
        except _Taken as problem:
            self._invalid = str(problem)
        except WireError as problem:
            self._invalid = self._invalid or self.whose_fault(problem)
        return figures, []

    def _ours(self, status: Sequence[dict[str, Any]]) -> None:
        """Raises _Taken when a driver has another trial by now: nothing that it says is of this one."""
        for connection, told in zip(self._connections, status, strict=True):
            if told["attempt"] != self.attempt:
                raise _Taken(
                    f"driver {connection.endpoint.address} was given another trial in the middle of this one "
                    f"({told['attempt']}): two controllers share it"
                )

    def _drain(self, *, whole: bool) -> None:
        """Waits until everything is committed; without `whole`, or after an overflow, until the running batch ended."""

        def done(all_: list[dict[str, Any]]) -> bool:
            some = not whole or any(s["overflow"] for s in all_)
            self._details["drained"] = all(s["committed"] == s["offered"] for s in all_)
            return all(s["batches_after_end"] > 0 for s in all_) if some else self._details["drained"]

        self.wait("", self._bounds.drain_s if whole else CUT_WAIT_S, done)

    def _result(self, plan: _Plan, seen: list[dict[str, Any]], figures: dict[str, Any]) -> TrialRun:
        slip, steady, outside = Histogram(), Latencies(), Latencies()
        epochs: list[dict[str, Any]] = []
        log = batch_log(figures)
        for observed in seen:
            plans = Plans(observed["samples"])
            slip.merge(Histogram.from_dict(observed["slip"]))
            for report in observed["reports"]:
                try:
                    begin, end = observed["start_wall_ns"], (observed["final"] or [2**63])[0]
                    since = begin + round(self._settling_s(plan) * NS)
                    epochs.append(_epoch(report, begin, (since, end), plans, log, steady, outside))
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
        observation = self._observation(plan, seen)
        offered = sum(sum(s["offered"]) for s in seen) - sentinels
        self._details |= {
            "system": figures,
            "system_clock_offset_ns": host,
            "drivers": [
                {k: v for k, v in s.items() if k not in ("samples", "clock", "reports", "slip", "ok")} for s in seen
            ],
            "slip_ns": summary(slip),
            "emitted": sum(epoch["rows"] for epoch in epochs),
            "negative_latencies": sum(epoch["negative"] for epoch in epochs),
            "epochs": epochs,
            "event_latency_ns": summary(steady.event),
            "processing_latency_ns": summary(steady.processing),
            "outside_event_latency_ns": summary(outside.event),
            "latency_split_ns": overall(
                (epoch["rows"], epoch["latency_split_ns"]) for epoch in epochs if epoch["steady"]
            ),
        }
        observation = replace(
            observation, offered=offered, taken=min(offered, observation.taken), invalid=self._invalid
        )
        return TrialRun(observation, self._details, steady.event, steady.processing)

    def _observation(self, plan: _Plan, seen: list[dict[str, Any]]) -> TrialObservation:
        settling = self._settling_s(plan)
        return TrialObservation(
            plan.rate,
            plan.seconds,
            _samples(seen, "samples", settling),
            sum(sum(s["offered"]) for s in seen),
            sum(sum(s["planned"]) for s in seen),
            any(s["overflow"] for s in seen) and not any(s["hold"] for s in seen),
            clock=_samples(seen, "clock", settling),
            behind_s=plan.behind_s,
            batch_noise=plan.batch_noise,
        )

    def _settling_s(self, plan: _Plan) -> float:
        """The first seconds that are left out: not of a trial that begins behind, nor over a quarter of a short one."""
        return 0.0 if plan.behind_s else min(self._bounds.settle_s, plan.seconds / 4)

    def _mark_cpu(self, instant: str) -> None:
        """Keeps the CPU seconds that the system has used up to now, where it can tell."""
        used = getattr(self._system, "cpu_seconds", lambda: None)()
        if used is not None:
            self._details.setdefault("cpu_marks", {})[instant] = used

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


@dataclass
class Latencies:
    """Histograms of one part of a trial, ns."""

    event: Histogram = field(default_factory=Histogram)
    processing: Histogram = field(default_factory=Histogram)


def _epoch(
    report: dict[str, Any],
    start_wall_ns: int,
    steady_part: tuple[int, int],
    plans: Plans,
    log: dict[int, dict[str, Any]],
    steady: Latencies,
    outside: Latencies,
) -> dict[str, Any]:
    """One point of the latency over time; adds it to the totals of its part.

    An epoch is steady when it began within the steady part, be it that its last rows came out later: to leave those out
    would hide the longest waits. Told apart are cold batches, the drain, and windows that the sentinel closes early. log:
    the engine's micro-batches by number; without it an epoch begins when its rows were offered, in the mean.
    """
    body = report["body"]
    own, other = Histogram.from_dict(body["event_latency"]), Histogram.from_dict(body["processing_latency"])
    walls = body.get("emitted_wall_ns") or None
    batch = log.get(report["epoch"])
    mean = body.get("emitted_mean_wall_ns") or (sum(walls) / 2 if walls else 0)
    begun = batch["at"] * NS if batch else mean - (other.mean or 0)
    within = bool(walls) and steady_part[0] <= begun <= steady_part[1]
    part = steady if within else outside
    part.event.merge(own)
    part.processing.merge(other)
    clock = body.get("clock_offset_ns")
    return {
        "epoch": report["epoch"],
        "at_s": (walls[1] - start_wall_ns) / NS if walls else None,
        "rows": body["rows"],
        "steady": within,
        "negative": body["negative"],
        "checksum": body.get("checksum"),
        "clock_offset_ns": (int(clock[0]), int(clock[1])) if clock else None,
        "event_latency_ns": summary(own),
        "processing_latency_ns": summary(other),
        "latency_split_ns": plans.split(walls, mean, own, other, batch) if walls else None,
        "batch": body.get("batch", {}),
    }


def _samples(seen: Sequence[dict[str, Any]], kind: str, settling_s: float) -> tuple[Sample, ...]:
    """The samples of the first process, each joined with the nearest of every other one.

    kind: `samples` has one per micro-batch, `clock` one every 100 ms. The batch that ran when the stream ended counts
    until the next one was planned; if that never came, until the end.
    """
    each = [_within(s, kind) for s in seen if s["start_wall_ns"]]
    if not each or not all(each):
        return ()
    start = min(s["start_wall_ns"] for s in seen)
    joined = []
    for wall, *own in each[0]:
        near = [own, *(_nearest(other, wall) for other in each[1:])]
        age, backlog, taken = max(n[0] for n in near), sum(n[1] for n in near), sum(n[2] for n in near)
        at_s = (wall - start) / NS
        joined.append(Sample(at_s, age, int(backlog), int(taken), at_s >= settling_s))
    return tuple(joined)


def _within(observed: dict[str, Any], kind: str) -> list[list[Any]]:
    samples: list[list[Any]] = observed[kind]
    final = observed["final"]
    if final is None:
        return samples
    inside = [s for s in samples if s[0] <= final[0]]
    after = samples[len(inside) : len(inside) + 1]
    if after or kind == "clock":
        return inside + after
    stuck = [*final[:3], inside[-1][3] if inside else 0]  # what was planned last never ended
    return [*inside, stuck]


def _nearest(samples: list[list[Any]], wall: int) -> list[Any]:
    at = bisect_left(samples, wall, key=lambda sample: sample[0])
    close = samples[max(0, at - 1) : at + 1]
    found: list[Any] = min(close, key=lambda sample: abs(sample[0] - wall))[1:]
    return found
