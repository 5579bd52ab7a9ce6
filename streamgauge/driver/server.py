"""The server side of the wire: a thread per connection, verbs as in docs/protocol.md. It knows no clock, no stream."""

from __future__ import annotations

import base64
import hmac
import json
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from streamgauge.base.errors import UserError
from streamgauge.driver.protocol import MAX_LINE, VERSION
from streamgauge.driver.requests import Malformed, checked, parsed

MAX_CONNECTIONS = 512
HELLO_SECONDS = 10.0
IDLE_SECONDS = 600.0
BUFFER = 2**20
Verb = Callable[[dict[str, Any]], dict[str, Any]]


class Refused(ValueError):
    """A valid request that cannot be met; the connection stays open."""


class Handler(Protocol):
    """Answers the requests that a server receives."""

    @property
    def schema(self) -> pa.Schema: ...

    def hello(self) -> dict[str, Any]:
        """Returns the answer to hello: at least partitions and attempt."""

    def read(self, request: dict[str, Any]) -> list[pa.RecordBatch]: ...

    def verb(self, name: str, request: dict[str, Any]) -> dict[str, Any]: ...


class Server:
    """Listens from construction on. Raises UserError when the port is not available."""

    def __init__(
        self, handler: Handler, host: str, port: int, *, token: str = "", context: ssl.SSLContext | None = None
    ) -> None:
        self._handler, self._token, self._context = handler, token, context
        try:
            self._listener = socket.create_server((host, port), backlog=128)
        except (OSError, OverflowError) as problem:
            raise UserError(f"{host}:{port}: cannot listen on this address: {problem}; choose another port") from None
        self.port: int = self._listener.getsockname()[1]
        self._open: dict[socket.socket, str] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def close(self) -> None:
        _hang_up(self._listener)  # closing alone leaves a waiting accept to take one more connection
        self._listener.close()
        self.drop(lambda _: True)

    def drop(self, of_attempt: Callable[[str], bool]) -> None:
        """Closes the connections for whose attempt of_attempt is true; one that named none has the attempt ''."""
        with self._lock:
            doomed = [connection for connection, attempt in self._open.items() if of_attempt(attempt)]
        for connection in doomed:
            _hang_up(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            with self._lock:
                full = len(self._open) >= MAX_CONNECTIONS
                if not full:
                    self._open[connection] = ""
            if full:
                connection.close()
            else:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        connection = raw
        try:
            raw.settimeout(HELLO_SECONDS)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                connection = self._context.wrap_socket(raw, server_side=True)
                with self._lock:  # wrapping takes the socket over: the raw one cannot be hung up any more
                    self._open[connection] = self._open.pop(raw, "")
            reader, writer = connection.makefile("rb", BUFFER), connection.makefile("wb", BUFFER)
            if not self._greet(connection, reader, writer):
                return
            connection.settimeout(IDLE_SECONDS)
            while line := reader.readline(MAX_LINE):
                self._answer(line, writer)
                if not line.endswith(b"\n"):
                    return  # where the next request begins is not known
        except (OSError, ValueError):
            pass  # the peer left or was silent too long: its connection ends, nothing else
        finally:
            with self._lock:
                self._open.pop(connection, None)
                self._open.pop(raw, None)
            _hang_up(connection)
            connection.close()

    def _greet(self, connection: socket.socket, reader: Any, writer: Any) -> bool:
        if not (line := reader.readline(MAX_LINE)):
            return False
        try:
            request = parsed(line)
            is_hello = checked(request) == "hello"
        except Malformed as problem:
            _send(writer, {"ok": False, "error": str(problem)})
            return False
        facts = self._handler.hello()
        wanted = request.get("attempt") or ""
        if not is_hello or request["version"] != VERSION:
            _send(writer, {"ok": False, "error": f"the first request must be hello with version {VERSION}"})
        elif not hmac.compare_digest(str(request.get("token", "")).encode(), self._token.encode()):
            _send(writer, {"ok": False, "error": "wrong token"})
        elif wanted and wanted != facts["attempt"]:
            _send(writer, {"ok": False, "error": f"attempt: found {wanted!r}, allowed: {facts['attempt']!r}"})
        else:
            with self._lock:
                self._open[connection] = wanted
            schema = base64.b64encode(self._handler.schema.serialize().to_pybytes()).decode()
            _send(writer, {"ok": True, "version": VERSION, **facts, "schema": schema})
            return True
        return False

    def _answer(self, line: bytes, writer: Any) -> None:
        try:
            request = parsed(line)
            name = checked(request)
            if name != "read":
                _send(writer, {"ok": True, **self._handler.verb(name, request)})
                return
            batches = self._handler.read(request)
        except (Refused, Malformed, UserError, ValueError) as problem:
            _send(writer, {"ok": False, "error": " ".join(str(problem).split())})
            return
        except Exception as problem:  # a fault of ours is answered, too: the peer must not take it for the end
            _send(writer, {"ok": False, "error": f"{type(problem).__name__}: {' '.join(str(problem).split())}"})
            return
        writer.write(b'{"ok":true}\n')
        with pa.ipc.new_stream(writer, self._handler.schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        _send(writer, {"end": True, "rows": sum(batch.num_rows for batch in batches)})


def _send(writer: Any, answer: dict[str, Any]) -> None:
    writer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
    writer.flush()


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
