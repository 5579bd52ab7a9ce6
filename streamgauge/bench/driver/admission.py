"""Keeps places for those who have said hello. Others may wait only briefly, and guesses of a token are slowed down."""

from __future__ import annotations

import hmac
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

log = logging.getLogger("streamgauge")


@dataclass(frozen=True)
class Admitting:
    """Limits of a server: places for accepted connections, and what those get that have not said hello yet."""

    places: int = 512
    waiting: int = 64
    hello_s: float = 10.0  # from the connection to the end of its hello, however slowly that comes
    wrong_s: float = 0.2  # until a wrong token is answered; one is answered after the other


class Admission:
    """Connections of a server: those that wait for their hello, and those that were accepted, with their attempt."""

    def __init__(self, limits: Admitting) -> None:
        self._limits = limits
        self._waiting: dict[socket.socket, float] = {}  # when its time is over
        self._accepted: dict[socket.socket, str] = {}
        self._lock = threading.Lock()
        self._pause = threading.Lock()
        self._wrong = 0
        self._closed = threading.Event()
        threading.Thread(target=self._end_the_slow, name="admission", daemon=True).start()

    def arrived(self, connection: socket.socket) -> None:
        """Lets a connection wait for its hello; where too many wait, the one that has waited longest ends."""
        with self._lock:
            self._waiting[connection] = time.monotonic() + self._limits.hello_s
            oldest = next(iter(self._waiting)) if len(self._waiting) > self._limits.waiting else None
        if oldest is not None:
            hang_up(oldest)

    def wrapped(self, raw: socket.socket, connection: socket.socket) -> None:
        """Goes on with the connection that took the raw one over, which cannot be hung up any more."""
        with self._lock:
            self._waiting[connection] = self._waiting.pop(raw, 0.0)

    def accepted(self, connection: socket.socket, attempt: str) -> bool:
        """Gives a connection its place; False if none is left, or its time was over."""
        with self._lock:
            if connection not in self._waiting or len(self._accepted) >= self._limits.places:
                return False
            del self._waiting[connection]
            self._accepted[connection] = attempt
            return True

    def left(self, *connections: socket.socket) -> None:
        with self._lock:
            for connection in connections:
                self._waiting.pop(connection, None)
                self._accepted.pop(connection, None)

    def drop(self, of_attempt: Callable[[str], bool]) -> None:
        """Hangs up those for whose attempt `of_attempt` is true; one that has named none yet has the attempt ""."""
        with self._lock:
            doomed = [one for one, attempt in self._accepted.items() if of_attempt(attempt)]
            doomed += list(self._waiting) if of_attempt("") else []
        for connection in doomed:
            hang_up(connection)

    def close(self) -> None:
        self._closed.set()
        self.drop(lambda _: True)

    def is_token(self, given: object, wanted: str, peer: str) -> bool:
        """True for the right token. A wrong one is answered after a pause, and the log tells of it."""
        if hmac.compare_digest(str(given).encode(), wanted.encode()):
            return True
        with self._pause:
            self._wrong += 1
            if self._wrong & (self._wrong - 1) == 0:  # 1, 2, 4, 8 …: nobody can fill the log
                log.warning("a client at %s gave a wrong token: %d so far", peer, self._wrong)
            time.sleep(self._limits.wrong_s)
        return False

    def _end_the_slow(self) -> None:
        while not self._closed.wait(min(1.0, self._limits.hello_s / 4)):
            now = time.monotonic()
            with self._lock:
                late = [connection for connection, until in self._waiting.items() if until < now]
            for connection in late:
                hang_up(connection)


def hang_up(connection: socket.socket) -> None:
    """Ends a connection on which another thread may wait."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
