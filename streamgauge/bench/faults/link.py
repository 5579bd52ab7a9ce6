"""A link between driver and system that can be cut: it passes bytes on, and refuses connections while it is cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Self

from streamgauge.bench.driver.admission import hang_up
from streamgauge.bench.driver.system import Endpoint

_HERE = "127.0.0.1"
_CHUNK = 2**18


class Link:
    """A link to one driver process on this host: `with Link(endpoint) as link: … link.endpoint`."""

    def __init__(self, target: Endpoint, away_s: float = 0.0) -> None:
        """away_s: for so long the link will be cut, and whoever uses it waits longer by that."""
        self._target, self._port = replace(target, patience_s=target.patience_s + away_s), 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None

    @property
    def endpoint(self) -> Endpoint:
        """The driver as the system reaches it over this link."""
        return replace(self._target, host=_HERE, port=self._port)

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def mend(self) -> None:
        """Takes connections, at the same port as before it was cut."""
        listener = socket.create_server((_HERE, self._port))
        self._port = listener.getsockname()[1]
        with self._lock:
            self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="link", daemon=True).start()

    def cut(self) -> None:
        """Breaks every connection, and refuses new ones until it is mended."""
        with self._lock:
            listener, self._listener = self._listener, None
            broken, self._open = self._open, set()
        if listener is not None:
            _end(listener)
        for one in broken:
            _end(one)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:  # it was cut
                return
            try:
                far = socket.create_connection((self._target.host, self._target.port))
            except OSError:
                near.close()
                continue
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                if self._listener is not listener:  # cut meanwhile
                    _end(near)
                    _end(far)
                    return
                self._open |= {near, far}
            for way in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=way, name="link", daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                target.sendall(data)
        with self._lock:
            self._open -= {source, target}
        for one in (source, target):
            _end(one)


def _end(one: socket.socket) -> None:
    hang_up(one)
    one.close()
