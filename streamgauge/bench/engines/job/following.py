"""Follows a job through a trial: says when it is ready, and passes its progress on to the driver's processes."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.client import Connection, WireError
from streamgauge.bench.driver.system import TrialSetup
from streamgauge.bench.engines.job.running import Command, Publishing
from streamgauge.bench.publish.answers import WARM
from streamgauge.bench.publish.progress import Progress, Reached
from streamgauge.bench.publish.warming import Warming

LOOK_S = 0.05
#: a broker may be away for so long before the trial is given up
AWAY_S = 5.0
#: how much longer than meant the warm-up may take
WARM_S = 60.0
#: a job commits its first row within so long of its start, or of the row's coming if that ends later
FIRST_S, GIVEN_S = 50.0, 15.0
#: in a closed loop, the time without a commit after which the job is given one more row in each look
IDLE_S = 0.25
#: looks that decide whether a job only waits for its link, and the share of them that is too much
LOOKS, NEARLY_ALL = 60, 0.8
#: looks that a share is of, at least: a trial of a few looks says nothing about its link
LEAST_LOOKS = 20


class NothingTaken(UserError):
    """The job has not taken the rows that it was given, which no further look will change."""


def nothing_taken(progress: Progress, command: Command) -> str:
    """Returns what is known of a job that has taken no row, in one line."""
    lasted_s = time.monotonic() - command.since
    try:
        why = progress.why()
    except UserError as problem:
        why = str(problem)
    return (
        f"the job committed nothing in {lasted_s:.0f} s: {progress.name} has no offset of its input topic; {why}; "
        f"{command.last_words()}"
    )


@dataclass
class Starving:
    """Counts looks at which the job had taken all that was published, though more was offered: the link's own limit."""

    looks: int = 0
    starved: int = 0
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=LOOKS))
    taken: deque[int] = field(default_factory=lambda: deque([0], maxlen=5))

    def look(self, offered: int, published: int, planned: int) -> None:
        # what the job has taken in the last five looks
        step = max(1, planned - self.taken[0])
        self.taken.append(planned)
        starved = planned > 0 and published - planned < step < offered - published
        self.looks, self.starved = self.looks + 1, self.starved + starved
        self.recent.append(starved)

    @property
    def now(self) -> bool:
        """True if the job has waited for its link in nearly all of the latest looks."""
        return len(self.recent) == LOOKS and sum(self.recent) > NEARLY_ALL * LOOKS

    @property
    def share(self) -> float:
        return self.starved / max(self.looks, LEAST_LOOKS)


@dataclass
class Trickle:
    """Rows beyond those held in a closed loop, one at a time, for a job that waits for rows before it commits.

    Kafka's consumer sends a commit with its next poll, and a poll may wait for rows, Flink's for ten seconds. In an
    open loop there always is a next row. The trickle ends with the next commit.
    """

    committed: dict[int, int] = field(default_factory=dict)
    since: float = 0.0
    rows: int = 0

    def look(self, committed: dict[int, int], is_idle: bool, now: float) -> int:
        """The rows of each queue that count as read beyond the committed ones. is_idle: all rows were published."""
        if committed != self.committed or not any(committed.values()):
            self.committed, self.since, self.rows = dict(committed), now, 0
        elif is_idle and now - self.since > IDLE_S:
            self.rows += 1
        return self.rows


class Follower:
    """A thread that lasts for one trial; `failure` says in one line why it gave up.

    sign: once rows are published, looked at until it is true, for at most ready_s. closed: a closed loop, of which the
    link must not be the limit. warming: rows that the job takes before it is ready; they are written to `work`. base:
    records of each queue that were there before, if the job goes on. command: the job's own.
    """

    def __init__(
        self,
        setup: TrialSetup,
        progress: Progress,
        publishing: Publishing,
        sign: Callable[[], bool],
        ready_s: float,
        command: Command,
        closed: bool,
        warming: Warming | None,
        work: Path,
        base: list[int] | None = None,
    ) -> None:
        self._setup, self._progress, self._publishing, self._command = setup, progress, publishing, command
        self._sign, self._ready_s, self._closed = sign, ready_s, closed
        self._warming, self._work = warming, work
        self._given_at: float | None = None if base is None else math.inf  # when the first row was there
        self.failure: str | None = None
        self.blames_job = False  # for that failure: the job took nothing; all others are of what is between
        self.starving, self._trickle = Starving(), Trickle()
        self.rows = 0  # that the job has planned
        self.over = False  # the stream has ended
        self._base = base or [0] * setup.queues
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name="follow", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(AWAY_S + 5)

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as problem:  # nobody watches this thread
            if not self._over.is_set():
                plain = isinstance(problem, UserError | WireError)
                self.blames_job = isinstance(problem, NothingTaken)
                self.failure = str(problem) if plain else f"{type(problem).__name__}: {problem}"

    def _run(self) -> None:
        if not self._wait_until_ready() or not self._warm():
            return
        wires = [Connection(endpoint, self._setup.attempt) for endpoint in self._setup.endpoints]
        try:
            for wire in wires:
                wire.ready(self._setup.attempt)
            last_good = time.monotonic()
            while not self._over.wait(LOOK_S):
                try:
                    self._look(wires)
                    last_good = time.monotonic()
                except UserError as problem:
                    if isinstance(problem, NothingTaken) or time.monotonic() - last_good > AWAY_S:
                        raise
        finally:
            for wire in wires:
                wire.close()

    def _wait_until_ready(self) -> bool:
        deadline = time.monotonic() + self._ready_s
        while not self._over.is_set():
            try:
                if self._publishing.published and self._sign():
                    return True
            except UserError:  # a group that nobody has joined may not be known yet
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                return True  # some jobs give no sign before the first row; one that reads nothing is noticed later
            self._over.wait(LOOK_S)
        return False

    def _warm(self) -> bool:
        """Has the job take the rows that warm it up; false if the trial is over."""
        if self._warming is None:
            return True
        file, over = self._work / WARM, self._over.wait
        done = self._warming.run(file, self._taken, over, WARM_S)
        if not done and not self._over.is_set():
            raise NothingTaken(
                f"the job has not taken the rows that warm it up within {WARM_S:g} s: {self._progress.name} tells of "
                f"{sum(self._reached().committed.values())} rows; {self._command.last_words()}"
            )
        self._base = self._warming.base
        return done

    def _reached(self) -> Reached:
        """The progress in rows of the trial's own queues."""
        reached, base = self._progress.reached(), self._base
        planned, committed = (
            {place: max(0, offset - base[place]) for place, offset in offsets.items() if place < len(base)}
            for offsets in (reached.planned, reached.committed)
        )
        return Reached(planned, committed, reached.whole)

    def _taken(self) -> int:
        """Number of rows that the job has committed, while it warms up."""
        taken = sum(self._reached().committed.values())
        self._check_first(taken)
        return taken

    def _check_first(self, taken: int) -> None:
        """Raises NothingTaken if the job should have taken a row by now. Called once there are some."""
        now = time.monotonic()
        self._given_at = math.inf if taken else self._given_at or now
        if now > max(self._command.since + FIRST_S, self._given_at + GIVEN_S):
            raise NothingTaken(nothing_taken(self._progress, self._command))

    def _look(self, wires: Sequence[Connection]) -> None:
        reached = self._reached()
        all_latest = [wire.latest() for wire in wires]
        offered, first = sum(sum(latest.rows) for latest in all_latest), 0
        planned = reached.planned
        if self._closed and planned == reached.committed:
            is_idle = sum(self._publishing.published) >= offered
            more = self._trickle.look(reached.committed, is_idle, time.monotonic())
            planned = {place: offset + more for place, offset in planned.items()}
        for wire, latest in zip(wires, all_latest, strict=True):
            queues = range(wire.partitions)
            # a record is there only once its row was offered; a clock that lags a little must not break the trial
            commit, plan = (
                {queue: min(taken[first + queue], latest.rows[queue]) for queue in queues if first + queue in taken}
                for taken in (reached.committed, planned)
            )
            if plan != commit:
                wire.planned(plan)
            if any(commit.values()):
                wire.commit(commit)
            first += wire.partitions
        self.rows, self.over = sum(reached.planned.values()), all(latest.finished for latest in all_latest)
        if sum(self._publishing.published):
            self._check_first(self.rows)
        self.starving.look(offered, sum(self._publishing.published), self.rows)
        if self._closed and self.starving.now:
            raise UserError(
                "the link to the job limited this window, not the job: it has read all that publisher and broker "
                "handed on; give them CPUs or a host of their own"
            )
