"""The client side of the wire, for systems under test, the controller and self-tests.

A connection is not thread-safe: use one per thread.
"""

from __future__ import annotations

import base64
import io
import json
import math
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from streamgauge.bench.driver.marking import UNMARKED, Marking
from streamgauge.bench.driver.protocol import MAX_ANSWER, VERSION
from streamgauge.bench.driver.system import Endpoint

if TYPE_CHECKING:  # a system's own environment may lack what the configuration needs
    from streamgauge.bench.driver.serving import Serving
    from streamgauge.records.driver import DriverFigures, DriverSamples, Observed

T = TypeVar("T")
LOAD_SECONDS = 120.0
AWAY_S = 0.05  # between two tries to reach a driver that is away


class WireError(ConnectionError):
    """A driver that is unreachable, left, or broke the protocol: reconnect and read again from the last offset."""


class RefusedError(WireError):
    """The driver's refusal of a request."""


@dataclass(frozen=True)
class Latest:
    """Rows that an endpoint has offered, per partition."""

    rows: tuple[int, ...]
    finished: bool
    wall_ns: int


class _Reader(io.BufferedReader):
    """Lets Arrow read message bodies from the socket straight into its own memory, without a copy."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection.makefile("rb", buffering=0), 1 << 16)

    def read_buffer(self, size: int) -> pa.Buffer:
        buffer = pa.allocate_buffer(size)
        target = memoryview(buffer).cast("B")
        done = 0
        while done < size and (count := self.readinto(target[done:])):
            done += count
        return buffer if done == size else buffer.slice(0, done)


class Connection:
    """A connection to an endpoint.

    Every call raises WireError when it fails. The connection is then closed, except after a RefusedError.
    """

    def __init__(self, endpoint: Endpoint, attempt: str = "", timeout_s: float = 30.0) -> None:
        self.endpoint, self._timeout_s = endpoint, timeout_s
        self._socket: socket.socket | None = None
        self._opened = ExitStack()
        try:
            self._socket = self._opened.enter_context(
                socket.create_connection((endpoint.host, endpoint.port), timeout=timeout_s)
            )
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.cafile is not None:
                context = ssl.create_default_context(cafile=endpoint.cafile)
                self._socket = self._opened.enter_context(
                    context.wrap_socket(self._socket, server_hostname=endpoint.host)
                )
        except (OSError, ValueError) as problem:
            self.close()
            raise WireError(f"driver {endpoint.address}: {problem}") from None
        self._reader = self._opened.enter_context(_Reader(self._socket))
        try:
            hello = self._ask("hello", version=VERSION, token=endpoint.token, attempt=attempt)
        except WireError:  # a refused one, too, holds a socket
            self.close()
            raise
        self.partitions = int(hello["partitions"])
        self.attempt = str(hello["attempt"])
        self.serves: Mapping[str, object] | None = hello.get("serves")
        self.agent = bool(hello.get("agent"))  # it obeys the verb `serve`
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(hello["schema"])))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket = None
        self._opened.close()

    @property
    def closed(self) -> bool:
        return self._socket is None

    # -- a system under test

    def latest(self) -> Latest:
        answer = self._ask("latest")
        return Latest(tuple(answer["rows"]), answer["finished"], answer["wall_ns"])

    def read(
        self, partition: int, start: int, end: int | None = None, *, max_rows: int = 2**20, wait_s: float = 0.0
    ) -> Iterator[pa.RecordBatch]:
        """Yields rows [start, end) of a partition; without an end, at most max_rows that are offered within wait_s.

        Leaving the iterator early closes the connection, because the rest of the answer is still in it.
        """
        while end is None or start < end:
            answered = 0
            for batch in self._answer(partition, start, end, max_rows, wait_s):
                answered += batch.num_rows
                yield batch
            start += answered
            if end is None:
                return
            if not answered:
                raise self._broken(f"no rows for {start} to {end} of partition {partition}")

    def planned(self, offsets: Mapping[int, int]) -> None:
        self._ask("planned", offsets=_keys(offsets))

    def commit(self, offsets: Mapping[int, int]) -> None:
        self._ask("commit", offsets=_keys(offsets))

    def ready(self, attempt: str) -> None:
        self._ask("ready", attempt=attempt)

    def report(self, attempt: str, epoch: int, body: Mapping[str, object]) -> None:
        self._ask("report", attempt=attempt, epoch=epoch, body=dict(body))

    def clock_offset(self, rounds: int = 8) -> tuple[int, int]:
        """Returns (driver's clock − ours, half the round trip) in ns, from the quickest of `rounds` requests."""
        best, offset = math.inf, 0
        for _ in range(rounds):
            sent = time.time_ns()
            theirs = self.latest().wall_ns
            back = time.time_ns()
            if back - sent < best:
                best, offset = back - sent, theirs - (sent + back) // 2
        return offset, int(best) // 2

    # -- the controller

    def serve(self, key: str, serving: Serving) -> None:
        """Tells an agent which stream of its store to load, and how it is replayed."""
        self._send({"verb": "serve", "key": key, "serving": serving.to_json()}, extra_s=LOAD_SECONDS)
        self.serves = self._line()["serves"]

    def open(
        self,
        attempt: str,
        rate: float,
        seconds: float,
        *,
        hold: int | None = None,
        behind_s: float = 0.0,
        beyond_us: int = 0,
        marking: Marking = UNMARKED,
        stream: int = 0,
    ) -> None:
        """Opens a trial. rate and hold are those of all driver processes together.

        hold: keeps so many rows waiting, whatever the rate. behind_s: age of the backlog at the start, seconds.
        beyond_us: least distance from the last event to the sentinel, µs. marking: the id columns, and the round whose
        values they take. stream: which one of several that the driver serves.
        """
        self._ask(
            "open",
            attempt=attempt,
            rate=rate,
            seconds=seconds,
            hold=hold,
            behind_s=behind_s,
            beyond_us=beyond_us,
            ids=marking.columns,
            round=marking.round,
            stream=stream,
        )

    def hold(self, rows: int | None, stream: int | None = None, first: int = 0) -> int:
        """Keeps `rows` rows of a stream waiting from now on, over all driver processes.

        rows: None in an open loop, which goes on at its rate. stream: None for the same one. first: no time of another
        stream is below it, ticks. Returns the row, over all queues of this process, from which on rows are of that one.
        """
        return int(self._ask("hold", rows=rows, stream=stream, first=first)["from"])

    def samples(self, since_ns: int = 0) -> DriverSamples:
        """Returns the status, with the samples taken after that instant."""
        samples: DriverSamples = self._ask("samples", since_ns=since_ns)
        return samples

    def start(self, start_wall_ns: int | None = None) -> int:
        return int(self._ask("start", start_wall_ns=start_wall_ns)["start_wall_ns"])

    def stop(self) -> None:
        self._ask("stop")

    def status(self) -> DriverFigures:
        status: DriverFigures = self._ask("status")
        return status

    def observe(self) -> Observed:
        observed: Observed = self._ask("observe")
        while observed["more"]:
            page: Observed = self._ask("observe", first=len(observed["reports"]))
            observed["reports"] += page["reports"]
            observed["more"] = page["more"]
        return observed

    # -- the wire

    def _ask(self, verb: str, **fields: object) -> Any:
        self._send({"verb": verb, **fields})
        return self._line()

    def _answer(
        self, partition: int, start: int, end: int | None, max_rows: int, wait_s: float
    ) -> Iterator[pa.RecordBatch]:
        """Yields the batches of one answer, and checks their row count against its END."""
        fields: dict[str, object] = {"partition": partition, "from": start}
        fields |= {"max_rows": max_rows, "wait_ms": round(wait_s * 1000)} if end is None else {"to": end}
        self._send({"verb": "read", **fields}, extra_s=wait_s)
        self._line()
        rows, whole = 0, False
        try:
            with pa.ipc.open_stream(self._reader) as batches:
                for batch in batches:
                    rows += batch.num_rows
                    yield batch
            end_of_answer = self._line()
            if not end_of_answer.get("end") or end_of_answer.get("rows") != rows:
                reported = end_of_answer.get("rows")
                ending = f"END reports {reported}" if end_of_answer.get("end") else "no END followed"
                raise self._broken(f"received {rows} rows, but {ending}")
            whole = True
        except (OSError, pa.ArrowException) as problem:
            raise problem if isinstance(problem, WireError) else self._broken(str(problem)) from None
        finally:
            if not whole:
                self.close()

    def _send(self, request: Mapping[str, object], extra_s: float = 0.0) -> None:
        if self._socket is None:
            raise WireError(f"driver {self.endpoint.address}: this connection is closed")
        try:
            self._socket.settimeout(self._timeout_s + extra_s)
            self._socket.sendall(json.dumps(request, separators=(",", ":")).encode() + b"\n")
        except OSError as problem:
            raise self._broken(str(problem)) from None

    def _line(self) -> Any:
        """The JSON object of an answer."""
        try:
            line = self._reader.readline(MAX_ANSWER)
            answer = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError) as problem:
            raise self._broken(str(problem)) from None
        if not isinstance(answer, dict):
            raise self._broken("closed the connection before the end of its answer")
        if answer.get("ok") is False:
            raise RefusedError(f"driver {self.endpoint.address}: {answer.get('error')}")
        return answer

    def _broken(self, why: str) -> WireError:
        self.close()
        return WireError(f"driver {self.endpoint.address}: {why}")


def reached(endpoint: Endpoint, attempt: str, patience_s: float) -> Connection:
    """A connection to an endpoint that may be away for patience_s. Raises WireError, and at once if it refuses."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return Connection(endpoint, attempt)
        except RefusedError:
            raise
        except WireError:
            if time.monotonic() > deadline:
                raise
            time.sleep(AWAY_S)


def of_each(endpoints: Iterable[Endpoint], attempt: str, ask: Callable[[Connection], T]) -> list[T]:
    """Returns what `ask` returns for a connection to each endpoint, one after the other. Raises WireError."""
    answers = []
    for endpoint in endpoints:
        with Connection(endpoint, attempt) as wire:
            answers.append(ask(wire))
    return answers


def _keys(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}
