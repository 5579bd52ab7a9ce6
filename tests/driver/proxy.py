"""A network between system and driver that a test can cut, mend, stop within an answer, or let end without its END."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from streamgauge.bench.driver.system import Endpoint

#: an answer with rows has this mark of Arrow's messages, which no line of JSON has, and more bytes than a schema alone
MARK, LARGE = b"\xff\xff\xff\xff", 2_000
END = b'{"end":true'


class Proxy:
    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._port = 0
        self._open: set[socket.socket] = set()
        self._armed = self._endless = False
        self.caught, self._released = threading.Event(), threading.Event()
        self.mend()

    @property
    def endpoint(self) -> Endpoint:
        return replace(self._target, host="127.0.0.1", port=self._port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self.cut()

    def mend(self) -> None:
        """Listens, at the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Ends every connection; the port is closed."""
        for one in (self._listener, *tuple(self._open)):
            _hang_up(one)
        self._listener.close()

    def catch(self) -> None:
        """Holds back the second half of the next answer with rows until release; `caught` tells when."""
        self.caught.clear()
        self._released.clear()
        self._armed = True

    def swallow_ends(self) -> None:
        """Lets the rows of answers come whole from now on, and then an orderly close instead of the END line."""
        self._endless = True

    def release(self) -> None:
        self._armed = False
        self._released.set()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((self._target.host, self._target.port))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for way in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if answers and self._armed and len(data) >= LARGE and MARK in data:
                    self._armed = False
                    target.sendall(data[: len(data) // 2])
                    data = data[len(data) // 2 :]
                    self.caught.set()
                    self._released.wait(60)
                if answers and self._endless and (at := data.find(END)) >= 0:
                    target.sendall(data[:at])
                    break
                target.sendall(data)
        for one in (source, target):
            _hang_up(one)


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
