"""A real HTTP backend whose behaviour a test changes while it runs."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Backend:
    """Keeps what was posted. behaviour: ok, 500, slow (takes a minute) or torn (closes in the middle of its answer)."""

    def __init__(self, port: int = 0) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers = 0
        self.behaviour = "ok"
        self._end = threading.Event()
        self._wires: list[socket.socket] = []
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                backend._wires.append(self.connection)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                behaviour = backend.behaviour  # as it is when the call comes
                if behaviour == "slow":
                    backend._end.wait(60)
                backend.answers += 1
                if behaviour == "ok":
                    backend.bodies.append(body)
                    backend.headers.append(dict(self.headers))
                self.send_response(500 if behaviour == "500" else 200)
                self.send_header("Content-Length", "10")
                self.end_headers()
                if behaviour == "torn":
                    self.wfile.write(b"four")
                    self.close_connection = True
                else:
                    self.wfile.write(b"{}        ")

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def stop(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        for wire in self._wires:  # else a connection outlives its server
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def wait_until(true: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
