"""The driver: a process's queues, the thread that fills them ahead of the clock, and the actions of the verbs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import psutil
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS
from streamgauge.bench.driver import requests
from streamgauge.bench.driver.attempt import Attempt, schedule_of
from streamgauge.bench.driver.clock import Clock
from streamgauge.bench.driver.marking import Marking
from streamgauge.bench.driver.queues import Queues, fitting_rows
from streamgauge.bench.driver.replay import DAY_PS, Feed, Replay, Stream
from streamgauge.bench.driver.schedule import NS, check_rate, check_seconds, schedule
from streamgauge.bench.driver.server import Answer, Refused
from streamgauge.bench.driver.serving import Serving
from streamgauge.records.driver import DriverStatus

CLOCK_NS = 100_000_000  # between samples by the clock
TICK_NS = 10_000_000  # between comparisons of the clock with the schedule
LOOKAHEAD_NS = 300_000_000  # how long before they are due rows are prepared
BATCH_SECONDS = 0.1
MAX_BATCH_ROWS = 65_536
MAX_REPORTS = 100_000
MAX_WAIT_S = 10.0
LEAST_CAPACITY = 1000


class Driver:
    """The wire's handler (`server.Handler`) of one stream, or of several that take turns.

    It serves partitions share[0], share[0] + share[1], … of replay.partitions.
    """

    def __init__(
        self,
        stream: Stream,
        serving: Serving,
        *,
        others: Sequence[Stream] = (),
        share: tuple[int, int] = (0, 1),
        horizon_ps: int = DAY_PS,
        clock: Clock | None = None,
    ) -> None:
        self._replays = [Replay(one) for one in (stream, *others)]
        self.serving, self._horizon_ps, self._peak_bytes = serving, horizon_ps, 0
        self.partitions = range(share[0], serving.partitions, share[1])
        self._process, self._clock, self._lock = psutil.Process(), clock or Clock(), threading.RLock()
        self._attempt: Attempt | None = None
        for one in self._replays:
            one.split(self.partitions, serving.partitions)
        # a process's first batch loads code: make it now, not within a trial
        Feed(self._replays[0], schedule(1, 1, self._replays[0].loop), 0, 0, 1).next_batch(1)
        #: set by process.py: closes the connections of other attempts
        self.drop_others: Callable[[str], None] = lambda _name: None

    def about(self) -> Answer:
        """Returns the sizes of what is replayed: a stream that is too large is cut to a prefix, which loops."""
        stream = self._replays[0].stream
        return {
            "rows": stream.table.num_rows,
            "rows_in_artifact": stream.rows_in_artifact,
            "truncated": stream.truncated,
            "stream_bytes": stream.table.nbytes,
        }

    def end(self) -> None:
        if self._attempt is not None:
            self._end(self._attempt, self._clock.wall())

    # -- server.Handler

    @property
    def schema(self) -> pa.Schema:
        return self._replays[0].stream.schema

    def hello(self) -> Answer:
        attempt = "" if self._attempt is None else self._attempt.name
        return {"partitions": len(self.partitions), "attempt": attempt, "serves": self.serving.to_json()}

    def read(self, request: requests.Read) -> list[pa.RecordBatch]:
        queues, partition, start = self._current().queues, request.partition, request.start
        if request.to is not None:
            return queues.read(partition, start, request.to, self._clock.wall())
        deadline = time.monotonic() + min(MAX_WAIT_S, request.wait_ms / 1000)
        while (nap := queues.wait(partition, start, self._clock.wall(), deadline - time.monotonic())) is not None:
            queues.pause(nap)
        rows = 2**20 if request.max_rows is None else request.max_rows
        return queues.read_offered(partition, start, rows, self._clock.wall())

    def answer(self, request: requests.Request) -> Answer:
        match request:
            case requests.Latest():
                return self._latest()
            case requests.Commit():
                self._current().queues.commit(request.rows, self._clock.wall())
            case requests.Planned():
                self._current().queues.plan(request.rows, self._clock.wall())
            case requests.Report():
                self._report(request)
            case requests.Ready():
                self._named(request).ready = True
            case requests.Open():
                return self._open(request)
            case requests.Start():
                return self._start(request)
            case requests.Hold():
                return self._hold(request)
            case requests.Samples():
                return self._samples(request.since_ns)
            case requests.Stop():
                self._end(self._current(), self._clock.wall())
            case requests.Status():
                return {**self._status(), "reports": len(self._current().reports)}
            case requests.Observe():
                with self._lock:
                    return {**self._status(), **self._current().observed(request.first)}
            case _:
                raise Refused(
                    f"verb: found {request.verb!r}, allowed: {', '.join(v for v in requests.VERBS if v != 'serve')}"
                )
        return {}

    def refused(self, why: str) -> None:
        if self._attempt is not None and self._attempt.refused is None:
            self._attempt.refused = why

    # -- what a system says

    def _latest(self) -> Answer:
        queues, now = self._current().queues, self._clock.wall()
        return {"rows": queues.latest(now), "finished": queues.finished, "wall_ns": now}

    def _report(self, request: requests.Report) -> None:
        reports = self._named(request).reports
        if len(reports) >= MAX_REPORTS and request.epoch not in reports:
            raise Refused(f"more than {MAX_REPORTS} reports; report less often")
        reports[request.epoch] = request.body

    # -- what the controller says

    def _open(self, request: requests.Open) -> Answer:
        rate, seconds, settings = check_rate(request.rate), check_seconds(request.seconds), self.serving
        fits = fitting_rows(settings.max_memory_mb)
        behind_s = check_seconds(request.behind_s) if request.behind_s else 0.0
        replay = self._replay_of(request.stream)
        share = replay.share(self.partitions, settings.partitions)
        plan = schedule_of(settings, replay, rate, seconds, behind_s)
        capacity = max(LEAST_CAPACITY, min(fits, math.ceil((settings.queue_seconds + behind_s) * rate * share)))
        hold = None if request.hold is None else math.ceil(request.hold * share)
        marking = Marking(tuple(request.ids), request.round)
        try:
            ids = replay.ids(marking.columns)
        except UserError as problem:
            raise Refused(str(problem)) from None
        lap_rows = tuple(replay.part(p, settings.partitions).num_rows for p in self.partitions)
        with self._lock:
            if self._attempt is not None:
                self._end(self._attempt, self._clock.wall())
            queues = Queues(
                len(self.partitions), capacity, memory_rows=max(fits, 2 * LEAST_CAPACITY), hold=hold,
                shares=[replay.share([p], settings.partitions) / share for p in self.partitions],
            )  # fmt: skip
            horizon = max(self._horizon_ps, request.beyond_us * PS["us"])
            self._attempt = Attempt(
                request.attempt, rate * share, seconds, plan, queues, replay, self.partitions, settings.partitions,
                share, request.stream, hold is not None, behind_s, marking=marking, ids=ids, lap_rows=lap_rows,
                horizon_ps=horizon, clock=self._clock,
            )  # fmt: skip
        self.drop_others(request.attempt)
        return {"wall_ns": self._clock.wall()}

    def _start(self, request: requests.Start) -> Answer:
        attempt, now = self._current(), self._clock.wall()
        at = now + LOOKAHEAD_NS if request.start_wall_ns is None else request.start_wall_ns
        # a backlog takes a while to prepare
        latest = now + 60 * NS + round(attempt.behind_s * attempt.rate / 1e6 * NS)
        if not now - NS < at < latest:
            raise Refused(
                f"start_wall_ns: found {at}, allowed: within a minute from {now}; "
                "check that the hosts' clocks are synchronised"
            )
        with self._lock:
            if attempt.state != "open":
                raise Refused(f"start: this trial is {attempt.state} already")
            attempt.state, attempt.start_wall_ns = "started", at
            attempt.queues.from_ns, attempt.queues.until_ns = at, at + round(attempt.seconds * NS)
            attempt.cpu_begin_s = time.process_time()
            attempt.feed(at - round(attempt.behind_s * NS))
        threading.Thread(target=self._keep_pace, args=(attempt,), name="pace", daemon=True).start()
        return {"start_wall_ns": at}

    def _hold(self, request: requests.Hold) -> Answer:
        """Keeps rows waiting, or goes on at the rate, with that stream; returns its first row, over all queues."""
        attempt, number = self._current(), request.stream
        if request.rows is not None:
            attempt.queues.hold(math.ceil(request.rows * attempt.share))
        if number is not None and number != attempt.stream:
            if request.first <= (latest := attempt.latest):
                raise Refused(
                    f"first: found {request.first}, allowed: above {latest}, the latest time that was offered"
                )
            attempt.turn_to(self._replay_of(number), number, self.serving, request.first)
        return {"from": attempt.stream_from}

    def _replay_of(self, number: int) -> Replay:
        if not 0 <= number < len(self._replays):
            raise Refused(f"stream: found {number}, allowed: 0 to {len(self._replays) - 1}")
        return self._replays[number]

    def _samples(self, since_ns: int) -> Answer:
        """Returns the status, and the samples taken after that instant: one per hand-over, and those by the clock."""
        queues = self._current().queues
        return {
            **self._status(),
            "samples": [sample for sample in list(queues.samples) if sample.wall_ns > since_ns],
            "clock": [sample for sample in list(queues.clock) if sample.wall_ns > since_ns],
        }

    def _status(self) -> DriverStatus:
        attempt, memory = self._current(), self._process.memory_info().rss
        self._peak_bytes = max(self._peak_bytes, memory)
        return attempt.status(fitting_rows(self.serving.max_memory_mb), memory, self._peak_bytes)

    # -- the clock

    def _keep_pace(self, attempt: Attempt) -> None:
        try:
            self._pace(attempt)
        except Exception as problem:  # nobody watches this thread: the controller must hear of any failure
            attempt.failure, attempt.state = f"{type(problem).__name__}: {problem}", "failed"

    def _pace(self, attempt: Attempt) -> None:
        """Prepares rows ahead of the clock; measures how far its own wake-ups lag behind the schedule."""
        queues, end = attempt.queues, attempt.start_wall_ns + round(attempt.seconds * NS)
        rows = min(MAX_BATCH_ROWS, math.ceil(attempt.rate / len(self.partitions) * BATCH_SECONDS))
        due, offered, looked = attempt.start_wall_ns - LOOKAHEAD_NS, 0, 0
        backlog = math.ceil(attempt.behind_s * attempt.rate)  # due before the start, but not late
        self._fill(attempt, min(attempt.start_wall_ns + LOOKAHEAD_NS, end), rows)  # includes the backlog
        while not queues.finished:
            late = self._fill(attempt, min(self._clock.wall() + LOOKAHEAD_NS, end), rows)
            now = self._clock.wall()
            if now - looked >= CLOCK_NS and now >= attempt.start_wall_ns:
                queues.tick(now)
                looked = now
            total = sum(queues.offered(now))
            if (fresh := max(0, total - offered - late - backlog)) and not (attempt.hold or queues.overflow):
                # the rows that became due while this thread overslept waited from 0 to all of that time
                self._slipped(attempt, np.linspace(0, max(0, now - due), fresh).astype(np.int64))
            offered = total
            if total:  # nothing is offered before the start
                backlog = 0
            if queues.overflow and not attempt.hold:
                attempt.state = "overflow"
                attempt.cpu_end_s = time.process_time()
                queues.finish(now, None)
            elif now >= end:
                self._fill(attempt, end, rows)  # rows that fell due while this thread overslept
                self._end(attempt, end)
            if now >= due:
                due = max(due, now - TICK_NS) + TICK_NS
            time.sleep(min(CLOCK_NS, max(0, min(due, end) - self._clock.wall())) / NS)
            self._clock.stepped_ns()

    def _fill(self, attempt: Attempt, until_ns: int, rows: int) -> int:
        """Appends the rows that are due before until_ns; returns how many of them were already late."""
        late = 0
        while attempt.queues.roomy(MAX_BATCH_ROWS * len(self.partitions)):
            with attempt.filling:
                feeds = attempt.feeds
                # the one that is furthest behind: where there is no room for all, the first would take it from others
                due = [number for number, feed in enumerate(feeds) if feed.last_wall < until_ns]
                if not due:
                    break
                number = min(due, key=lambda number: feeds[number].position / feeds[number].rows)
                batch, walls = feeds[number].next_batch(rows)
                attempt.queues.append(number, batch, walls)
            behind = self._clock.wall() - np.maximum(walls, attempt.start_wall_ns)
            behind = behind[behind > 0]
            if not (attempt.hold or attempt.queues.overflow):  # rows that are held back are not late
                self._slipped(attempt, behind)
            late += len(behind)
        return late

    def _slipped(self, attempt: Attempt, late_ns: NDArray[np.int64]) -> None:
        with self._lock:  # a trial that was cut short is observed while rows still fall due
            attempt.slip.add(late_ns)

    def _end(self, attempt: Attempt, wall_ns: int) -> None:
        with self._lock:
            if attempt.queues.finished:
                return
            attempt.queues.until_ns = min(wall_ns, attempt.queues.until_ns or wall_ns)
            sentinel = attempt.replay.sentinel(attempt.latest, wall_ns, attempt.horizon_ps)
            attempt.queues.finish(wall_ns, sentinel)
            attempt.cpu_end_s = time.process_time()
            attempt.state = "stopped"

    def _current(self) -> Attempt:
        if self._attempt is None:
            raise Refused("no trial is open here; the controller must send `open` first")
        return self._attempt

    def _named(self, request: requests.Ready) -> Attempt:
        attempt = self._current()
        if request.attempt != attempt.name:
            raise Refused(f"attempt: found {request.attempt!r}, allowed: {attempt.name!r}")
        return attempt
