"""Pushes metrics: a thread takes a snapshot every period, and a thread per sink delivers them at its own pace.

The pipeline never waits for a backend. Snapshots queue up to a bound, beyond which the oldest are dropped. Each
snapshot is cumulative, so the next one that arrives makes the values right again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_exponential,
    wait_random,
)

from streamgauge.metrics.sinks import Confidential, Incomplete, Sink
from streamgauge.metrics.snapshot import Snapshot

log = logging.getLogger("streamgauge")
FINAL_SECONDS = 5.0
LONGEST_PAUSE = 30.0


class Pusher:
    """Takes a snapshot every period, and offers it to the sender of each sink."""

    def __init__(
        self, sinks: Sequence[Sink], snapshot: Callable[[bool], Snapshot], period_s: float, buffer: int
    ) -> None:
        self._snapshot, self._period = snapshot, period_s
        self._senders = [Sender(sink, buffer) for sink in sinks]
        self._stopping = threading.Event()
        self._order = threading.Lock()  # no snapshot may be offered after a later one
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="metrics-pusher", daemon=True)

    def start(self) -> None:
        for sender in self._senders:
            sender.start()
        self._thread.start()

    def push(self, *, final: bool = False) -> None:
        with self._order:
            if self._ended:
                return
            self._ended = final
            snapshot = self._snapshot(final)
            if snapshot.metrics or final:
                for sender in self._senders:
                    sender.offer(snapshot)

    def stop(self) -> None:
        """Pushes a last time; backends that answer get it, the others are given up within FINAL_SECONDS."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self.push(final=True)
        for sender in self._senders:
            sender.finish()
        deadline = time.monotonic() + FINAL_SECONDS
        for sender in self._senders:
            sender.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        while not self._stopping.wait(self._period):
            try:
                self.push()
            except Exception:
                log.exception("metrics: no snapshot")


class Sender(threading.Thread):
    """Delivers to one sink; undelivered snapshots wait in a buffer of bounded length."""

    def __init__(self, sink: Sink, buffer: int) -> None:
        super().__init__(name=f"metrics-{sink.name}", daemon=True)
        self._sink = sink
        self._buffer: deque[Snapshot] = deque(maxlen=buffer)
        self._change = threading.Condition()
        self._closing = threading.Event()
        self._silent = False
        self._lacks: set[str] = set()

    def offer(self, snapshot: Snapshot) -> None:
        with self._change:
            self._buffer.append(snapshot)
            self._change.notify()

    def finish(self) -> None:
        with self._change:
            self._closing.set()
            self._change.notify()

    def run(self) -> None:
        retrying = Retrying(
            retry=retry_if_exception_type(Exception),
            wait=wait_exponential(multiplier=0.5, max=LONGEST_PAUSE) + wait_random(0, 0.5),
            sleep=sleep_using_event(self._closing),
            stop=stop_when_event_set(self._closing),
            before_sleep=self._tell,
            reraise=True,
        )
        try:
            while True:
                with self._change:
                    self._change.wait_for(lambda: self._buffer or self._closing.is_set())
                if not self._buffer:
                    break
                retrying(self._deliver)
        except Exception as problem:
            log.warning("metrics: %s: the last values were not delivered: %s", self._sink.name, self._words(problem))
        finally:
            try:
                self._sink.close()
            except Exception as problem:
                log.warning("metrics: %s: did not close: %s", self._sink.name, self._words(problem))

    def _deliver(self) -> None:
        """Delivers the oldest waiting snapshot, which the buffer may drop meanwhile.

        A backend that is down when the pipeline ends gets one try, with the newest snapshot.
        """
        with self._change:
            while self._closing.is_set() and self._silent and len(self._buffer) > 1:
                self._buffer.popleft()
            snapshot = self._buffer[0]
        lacks = frozenset(self._sink.lacks if isinstance(self._sink, Incomplete) else ())
        self._drop(snapshot, lacks)
        self._sink.write(snapshot.without(lacks))
        with self._change:
            if self._buffer and self._buffer[0] is snapshot:
                self._buffer.popleft()
        if self._silent:
            self._silent = False
            log.info("metrics: %s answers again", self._sink.name)

    def _tell(self, state: RetryCallState) -> None:
        if not self._silent and state.outcome is not None:
            self._silent = True
            log.warning(
                "metrics: %s failed; the last %d snapshots are kept and sent later: %s",
                self._sink.name,
                self._buffer.maxlen,
                self._words(state.outcome.exception()),
            )

    def _drop(self, snapshot: Snapshot, lacks: frozenset[str]) -> None:
        parts = {metric.kind for metric in snapshot.metrics} | {"committed"}
        for part in sorted((parts & lacks) - self._lacks):
            self._lacks.add(part)
            log.warning("metrics: %s has no %s values; they are left out", self._sink.name, part)

    def _words(self, problem: BaseException | None) -> str:
        text = " ".join(str(problem).split()) or type(problem).__name__
        for secret in self._sink.secrets if isinstance(self._sink, Confidential) else ():
            text = text.replace(secret, "***")
        return f"{type(problem).__name__}: {text}"[:300]
