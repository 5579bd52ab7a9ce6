"""A link without a queue, for the comparison in links.py alone: rows are written into the system's socket when due.

The generator blocks when TCP is full, and so falls behind its schedule. A row that was written is gone: nothing is kept
for replay. `engine: benchmarks.direct:DirectSystem` is `engine: job`, but for its input: {input} is an address.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from streamgauge.base.arrow import ints
from streamgauge.base.errors import UserError
from streamgauge.base.histogram import Histogram
from streamgauge.base.units import Tick
from streamgauge.bench.driver.child import run_task
from streamgauge.bench.driver.client import Connection, WireError
from streamgauge.bench.driver.ports import free_port
from streamgauge.bench.driver.system import Endpoint, TrialSetup
from streamgauge.bench.engines.job.job_system import JobSystem
from streamgauge.bench.engines.job.life import Job
from streamgauge.bench.engines.job.own_topics import OwnTopics
from streamgauge.bench.engines.job.running import Publishing
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.engines.job.templates import filled
from streamgauge.bench.publish.progress import Checkpoint, Progress, Reached
from streamgauge.bench.publish.publisher import kept_columns
from streamgauge.streams.kafka.records import objects

ROWS, WAIT_S, TELL_S = 500, 0.01, 0.05
#: buffer of our side of the connection; the system's own side keeps what its kernel allows
SEND_BUFFER_BYTES = 65_536


@dataclass(frozen=True)
class Task:
    """Settings of one trial: the only queue that is pushed, the port that waits for the system, a folder for rows."""

    attempt: str
    endpoint: Endpoint
    port: int
    tick: Tick
    events: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Pusher:
    """The generator: it writes each row as a line of JSON when it is due, or as soon as the socket takes it."""

    def __init__(self, task: Task, stop: threading.Event) -> None:
        self._task, self._stop = task, stop
        self._listener = socket.create_server(("127.0.0.1", task.port))
        self.sent, self.finished, self._connected = 0, 0, False
        self._slip, self._blocked_s, self._longest_s = Histogram(), 0.0, 0.0

    def run(self) -> None:
        """Pushes until `stop` is set; prints a line of figures now and then. Raises WireError or OSError."""
        threading.Thread(target=self._tell, daemon=True).start()
        self._listener.settimeout(0.2)
        with Connection(self._task.endpoint, self._task.attempt) as wire, self._kept(wire.schema) as kept:
            objects(pa.RecordBatch.from_pylist([], wire.schema))  # loads the code that makes lines
            system = self._accept()
            if system is None:
                return
            with system:
                begun_ns = 0
                while not self._stop.is_set() and not self.finished:
                    # a list, as an answer must have been read to its end before the next request
                    for batch in list(wire.read(0, self.sent, max_rows=ROWS, wait_s=WAIT_S)):
                        begun_ns = begun_ns or int(wire.status()["start_wall_ns"])
                        self._push(system, batch, begun_ns)
                        kept.write_batch(batch.select(kept_columns(batch.schema)))
                self._stop.wait()

    def figures(self) -> dict[str, Any]:
        return {
            "published": [self.sent],
            "finished": self.finished,
            "slip": self._slip.to_dict(),
            "filled_s": 0.0,
            "blocked_s": round(self._blocked_s, 3),
            "longest_blocked_s": round(self._longest_s, 3),
            "cpu_seconds": round(time.process_time(), 3),
        }

    def _push(self, system: socket.socket, batch: pa.RecordBatch, begun_ns: int) -> None:
        lines = b"\n".join(objects(batch)) + b"\n"
        began = time.monotonic()
        try:
            system.sendall(lines)
        except OSError:  # the system has left, and what was on its way is lost
            self._stop.wait()
            return
        took_s = time.monotonic() - began
        self._blocked_s, self._longest_s = self._blocked_s + took_s, max(self._longest_s, took_s)
        due = ints(batch.column("offered_wall"))
        self._slip.add(np.maximum(0, time.time_ns() - due[due >= begun_ns]))
        self.sent += batch.num_rows
        self.finished += batch.column("sentinel")[batch.num_rows - 1].as_py()

    def _kept(self, schema: pa.Schema) -> Any:
        """A file of the rows that were pushed, for the oracle."""
        fields = pa.schema([schema.field(name) for name in kept_columns(schema)])
        return pa.ipc.new_stream(str(Path(self._task.events) / "events-0.arrow"), fields)

    def _accept(self) -> socket.socket | None:
        while not self._stop.is_set():
            with suppress(TimeoutError):
                system, _ = self._listener.accept()
                system.settimeout(None)
                system.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
                self._connected = True
                return system
        return None

    def _tell(self) -> None:
        while not self._stop.wait(TELL_S):
            if self._connected:
                print(json.dumps({"published": [self.sent]}), flush=True)


class Pushed:
    """The progress of a system that tells of none: what was pushed is taken, and lost with the system."""

    name = "the socket"

    def __init__(self, publishing: Publishing) -> None:
        self._publishing = publishing

    def reached(self) -> Reached:
        sent = dict(enumerate(self._publishing.published))
        return Reached(sent, sent)

    def begun(self) -> bool:
        return bool(self._publishing.published)

    def why(self) -> str:
        return "nobody has connected to it"

    def close(self) -> None: ...


class SocketCheckpoint(Checkpoint):
    """The checkpoint of a Spark query over a socket: its offset is the number of lines."""

    def ends(self, line: str) -> dict[int, int]:
        offset = json.loads(line) if line.startswith('{"row"') else {}
        return {0: offset["row"]} if offset else {}


class DirectSettings(JobSettings):
    """Settings of a job."""

    engine: str  # type: ignore[assignment]


class DirectSystem(JobSystem):
    """A job whose input is a socket."""

    Settings: ClassVar[type[JobSettings]] = DirectSettings
    link_is_checked: ClassVar[bool] = False

    def _make_input(self, own: OwnTopics, name: str, queues: int) -> str:  # noqa: ARG002 a socket has none of them
        return f"127.0.0.1:{free_port()}"

    def _input(self, setup: TrialSetup, job: Job, rows: Path) -> tuple[Publishing, Progress]:
        (endpoint,) = setup.endpoints
        port = int(job.places.input.rpartition(":")[2])
        task = Task(setup.attempt, endpoint, port, setup.tick, str(rows))
        publishing = Publishing(task.to_json(), __name__)
        folder = self._system.progress.checkpoint
        if folder is None:
            return publishing, Pushed(publishing)
        return publishing, SocketCheckpoint(Path(filled(folder, job.places)), "")


def push(given: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
    """Pushes one trial; returns its figures."""
    pusher = Pusher(Task(**given | {"endpoint": Endpoint(**given["endpoint"])}), stop)
    try:
        pusher.run()
    except (OSError, WireError) as problem:
        if not stop.is_set():
            raise UserError(str(problem)) from None
    return pusher.figures()


if __name__ == "__main__":
    sys.exit(run_task(push))
