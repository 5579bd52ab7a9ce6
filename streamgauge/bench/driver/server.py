"""The server side of the wire: a thread per connection, verbs as in docs/protocol.md. It knows no clock, no stream."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from io import BufferedReader, BufferedWriter
from typing import BinaryIO, Protocol

import pyarrow as pa

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.admission import Admission, Admitting, hang_up
from streamgauge.bench.driver.protocol import MAX_HELLO, MAX_LINE, VERSION
from streamgauge.bench.driver.requests import Hello, Malformed, Read, Request, checked, parsed

IDLE_SECONDS = 600.0
#: bytes of a request that are read at once, and of an answer that are written at once
READ_BUFFER, WRITE_BUFFER = 2**14, 2**20
Answer = Mapping[str, object]


class Refused(ValueError):
    """A valid request that cannot be met; the connection stays open."""


class Handler(Protocol):
    """Answers the requests that a server receives."""

    @property
    def schema(self) -> pa.Schema: ...

    def hello(self) -> Answer:
        """Returns the answer to hello: at least partitions and attempt."""

    def read(self, request: Read) -> list[pa.RecordBatch]: ...

    def answer(self, request: Request) -> Answer: ...

    def refused(self, why: str) -> None:
        """Remembers that a report was malformed: its trial measures nothing, whatever else comes."""


class Server:
    """Listens from construction on. Raises UserError when the port is not available."""

    def __init__(
        self, handler: Handler, host: str, port: int, *, token: str = "", context: ssl.SSLContext | None = None,
        limits: Admitting = Admitting(),  # noqa: B008 - frozen
    ) -> None:  # fmt: skip
        self._handler, self._token, self._context = handler, token, context
        try:
            self._listener = socket.create_server((host, port), backlog=128)
        except (OSError, OverflowError) as problem:
            raise UserError(f"{host}:{port}: cannot listen on this address: {problem}; choose another port") from None
        self.port: int = self._listener.getsockname()[1]
        self._admission = Admission(limits)
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def close(self) -> None:
        hang_up(self._listener)  # closing alone leaves a waiting accept to take one more connection
        self._listener.close()
        self._admission.close()

    def drop(self, of_attempt: Callable[[str], bool]) -> None:
        """Closes the connections for whose attempt of_attempt is true; one that named none has the attempt ''."""
        self._admission.drop(of_attempt)

    def _accept(self) -> None:
        while True:
            try:
                connection, (peer, *_) = self._listener.accept()
            except OSError:
                return  # closed
            self._admission.arrived(connection)
            threading.Thread(target=self._serve, args=(connection, peer), daemon=True).start()

    def _serve(self, raw: socket.socket, peer: str) -> None:
        connection = raw
        try:
            raw.settimeout(IDLE_SECONDS)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                connection = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
                self._admission.wrapped(raw, connection)
                connection.do_handshake()
            reader = BufferedReader(connection.makefile("rb", 0), READ_BUFFER)
            if not self._greet(connection, reader, peer):
                return
            writer = BufferedWriter(connection.makefile("wb", 0), WRITE_BUFFER)
            while line := reader.readline(MAX_LINE):
                self._answer(line, writer)
                if not line.endswith(b"\n"):
                    return  # where the next request begins is not known
        except (OSError, ValueError, AttributeError):
            # the peer left, was silent too long, or was hung up in its TLS handshake: its connection ends, nothing else
            pass
        finally:
            self._admission.left(connection, raw)
            hang_up(connection)
            connection.close()

    def _greet(self, connection: socket.socket, reader: BinaryIO, peer: str) -> bool:
        """Answers the hello; returns False for a connection that ends here."""
        if not (line := reader.readline(MAX_HELLO)):
            return False
        with BufferedWriter(connection.makefile("wb", 0), READ_BUFFER) as writer:
            refusal = self._refusal(connection, line, peer)
            if refusal is not None:
                _send(writer, {"ok": False, "error": refusal})
                return False
            schema = base64.b64encode(self._handler.schema.serialize().to_pybytes()).decode()
            _send(writer, {"ok": True, "version": VERSION, **self._handler.hello(), "schema": schema})
        return True

    def _refusal(self, connection: socket.socket, line: bytes, peer: str) -> str | None:
        """Reason to refuse the connection after its first line; None once it has its place."""
        if not line.endswith(b"\n"):
            return f"the first request must be hello, of at most {MAX_HELLO:,} bytes"
        try:
            request = checked(parsed(line))
        except Malformed as problem:
            return str(problem)
        if not isinstance(request, Hello) or request.version != VERSION:
            return f"the first request must be hello with version {VERSION}"
        if not self._admission.is_token(request.token, self._token, peer):
            return "wrong token"
        attempt = self._handler.hello()["attempt"]
        if (wanted := request.attempt or "") and wanted != attempt:
            return f"attempt: found {wanted!r}, allowed: {attempt!r}"
        return None if self._admission.accepted(connection, wanted) else "all places are taken; end other clients"

    def _answer(self, line: bytes, writer: BinaryIO) -> None:
        is_report = False
        try:
            given = parsed(line)
            is_report = given.get("verb") == "report"
            request = checked(given)
            if not isinstance(request, Read):
                _send(writer, {"ok": True, **self._handler.answer(request)})
                return
            batches = self._handler.read(request)
        except (Refused, Malformed, UserError, ValueError) as problem:
            if isinstance(problem, Malformed) and is_report:
                self._handler.refused(str(problem))
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


def _send(writer: BinaryIO, answer: Answer) -> None:
    writer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
    writer.flush()
