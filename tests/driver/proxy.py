"""A link between system and driver that a test can also stop within an answer, or let end without its END."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from streamgauge.bench.driver.admission import hang_up
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.faults.link import Link

#: an answer with rows has this mark of Arrow's messages, which no line of JSON has, and more bytes than a schema alone
MARK, LARGE = b"\xff\xff\xff\xff", 2_000
END = b'{"end":true'


class Proxy(Link):
    def __init__(self, target: Endpoint) -> None:
        super().__init__(target)
        self._armed = self._endless = False
        self.caught, self._released = threading.Event(), threading.Event()

    def __exit__(self, *_: object) -> None:
        self.release()
        self.cut()

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

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            answers = source.getpeername()[1] == self._target.port
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
            hang_up(one)
