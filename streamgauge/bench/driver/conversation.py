"""Talks to driver processes and system during a trial: open, ready, start, watch, stop, drain, collect.

Every wait has a limit, and every end has a reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from streamgauge.base.units import PS
from streamgauge.bench.driver.client import Connection, WireError
from streamgauge.bench.driver.figures import checked, seconds
from streamgauge.bench.driver.fleet import Drivers
from streamgauge.bench.driver.observed import TrialRun, collect, joined, observation, stepped
from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.driver.system import Adapter, Endpoint, TrialSetup, rules_of
from streamgauge.bench.driver.trial_request import TrialRequest
from streamgauge.bench.workloads import Spec
from streamgauge.records.driver import DriverFigures, DriverSamples, Observed
from streamgauge.records.rules import Rules
from streamgauge.records.trial import Details, SystemFigures

START_DELAY_NS = NS // 2
LOOK_S = 0.2
CPU_LOOK_S = 0.5  # between readings of the system's CPU time, which take some themselves
#: seconds for a system to end when its output is not checked: an overloaded one would process its queues for a minute
CUT_SHORT_S, CUT_WAIT_S = 1.0, 20.0
#: least distance from the latest time of a stream to the first one of its successor, beside the reach of windows
STRIDE_PS = 2 * PS["d"]
#: rows of a backlog that a driver process prepares in a second, with a reserve
PREPARED_PER_S = 2e6


class Ended(Exception):
    """The end of an invalid trial, with its reason."""


class _Taken(Ended):
    """Raised when another controller took our driver; later errors follow from that."""


class Conversation:
    """Talks to all driver processes and to the system during one trial."""

    def __init__(self, system: Adapter, fleet: Drivers, request: TrialRequest) -> None:
        self._system, self._fleet, self._request = system, fleet, request
        self.spans: list[tuple[int, int]] = []  # walls, ns: parts whose latencies are kept apart; none: the steady part
        self._connections: list[Connection] = []
        self._invalid: str | None = None
        self._details: Details = {"attempt": request.attempt}
        self._rules: Rules | None = None  # of the system in the trial that has begun
        self._beyond_us = 0  # least distance from the last event to the sentinel
        self._start_ns: int | None = None  # by our clock

    def run(self, begin: Callable[[], None], watch: Callable[[], None]) -> TrialRun:
        """Begins, watches and ends the trial, and collects what was seen; Ended and WireError make it invalid."""
        try:
            try:
                begin()
                watch()
            except (Ended, WireError) as problem:
                self._invalid = self.whose_fault(problem)
            figures, seen = self._collect()
        finally:
            for connection in self._connections:
                connection.close()
        return self._result(seen, figures)

    def begin(self, given: tuple[Endpoint, ...] = (), *, hold: int | None = None, stream: int = 0) -> None:
        """Opens the queues, starts the system's query, and starts the clock once the system is ready.

        given: the endpoints for the system, if they are not the fleet's own. hold: rows that a closed loop keeps
        waiting.
        """
        request, fleet = self._request, self._fleet
        spec = Spec.of(request.workload, fleet.columns, whole=True)
        self._rules = rules_of(self._system, spec)
        self._beyond_us = spec.beyond_us(self._rules)
        self._connections = [Connection(endpoint) for endpoint in fleet.endpoints]
        for connection in self._connections:
            connection.open(
                request.attempt,
                request.rate,
                request.seconds,
                hold=hold,
                behind_s=request.behind_s,
                beyond_us=self._beyond_us,
                marking=request.marking,
                stream=stream,
            )
        self._details["clock_offset_ns"] = [connection.clock_offset() for connection in self._connections]
        setup = TrialSetup(
            request.attempt, given or fleet.endpoints, request.workload, fleet.columns, fleet.tick, request.work,
            request.rate, request.marking, closed=hold is not None,
        )  # fmt: skip
        self._system.begin_trial(setup)
        self.wait("the system was not ready", request.bounds.ready_s, lambda all_: all(s["ready"] for s in all_))
        backlog = request.behind_s * request.rate / len(self._connections)
        at = time.time_ns() + START_DELAY_NS + round(backlog / PREPARED_PER_S * NS)
        for connection, (offset, _) in zip(self._connections, self._details["clock_offset_ns"], strict=True):
            connection.start(at + offset)
        self._start_ns = at
        self._mark_cpu("start")

    def watch(self) -> None:
        """Returns when the driver has offered everything, a queue overflowed, or the request's `over` is true."""
        request, over = self._request, self._request.over
        seen: list[DriverSamples] = []

        def done(all_: list[DriverFigures]) -> bool:
            nonlocal seen
            if over is not None and all_[0]["start_wall_ns"]:
                since_ns = min((one["clock"][-1][0] if one["clock"] else 0 for one in seen), default=0)
                latest = self.samples(since_ns)
                seen = [joined(*both) for both in zip(seen, latest, strict=True)] if seen else latest
                if over(observation(request, seen)):
                    return True
            return all(s["finished"] for s in all_) or any(s["state"] == "overflow" for s in all_)

        patience = request.seconds + 30 + request.behind_s * request.rate / PREPARED_PER_S
        self.wait("the driver did not finish", patience, done)
        self._mark_cpu("end")

    def hold(self, rows: int) -> None:
        """Keeps so many rows waiting, over all driver processes."""
        for connection in self._connections:
            connection.hold(rows)

    def turn_to(self, stream: int, rows: int | None) -> int:
        """Goes on with so many rows of another stream; returns the row, over all queues, from which on rows are of it.

        rows: None in an open loop, which goes on at its rate. The times of the new stream lie days beyond those of the
        one before it, in all driver processes at the same distance.
        """
        stride_ps = STRIDE_PS + self._beyond_us * PS["us"]
        first = max(status["soon"] for status in self.status()) + stride_ps // PS[self._fleet.tick]
        return sum(connection.hold(rows, stream, first) for connection in self._connections)

    def status(self) -> list[DriverFigures]:
        return [connection.status() for connection in self._connections]

    def samples(self, since_ns: int) -> list[DriverSamples]:
        """New samples of each driver process; raises Ended when something died."""
        samples = [connection.samples(since_ns) for connection in self._connections]
        self._check_alive(samples)
        self._tell(samples)
        return samples

    def stop_and_drain(self) -> None:
        """Ends the offering, and waits until everything is committed; after an overflow, until the batch has ended."""
        for connection in self._connections:
            connection.stop()
        self._drain(whole=True)

    def cut(self) -> None:
        """Ends the offering, and waits only for the running batch."""
        if self._rules is not None:
            for connection in self._connections:
                connection.stop()
            self._drain(whole=False)

    def wait(self, what: str, longest_s: float, done: Callable[[list[DriverFigures]], bool]) -> bool:
        """Returns whether `done` came true in time. Raises Ended when something died and, given a reason, for False."""
        deadline = time.monotonic() + longest_s
        while True:
            over = time.monotonic() > deadline  # before the look: a strike may take longer than what is left
            status = self.status()
            self._check_alive(status)
            self._tell(status)
            self._track_cpu()
            if done(status):
                return True
            if over:
                if what:
                    raise Ended(f"{what} within {longest_s:g} s")
                return False
            time.sleep(LOOK_S)

    def whose_fault(self, problem: Exception) -> str:
        """Names what broke, in one line. A broken connection mostly means a dead process, which shows later."""
        for _ in range(10 if isinstance(problem, WireError) else 1):
            if dead := self._fleet.dead() or (None if self._system.alive() else self._system.failure):
                return dead
            time.sleep(LOOK_S / 2)
        return str(problem)

    def _tell(self, status: Sequence[DriverFigures]) -> None:
        if self._request.progress is not None:
            self._request.progress(status)

    def _check_alive(self, status: Sequence[DriverFigures]) -> None:
        self._ours(status)
        if not self._system.alive():
            raise Ended(self._system.failure or f"the system {self._system.name} died")
        if why := self._fleet.dead() or _failure(status) or stepped(status, self._request.bounds.max_clock_offset_s):
            raise Ended(why)

    def _collect(self) -> tuple[SystemFigures, list[Observed]]:
        """The system's figures, and what each driver process saw."""
        patience = self._request.bounds.end_s if self._details.get("drained") else CUT_SHORT_S
        figures: SystemFigures = {}
        if self._rules is not None:
            self._details["rules"] = self._rules
            figures, unusable = checked(self._system.end_trial(patience), self._rules)
            self._invalid = self._invalid or unusable
            if self._system.failure and not self._system.alive():  # not each adapter tells it among its figures
                figures["failure"] = figures.get("failure") or str(self._system.failure)
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

    def _ours(self, status: Sequence[DriverFigures]) -> None:
        """Raises _Taken when a driver has another trial by now: then its answers do not concern this one."""
        for connection, one in zip(self._connections, status, strict=True):
            if one["attempt"] != self._request.attempt:
                raise _Taken(
                    f"driver {connection.endpoint.address} was given another trial in the middle of this one "
                    f"({one['attempt']}): two controllers share it"
                )

    def _drain(self, *, whole: bool) -> None:
        """Waits until everything is committed; without `whole`, or after an overflow, until the running batch ended."""

        def done(all_: list[DriverFigures]) -> bool:
            some = not whole or any(s["overflow"] for s in all_)
            self._details["drained"] = all(s["committed"] == s["offered"] for s in all_)
            return all(s["plans_after_end"] > 0 for s in all_) if some else self._details["drained"]

        self.wait("", self._request.bounds.drain_s if whole else CUT_WAIT_S, done)

    def _result(self, seen: list[Observed], figures: SystemFigures) -> TrialRun:
        offsets = self._details.get("clock_offset_ns", [])
        collected = collect(self._request, seen, figures, offsets, self.spans)
        sentinels = sum(s["partitions"] for s in seen if s["state"] == "stopped")
        offered = sum(sum(s["offered"]) for s in seen) - sentinels
        self._details["system"], self._details["drivers"] = figures, [_kept(one) for one in seen]
        self._details.update(collected.details)
        observed = observation(self._request, seen)
        invalid = _failure(seen) or self._invalid or collected.invalid  # a system fails without its driver
        observed = replace(observed, offered=offered, taken=min(offered, observed.taken), invalid=invalid)
        steady, spans = collected.spans[0], collected.spans if self.spans else []
        return TrialRun(observed, self._details, steady.event, steady.processing, tuple(one.event for one in spans))

    def _mark_cpu(self, instant: str) -> None:
        """Keeps the CPU seconds that the system has used up to now, where it can tell."""
        if (used := self._cpu_seconds()) is not None:
            self._details.setdefault("cpu_marks", {})[instant] = used

    def _track_cpu(self) -> None:
        """Keeps (seconds since the start, CPU seconds of the system), twice a second."""
        if self._start_ns is None:
            return
        at_s = (time.time_ns() - self._start_ns) / NS
        track = self._details.setdefault("cpu_track", [])
        if (not track or at_s - track[-1][0] >= CPU_LOOK_S) and (used := self._cpu_seconds()) is not None:
            track.append((round(at_s, 4), used))

    def _cpu_seconds(self) -> float | None:
        used, unusable = seconds(self._system.cpu_seconds)
        self._invalid = self._invalid or unusable
        return used


def _failure(status: Sequence[DriverFigures]) -> str | None:
    return next((f"the driver failed: {s['failure']}" for s in status if s["failure"]), None)


def _kept(observed: Observed) -> DriverFigures:
    """The figures that a trial's record keeps as they are; it has the others in another form."""
    figures = {key: value for key, value in observed.items() if key in DriverFigures.__annotations__}
    return cast("DriverFigures", figures)
